"""How the tasks of a batch come to the same columns of a typed table.

Each task decodes with the columns that the table has, and proposes what it finds new. Where
proposals differ the driver settles the columns, and the tasks that had others decode again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from zenlake.errors import LocalError
from zenlake.lake.ingest.task import IngestTask, TypedFiles
from zenlake.lake.model.typed_table import Columns, TypedTable, settled

__all__ = ["agreed", "demand_written", "only"]

log = logging.getLogger("zenlake.lake")

MOST_ROUNDS: Final = 8
"""How often tasks may decode again before columns keep the kinds that they have."""

MOST_TURNS: Final = 4
"""How often each task may decode again after that."""


def agreed(
    known: Columns,
    parts: list[TypedFiles],
    again: Callable[[list[int], Columns], list[TypedFiles]],
) -> tuple[dict[str, str], list[TypedFiles]]:
    """Let tasks decode again until all of them use the same columns; gives these, and the files.

    Files whose columns differ from those agreed on are never given: after some rounds all columns
    keep their kinds, and what they do not hold goes to quarantine. Raises `LocalError` for tasks
    that propose other columns even so.
    """
    columns, redo = settled(known, [part.new for part in parts])
    rounds = 0
    while redo:
        rounds += 1
        if rounds > MOST_ROUNDS + MOST_TURNS * len(parts):
            raise LocalError(_disagreement(columns, parts[redo[0]]))
        log.debug("%d tasks decode again", len(redo))
        if rounds < MOST_ROUNDS:
            some, known = redo, Columns(columns, known.fixed)
        else:
            # One task after the other, so that each knows what those before it have found.
            some, known = redo[:1], Columns(columns, known.fixed | columns.keys())
        for n, part in zip(some, again(some, known), strict=True):
            parts[n] = part
        columns, redo = settled(known, [part.new for part in parts])
    return columns, parts


def _disagreement(columns: Mapping[str, str], part: TypedFiles) -> str:
    differing = (name for name, kind in part.new.items() if columns.get(name) != kind)
    name = next(differing, "?")
    return (
        f"tasks do not agree on the column '{name}': {columns.get(name)} and {part.new.get(name)}; "
        "write its kind under `columns` of the table"
    )


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
