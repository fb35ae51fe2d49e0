"""Which samples: one tree of predicates, for all that filter by content.

    >>> from zenlake.expr import parse
    >>> tree = parse("luminosity > 0 AND room.name LIKE 'bed%'")
    >>> tree.holds({"luminosity": 3, "room": {"name": "bedroom"}})
    True
    >>> tree.sql()
    "luminosity > 0 AND room.name LIKE 'bed%'"

The language is the filter subset of SQL92 that DDS has, with arithmetic, functions of key and time,
IN and IS NULL. It is parsed by hand: the grammar is a page, its parameters (`%0`) and numbers
(`0x1f`) are not SQL's, and a broker for constrained devices is part of the base install, where a
parser of all of SQL is not.

tree       the nodes, and how they read as SQL
parse      from text to tree
record     fields of JSON objects, and of CDR with a declared type; what bytes without encoding are
payload    what a filter sees of a payload, by its encoding
closure    a tree as a function of one sample
pruning    which groups of rows a tree rules out, by their least and greatest values; needs pyarrow
"""

from __future__ import annotations

from zenlake.expr.closure import SampleFields, compiled
from zenlake.expr.parse import parse
from zenlake.expr.record import Type, field_of, json_record, parse_type
from zenlake.expr.tree import (
    And,
    Between,
    Comparison,
    ExprError,
    Field,
    In,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Parameter,
    Unsupported,
)

__all__ = [
    "And",
    "Between",
    "Comparison",
    "ExprError",
    "Field",
    "In",
    "IsNull",
    "Literal",
    "Node",
    "Not",
    "Or",
    "Parameter",
    "SampleFields",
    "Type",
    "Unsupported",
    "compiled",
    "field_of",
    "json_record",
    "parse",
    "parse_type",
]
