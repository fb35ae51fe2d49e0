"""Checking a journal from the bytes up: checksums, offsets, statistics, and the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from zenlake.errors import JournalCorrupt, ZError
from zenlake.journal import checkpoint
from zenlake.journal.frame import Torn, walk
from zenlake.journal.ledger import Ledger
from zenlake.journal.reader import Journal
from zenlake.journal.schema import HEARTBEAT
from zenlake.journal.segment import Segment, read_index

__all__ = ["Verdict", "verify"]


@dataclass(slots=True)
class Verdict:
    """What was looked at, and what is wrong."""

    #: Samples; heartbeats are counted apart.
    rows: int = 0
    heartbeats: int = 0
    segments: int = 0
    blocks: int = 0
    bytes: int = 0
    #: What is damaged or contradicts itself, a sentence each.
    problems: list[str] = field(default_factory=list)
    #: Whether the ledger made anew from the rows is the one that was kept.
    ledger: str = "none was kept"
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(journal: Journal, told: Callable[[str], None] = lambda _: None) -> Verdict:
    """Read everything that is durable; `told` hears what is being looked at."""
    verdict = Verdict()
    ends = journal.watermark().offsets
    for partition, (first, end) in enumerate(zip(journal.earliest(), ends, strict=True)):
        told(f"partition {partition}: offsets {first} to {end}")
        try:
            _check_segments(journal, partition, verdict)
            rows, beats = _check_rows(journal, partition, first, end)
        except (ZError, OSError) as error:
            verdict.problems.append(f"partition {partition}: {error}")
            continue
        verdict.rows += rows - beats
        verdict.heartbeats += beats
        if rows != end - first:
            verdict.problems.append(
                f"partition {partition} has {rows} rows from {first} to {end}, not {end - first}"
            )
    told("the ledger")
    try:
        _check_ledger(journal, verdict)
    except (ZError, OSError) as error:
        verdict.problems.append(f"the ledger cannot be made anew: {error}")
    return verdict


def _check_segments(journal: Journal, partition: int, verdict: Verdict) -> None:
    for segment in journal.segments(partition):
        verdict.segments += 1
        verdict.bytes += segment.bytes
        if segment.sealed:
            verdict.blocks += _check_blocks(journal, segment)


def _check_blocks(journal: Journal, segment: Segment) -> int:
    """Sum every block of a sealed segment; of the open one, reading does so anyway."""
    with journal.open_segment(segment) as file:
        blocks = read_index(file, segment.path)
        try:
            found = list(walk(file, blocks[0].position, blocks[-1].after, segment.first))
        except Torn as torn:
            raise JournalCorrupt(f"{segment.path} is damaged: {torn}") from torn
        if [block for block, _, _ in found] != blocks:
            raise JournalCorrupt(f"{segment.path}: its index and its blocks do not agree")
        if blocks[-1].end != segment.end:
            raise JournalCorrupt(
                f"{segment.path} ends with offset {blocks[-1].end}, and the manifest says "
                f"{segment.end}"
            )
    return len(blocks)


def _check_rows(journal: Journal, partition: int, first: int, end: int) -> tuple[int, int]:
    """Offsets are dense, and every column can be read; how many rows, and heartbeats of them."""
    due = first
    beats = 0
    # Checksums were compared just now; so the rows are read as other programs do, by the footer.
    for batch in journal.scan(
        {partition: first}, {partition: end}, partition=partition, check=False, heartbeats=True
    ):
        batch.validate(full=True)
        offsets = batch.column("offset").to_numpy(zero_copy_only=False)
        expected = np.arange(due, due + len(offsets))
        if not np.array_equal(offsets, expected):
            at = int(np.flatnonzero(offsets != expected)[0])
            raise JournalCorrupt(f"offset {offsets[at]} stands where {expected[at]} is due")
        due += len(offsets)
        beats += int(np.count_nonzero(np.asarray(batch.column("origin")) == HEARTBEAT))
    return due - first, beats


def _check_ledger(journal: Journal, verdict: Verdict) -> None:
    anew = checkpoint.recomputed(journal)
    verdict.totals = anew.totals()
    if verdict.totals["rows"] != verdict.rows:
        verdict.problems.append(
            f"the ledger counts {verdict.totals['rows']} rows, the journal {verdict.rows}"
        )
    kept = checkpoint.stored(journal.path)
    if kept is None:
        return
    begun = dict(enumerate(journal.earliest()))
    kept = checkpoint.caught_up(journal, kept)
    verdict.totals["drops"] = kept.totals()["drops"]
    if not any(begun.values()):
        verdict.ledger = "agrees" if kept.agrees(anew) else "differs"
    else:
        # Older rows are gone: what is left must tell the same story of the present.
        verdict.ledger = "agrees on what is still kept" if _consistent(kept, anew) else "differs"
    if verdict.ledger == "differs":
        verdict.problems.append(
            "the ledger that was kept is not the one that the rows give; it is made anew when "
            f"{checkpoint.LEDGER} is deleted"
        )


def _consistent(kept: Ledger, anew: Ledger) -> bool:
    for page in anew.pages():
        known = kept.page(page.source)
        if known is None or known.rows < page.rows:
            return False
        # The heartbeat that told of the last ones may be gone with its segment.
        if page.last not in (known.last, kept.last_came(page.source)):
            return False
        if known.missing < page.missing:
            return False
    return True
