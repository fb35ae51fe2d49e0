"""How the tasks of a batch come to the same columns of a typed table.

Each task decodes with the columns that the table has, and proposes what it finds new. Where
proposals differ the driver settles the columns, and the tasks that had others decode again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from zenlake.errors import LocalError
from zenlake.lake.ingest.task import IngestTask, TypedFiles
from zenlake.lake.model.typed_table import Columns, TypedTable, settled

__all__ = ["agreed", "demand_written", "only"]

log = logging.getLogger("zenlake.lake")

MOST_ROUNDS: Final = 8
"""How often tasks may decode again before one of them decides alone."""


def agreed(
    known: Columns,
    parts: list[TypedFiles],
    again: Callable[[list[int], Columns], list[TypedFiles]],
) -> tuple[dict[str, str], list[TypedFiles]]:
    """Let tasks decode again until all of them use the same columns; gives these, and the files."""
    columns, redo = settled(known, [part.new for part in parts])
    rounds = 0
    while redo:
        rounds += 1
        log.debug("%d tasks decode again", len(redo))
        # Should they never agree, one after the other tells the next.
        some = redo if rounds < MOST_ROUNDS else redo[:1]
        known = Columns(columns, known.fixed)
        for n, part in zip(some, again(some, known), strict=True):
            parts[n] = part
        columns, redo = settled(known, [part.new for part in parts])
        redo = [n for n in redo if n not in some] if rounds >= MOST_ROUNDS else redo
    return columns, parts


def demand_written(parts: Sequence[TypedFiles]) -> None:
    """Raise what a task failed with, if one did."""
    for part in parts:
        if part.failed:
            raise LocalError(part.failed)


def only(item: IngestTask, spec: TypedTable, columns: Columns) -> IngestTask:
    """The part of a task that concerns one typed table."""
    return replace(
        item,
        stretches=tuple(
            replace(stretch, starts={spec.name: stretch.starts[spec.name]})
            for stretch in item.stretches
            if spec.name in stretch.starts
        ),
        typed=tuple((one, columns) for one, _ in item.typed if one.name == spec.name),
        topics=False,
    )
