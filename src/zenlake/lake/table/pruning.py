"""Which files of a table may have rows that meet a predicate, by the statistics in its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from zenlake.expr.pruning import may_hold
from zenlake.expr.tree import And, Node, fields_of

__all__ = ["matching"]


def matching(actions: pa.Table, conditions: Iterable[Node]) -> list[str]:
    """Return the files whose statistics do not rule out a row that meets all the conditions."""
    node = And(tuple(conditions))
    may = may_hold(node, dict(_bounds(actions, fields_of(node))))
    paths = actions["path"] if may is None else actions["path"].filter(may)
    return list(paths.to_pylist())


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
