"""The ledger on disk: put aside now and then, caught up with the journal when it is taken up.

    DIR/ledger.json      the ledger after the rows whose offsets it names

It is written only for rows that are durable, so it never knows more than the journal does.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from zenlake.errors import ZError
from zenlake.journal.disk.layout import LEDGER
from zenlake.journal.ledger.ledger import COLUMNS, Ledger
from zenlake.journal.reading.blocks import Damaged
from zenlake.journal.reading.reader import Journal

__all__ = ["LEDGER", "caught_up", "recomputed", "stored", "write"]


def stored(folder: str | os.PathLike[str]) -> Ledger | None:
    """The ledger that was put aside in a journal's folder; None if there is none that is whole."""
    try:
        text = (Path(folder) / LEDGER).read_text("utf-8")
        return Ledger.from_state(json.loads(text))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZError):
        return None


def write(folder: str | os.PathLike[str], text: str) -> None:
    """Put a ledger aside, whole or not at all."""
    place = Path(folder) / LEDGER
    aside = place.with_suffix(".part")
    try:
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, place)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def recomputed(journal: Journal, damaged: Damaged | None = None) -> Ledger:
    """The ledger made anew from every row that the journal still has.

    Raises `JournalCorrupt` where rows cannot be read; with `damaged`, that hears of them, and
    they are left out.
    """
    ledger = Ledger()
    for partition, offset in enumerate(journal.earliest()):
        ledger.begin(partition, offset)
    return _enter_rest(ledger, journal, damaged)


def caught_up(journal: Journal, ledger: Ledger | None, damaged: Damaged | None = None) -> Ledger:
    """A ledger that was put aside, with the rows since then; without one, made anew.

    Rows that cannot be read are treated as `recomputed` does.
    """
    if ledger is None:
        return recomputed(journal, damaged)
    ends = journal.watermark().offsets
    for partition, (first, end) in enumerate(zip(journal.earliest(), ends, strict=True)):
        offset = ledger.offsets.get(partition, 0)
        if offset > end:
            # It is of another journal, or of rows that a loss of power took.
            return recomputed(journal, damaged)
        ledger.begin(partition, max(offset, first))
    return _enter_rest(ledger, journal, damaged)


def _enter_rest(ledger: Ledger, journal: Journal, damaged: Damaged | None) -> Ledger:
    ends = journal.watermark().offsets
    for partition in range(journal.partitions):
        if damaged is not None:
            first, end = ledger.offsets[partition], ends[partition]
            for batch in journal.salvage(partition, first, end, COLUMNS, damaged, heartbeats=True):
                ledger.enter(partition, batch)
            # Also past what was left out: it is not tried again.
            ledger.begin(partition, end)
            continue
        start = {partition: ledger.offsets[partition]}
        for batch in journal.scan(start, partition=partition, columns=COLUMNS, heartbeats=True):
            ledger.enter(partition, batch)
    return ledger
