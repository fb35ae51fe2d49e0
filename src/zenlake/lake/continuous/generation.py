"""Which columns a view or an alert was planned with, and what becomes of it when they change.

    generation = next_generation(known, judged.tables, stateful=False)

A query without state goes on where it is: its input is written anew with the columns as they are
now, and each row is still read once. Spark refuses to read state that was written for columns of
another kind. A query with state begins a *generation* instead, with a checkpoint and input of its
own: its first two files have the rows that the last finished batch of the earlier generation had
read, cut before that batch. After these two Spark has the same rows in its state and the same
watermark as the earlier generation had, and what they find was published by it. So each result
comes once, whatever a query joins, counts or compares.

A query with state keeps the columns that it began with, also where `*` would find more of them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
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
    "read_by",
]

PAGE: Final = "generation.json"

INPUT: Final = "input"
"""The folder of the files of all tables, below that of a generation."""

Position = dict[str, list[int]]
"""For each journal, by id: of each partition the offset after the last row."""

Kinds = Mapping[str, Mapping[str, str]]
"""For each table the kinds of the columns that a query needs, in the words of Spark."""


class SchemaMoved(ZError):
    """A column that a query needs has changed since the query was planned; plan it again."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The columns that a query was planned with, and how often it began again for other ones."""

    number: int
    tables: Kinds
    read: Mapping[str, Sequence[Position]] = field(default_factory=dict)
    """For each table where the files end whose rows an earlier generation had read."""

    @property
    def known_batches(self) -> int:
        """The number of batches whose results were published by an earlier generation."""
        return max(map(len, self.read.values()), default=0)

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


def read_by(
    generation: Generation, aside: Path, reached: int | None, tables: Iterable[str]
) -> dict[str, list[Position]]:
    """Return where the last finished batch of a generation began and ended, for each table.

    `reached`: the last batch that the table of results has. Spark writes `offsets/N` before batch
    N, and `commits/N` when the batch is finished. Raises `LookupError` if that is not known.
    """
    folder = generation.folder(aside)
    checkpoint = folder / "checkpoint"
    finished = [int(one.name) for one in (checkpoint / "commits").glob("[0-9]*")]
    last = max([*finished, *([] if reached is None else [reached])], default=-1)
    if last + 1 < generation.known_batches:  # it has not published anything yet
        return {name: list(ends) for name, ends in generation.read.items()}
    pages = {name: _ends_of(folder, name) for name in tables}
    ends: dict[str, list[Position]] = {name: [] for name in tables}
    for batch in range(max(0, last - 1), last + 1):
        files = _files_of(checkpoint, batch)
        for name, known in ends.items():
            number = files.get(name)
            known.append({} if number is None else pages[name][number])
    return ends


def _ends_of(folder: Path, table: str) -> dict[int, Position]:
    """Return up to where the files of a table go, by the number of the file."""
    page = json.loads((folder / f"{INPUT}.{table}.json").read_text("utf-8"))
    return {int(number): end for number, end in page["ends"].items()}


def _files_of(checkpoint: Path, batch: int) -> dict[str, int]:
    """Return the number of the last file of each table that Spark had read after a batch."""
    lines = (checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()
    files: dict[str, int] = {}
    for source, line in enumerate(lines[2:]):
        log = checkpoint / "sources" / str(source)
        # Only the log of a source has the names of its files, and so of its table.
        entries = (
            entry
            for page in log.glob("[0-9]*")
            for entry in page.read_text("utf-8").splitlines()[1:]
        )
        entry = next(entries, None)
        if entry is not None and line != "-":
            table = json.loads(entry)["path"].split("/")[-2]
            files[table] = int(json.loads(line)["logOffset"])
    return files
