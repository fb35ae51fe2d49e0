"""The task that keeps `gaps`: the ledger of a journal, folded into one file."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from zenlake.journal import Journal
from zenlake.journal.ledger.ledger import COLUMNS, Ledger
from zenlake.lake.model.sample_rows import GAPS
from zenlake.lake.table.data_files import DataFile, read_notes, write_file
from zenlake.lake.table.location import LakeLocation

__all__ = ["LEDGER", "GapsTask", "without"]

LEDGER: Final = b"zenlake.ledger"
"""Where the footer keeps the ledger's own state: no commit can part the two."""


@dataclass(frozen=True, slots=True)
class GapsTask:
    """New rows of a journal for its ledger."""

    lake: str
    journal: str
    journal_id: str
    ranges: Mapping[int, tuple[int, int]]
    had: str | None

    def run(self) -> DataFile:
        """Enter the rows, and write the pages with the ledger's own state in the footer."""
        place = LakeLocation(self.lake) / "gaps"
        ledger = Ledger()
        if self.had is not None:
            noted = read_notes(place, self.had)[LEDGER]
            ledger = Ledger.from_state(json.loads(zlib.decompress(noted)))
        journal = Journal.open(self.journal)
        for partition, (start, end) in self.ranges.items():
            if ledger.offsets.get(partition, 0) != start:
                ledger.begin(partition, start)
            for batch in journal.scan(
                start, end, partition=partition, columns=list(COLUMNS), heartbeats=True
            ):
                ledger.enter(partition, batch)
        state = zlib.compress(json.dumps(ledger.state()).encode(), 1)
        return write_file(
            place,
            _pages(ledger),
            {"journal": self.journal_id},
            uuid.uuid4().hex,
            metadata={LEDGER: state},
        )


def without(noted: bytes, gone: Callable[[str], bool]) -> bytes:
    """The state in a footer, without the sources and keys that are to go; the same if none is."""
    before = json.loads(zlib.decompress(noted))
    ledger = Ledger.from_state(before)
    ledger.forget(gone)
    state = json.dumps(ledger.state())
    return noted if json.loads(state) == before else zlib.compress(state.encode(), 1)


def _pages(ledger: Ledger) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in GAPS.names if name != "journal"}
    for page in ledger.pages():
        facts = page.facts()
        for name, values in columns.items():
            values.append(facts[name])
    for key, count in ledger.unprovable().items():
        for name, values in columns.items():
            values.append({"key": key, "rows": count}.get(name))
    schema = pa.schema([f for f in GAPS if f.name != "journal"])
    return pa.table(columns, schema=schema)
