"""Checking a journal from the bytes up: checksums, offsets, statistics, and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from zenlake.errors import JournalCorrupt, ZError
from zenlake.journal.disk.frame import Torn, walk
from zenlake.journal.disk.segment import Segment, read_index
from zenlake.journal.ledger import checkpoint
from zenlake.journal.ledger.account import Account
from zenlake.journal.ledger.ledger import Ledger
from zenlake.journal.reading.reader import Journal
from zenlake.journal.schema import HEARTBEAT, RETIRED

__all__ = ["Verdict", "verify"]


@dataclass(slots=True)
class Verdict:
    """What was looked at, and what is wrong."""

    #: Samples; heartbeats are counted apart.
    rows: int = 0
    heartbeats: int = 0
    #: Samples whose values a rule of retention took; they came, and are not lost.
    retired: int = 0
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


def verify(journal: Journal, report: Callable[[str], None] = lambda _: None) -> Verdict:
    """Read everything that is durable; `report` hears what is being looked at."""
    verdict = Verdict()
    torn = journal.watermark_problem()
    if torn:
        verdict.problems.append(torn)
    ends = journal.watermark().offsets
    for partition, (first, end) in enumerate(zip(journal.earliest(), ends, strict=True)):
        report(f"partition {partition}: offsets {first} to {end}")
        try:
            _check_segments(journal, partition, verdict)
            rows, beats, retired = _check_rows(journal, partition, first, end)
        except (ZError, OSError) as error:
            verdict.problems.append(f"partition {partition}: {error}")
            continue
        verdict.rows += rows - beats - retired
        verdict.retired += retired
        verdict.heartbeats += beats
        if rows != end - first:
            verdict.problems.append(
                f"partition {partition} has {rows} rows from {first} to {end}, not {end - first}"
            )
    report("the ledger")
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
            walked = list(walk(file, blocks[0].position, blocks[-1].after, segment.first))
        except Torn as torn:
            raise JournalCorrupt(f"{segment.path} is damaged: {torn}") from torn
        if [block for block, _, _ in walked] != blocks:
            raise JournalCorrupt(f"{segment.path}: its index and its blocks do not agree")
        if blocks[-1].end != segment.end:
            raise JournalCorrupt(
                f"{segment.path} ends with offset {blocks[-1].end}, and the manifest says "
                f"{segment.end}"
            )
    return len(blocks)


def _check_rows(journal: Journal, partition: int, first: int, end: int) -> tuple[int, int, int]:
    """Offsets are dense, every column can be read; rows, and how many are beats or retired."""
    due = first
    beats = retired = 0
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
        origin = np.asarray(batch.column("origin"))
        beats += int(np.count_nonzero(origin == HEARTBEAT))
        retired += int(np.count_nonzero(origin == RETIRED))
    return due - first, beats, retired


def _check_ledger(journal: Journal, verdict: Verdict) -> None:
    anew = checkpoint.recomputed(journal)
    verdict.totals = anew.totals()
    came = verdict.rows + verdict.retired
    if verdict.totals["rows"] != came:
        verdict.problems.append(
            f"the ledger counts {verdict.totals['rows']} rows, the journal {came}"
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
        same = _consistent(kept, anew, begun)
        verdict.ledger = "agrees on what is still kept" if same else "differs"
    if verdict.ledger == "differs":
        verdict.problems.append(
            "the ledger that was kept is not the one that the rows give; it is made anew when "
            f"{checkpoint.LEDGER} is deleted"
        )


def _consistent(kept: Ledger, anew: Ledger, begun: Mapping[int, int]) -> bool:
    """Whether a ledger of more rows can be that of these; `begun`: where each partition begins."""
    if kept.heartbeats < anew.heartbeats or kept.unlisted_rows < anew.unlisted_rows:
        return False
    for partition, offset in begun.items():
        if not offset:
            if not kept.agrees(anew, partition):
                return False
            continue
        for source, account in anew.accounts(partition).items():
            known = kept.account(partition, source)
            if known is None:
                # There were too many others before it.
                if not kept.unlisted_rows:
                    return False
            elif not _extends(known, account):
                return False
        counts = kept.unprovable(partition)
        for key, count in anew.unprovable(partition).items():
            if counts.get(key, count if kept.unlisted_rows else 0) < count:
                return False
    return True


def _extends(known: Account, left: Account) -> bool:
    """Whether an account of all rows can be that of a source whose last rows gave `left`.

    What came late or was healed may be left while the rows that it belongs between are gone: then
    `left` has gaps that never were, and may begin or end elsewhere. But all that is left had to
    be entered in `known` too, and nothing that `known` lacks can have come.
    """
    if known.rows < left.rows:
        return False
    size = 1 << known.bits
    if known.restarts or left.restarts or known.next - known.first >= size >> 2:
        # Where a run begins is told by what came before it; and so is how far numbers went round.
        return True
    if left.next == left.first:
        # Heartbeats alone: what they told was less than was known, or is known by others since.
        return True
    back = (known.next - left.next) % size
    shift = known.next - back - left.next
    if back >= size >> 1 or left.first + shift < known.first:
        return False
    if left.unlisted:
        return True
    first, last = left.first + shift, left.next + shift - 1
    return all(
        left.lacks_all(max(start, first) - shift, min(end, last) - shift)
        for start, end in known.gaps
        if start <= last and end >= first
    )
