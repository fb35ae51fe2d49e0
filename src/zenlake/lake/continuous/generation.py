"""Which columns a view or an alert was planned with, and what becomes of it when they change.

    generation = next_generation(known, judged.tables, stateful=False)

A query without state goes on where it is: its input is written anew with the columns as they are
now, and each row is still read once. Spark refuses to read state that was written for columns of
another kind. A query with state begins a *generation* instead: it reads everything from its start
again, with a checkpoint and input of its own, and publishes only what its table does not have yet.

A query with state keeps the columns that it began with, also where `*` would find more of them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from zenlake.errors import ZError
from zenlake.lake.query.table_frames import spark_type

__all__ = [
    "Generation",
    "SchemaMoved",
    "begin_generation",
    "changed_column",
    "kinds_of",
    "known_generation",
    "next_generation",
    "watermark_of",
]

PAGE: Final = "generation.json"

Kinds = Mapping[str, Mapping[str, str]]
"""For each table the kinds of the columns that a query needs, in the words of Spark."""


class SchemaMoved(ZError):
    """A column that a query needs has changed since the query was planned; plan it again."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The columns that a query was planned with, and how often it began again for other ones."""

    number: int
    tables: Kinds
    after: float | None = field(default=None)
    """Windows that ended by then were published by an earlier generation; seconds since 1970."""

    def folder(self, aside: Path) -> Path:
        """Return the folder of the checkpoint and of the input, below that of the query."""
        return aside / f"generation-{self.number}" if self.number else aside

    def app(self, app: str) -> str:
        """Return the name under which the batches of this generation are counted."""
        return f"{app}/{self.number}" if self.number else app


def kinds_of(tables: Mapping[str, pa.Schema]) -> dict[str, dict[str, str]]:
    """Return the kinds of the columns of some tables."""
    return {
        name: {one.name: spark_type(one.type) for one in schema} for name, schema in tables.items()
    }


def changed_column(table: str, planned: Mapping[str, str], now: pa.Schema) -> str:
    """Return in words which of the planned columns a table has otherwise now; empty: none."""
    kinds = {one.name: one.type for one in now}
    for name, kind in planned.items():
        if name not in kinds:
            return f"the column '{name}' of '{table}' is gone"
        is_now = spark_type(kinds[name])
        if is_now != kind:
            return f"the column '{name}' of '{table}' became {is_now}, it was {kind}"
    return ""


def next_generation(
    known: Generation | None, tables: Mapping[str, pa.Schema], *, stateful: bool
) -> tuple[Generation, dict[str, pa.Schema], str]:
    """Return the generation to run, the columns that it reads, and why it is a new one; empty:
    it is the known one.

    `tables`: the columns that the query needs, as the tables have them now.
    """
    if known is None or not stateful:
        number = 0 if known is None else known.number
        return Generation(number, kinds_of(tables)), dict(tables), ""
    why = ""
    kept = {}
    for name, schema in tables.items():
        planned = known.tables.get(name, {})
        why = why or changed_column(name, planned, schema)
        kept[name] = pa.schema([schema.field(one) for one in planned if one in schema.names])
    if not why:
        return known, kept, ""
    return Generation(known.number + 1, kinds_of(tables)), dict(tables), why


def known_generation(aside: Path) -> Generation | None:
    """Return the generation that ran last; None: a new query, or one of an earlier release."""
    page = aside / PAGE
    if not page.exists():
        return None
    return Generation(**json.loads(page.read_text("utf-8")))


def begin_generation(aside: Path, generation: Generation) -> None:
    """Note which generation runs, over a loss of power too."""
    fresh = aside / f"{PAGE}.new"
    with fresh.open("w", encoding="utf-8") as page:
        page.write(json.dumps(asdict(generation)))
        page.flush()
        os.fsync(page.fileno())
    fresh.replace(aside / PAGE)
    _forget_others(aside, generation)


def _forget_others(aside: Path, generation: Generation) -> None:
    """Delete what earlier generations noted: nobody goes on from there."""
    folders = set(aside.glob("generation-*")) - {generation.folder(aside)}
    if generation.number:
        folders |= {aside / "checkpoint", aside / "input"}
        for page in aside.glob("input.*.json"):
            page.unlink(missing_ok=True)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def watermark_of(checkpoint: Path, reached: int | None) -> float | None:
    """Return the watermark of the last batch that finished: windows that ended by then are over.

    `reached`: the last batch that the table of results has. Spark keeps the watermark of batch N
    in `offsets/N`, and `commits/N` says that N is finished.
    """
    finished = [int(one.name) for one in (checkpoint / "commits").glob("[0-9]*")]
    finished += [] if reached is None else [reached]
    offsets = checkpoint / "offsets" / str(max(finished, default=-1))
    if not offsets.exists():
        return None
    lines = offsets.read_text("utf-8").splitlines()
    return float(json.loads(lines[1])["batchWatermarkMs"]) / 1000.0
