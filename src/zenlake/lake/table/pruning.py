"""Which files of a table may have rows that meet a predicate, by the statistics in its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.expr.pruning import may_hold
from zenlake.expr.tree import And, Field, IsNull, Node, fields_of

__all__ = ["files_meeting", "matching"]


def matching(actions: pa.Table, conditions: Iterable[Node]) -> list[str]:
    """Return the files whose statistics do not rule out a row that meets all the conditions."""
    node = And(tuple(conditions))
    may = may_hold(node, dict(_bounds(actions, fields_of(node))))
    paths = actions["path"] if may is None else actions["path"].filter(may)
    return list(paths.to_pylist())


def files_meeting(actions: pa.Table, conditions: Iterable[Node]) -> pa.Table:
    """Return the actions of these files. Files without nulls, or of nulls only, are known too."""
    nodes = tuple(conditions)
    node = And(nodes)
    known = [may_hold(node, dict(_bounds(actions, fields_of(node)))), *_nulls(actions, nodes)]
    masks = [one for one in known if one is not None]
    return actions.filter(reduce(pc.and_, masks)) if masks else actions


def _nulls(actions: pa.Table, nodes: Iterable[Node]) -> Iterator[pa.ChunkedArray]:
    """Give for each IS [NOT] NULL whether it may be true of a row in each file."""
    for node in nodes:
        match node:
            case IsNull(field=Field(name=name)) if f"null_count.{name}" in actions.column_names:
                nulls = actions[f"null_count.{name}"]
                may = (
                    pc.less(nulls, actions["num_records"]) if node.negated else pc.greater(nulls, 0)
                )
                yield pc.fill_null(may, True)


def _bounds(
    actions: pa.Table, fields: Iterable[str]
) -> Iterator[tuple[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]]:
    """Give for each field that has statistics its least and greatest value in each file."""
    there = set(actions.column_names)
    for name in fields:
        if {f"min.{name}", f"max.{name}"} <= there:
            yield name, (actions[f"min.{name}"], actions[f"max.{name}"])
        elif f"partition.{name}" in there:
            only = actions[f"partition.{name}"]
            yield name, (only, only)
