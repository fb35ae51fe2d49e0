"""What ledgers prove about an answer: of some keys, in a range of time.

A recorder knows of each publisher that numbers its samples what came and what did not. Of an
answer that means one of three things: nothing is missing, something is (and which), or nobody can
know, because nobody numbers the samples under these keys.

A gap lies between two samples that came: the one after it has a time, and so has the one after the
gap before. Where that does not tell whether it lies in the range, it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zenlake.keys import ResolvedRange, intersects

__all__ = ["ALWAYS", "Proven", "proven"]

ALWAYS: Final = ResolvedRange()
NUMBERS: Final = 1 << 32
"""After so many a publisher's numbers begin again at zero, also in the middle of a gap."""


@dataclass(frozen=True, slots=True)
class Proven:
    """What came under some keys in a range of time, and what did not."""

    #: Whether there is a ledger at all.
    known: bool
    #: How many numbers the sources used, at any time.
    expected: int
    #: Each source of these keys, with the numbers that are missing in the range.
    sources: tuple[dict[str, Any], ...]
    #: How many samples without a number each key has, at any time.
    unprovable: dict[str, int]
    #: What recorders themselves could not keep, whatever its key and time, by reason.
    drops: dict[str, int]

    @property
    def missing(self) -> int:
        """How many samples did not come."""
        return sum([source["missing"] for source in self.sources])

    @property
    def complete(self) -> bool | None:
        """Whether all samples came; None if nobody can know."""
        if self.missing or self.drops:
            return False
        return True if self.expected and not self.unprovable else None


def proven(
    exprs: tuple[str, ...],
    ledgers: Iterable[Mapping[str, Any]],
    within: ResolvedRange = ALWAYS,
) -> Proven:
    """What these ledgers, as recorders tell them, say of the keys of some expressions."""
    expected = 0
    known = False
    sources: list[dict[str, Any]] = []
    unprovable: dict[str, int] = {}
    drops: dict[str, int] = {}
    for ledger in ledgers:
        known = True
        for source in ledger.get("sources", ()):
            if _about(exprs, source.get("key")):
                expected += source.get("expected", 0)
                sources.append(_in_range(source, within))
        for key, count in dict(ledger.get("unprovable", {})).items():
            if _about(exprs, key):
                unprovable[key] = unprovable.get(key, 0) + count
        for why, count in dict(ledger.get("drops", {})).items():
            drops[why] = drops.get(why, 0) + count
    return Proven(known, expected, tuple(sources), unprovable, drops)


def _about(exprs: tuple[str, ...], key: object) -> bool:
    return isinstance(key, str) and any(intersects(expr, key) for expr in exprs)


def _in_range(source: Mapping[str, Any], within: ResolvedRange) -> dict[str, Any]:
    """A source of the ledger, without the gaps that lie before or after the range."""
    elsewhere = 0
    gaps = []
    for gap, earliest, latest in _dated(source):
        if _may_overlap(earliest, latest, within):
            gaps.append(list(gap))
        else:
            elsewhere += (gap[1] - gap[0]) % NUMBERS + 1
    # What is in no list has no time: it counts.
    missing = source.get("missing", 0) - elsewhere
    return {
        "source": source.get("source"),
        "key": source.get("key"),
        "complete": not missing,
        "missing": missing,
        "gaps": gaps,
        "healed": source.get("healed", 0),
        "expected": source.get("expected", 0),
    }


def _dated(
    source: Mapping[str, Any],
) -> Iterator[tuple[tuple[int, int], int | None, int | None]]:
    """Each gap with a time that it began after and one that it was over at, if they are known."""
    gaps = source.get("gaps", ())
    before: int | None = None
    last: int | None = None
    for gap, time in zip(gaps, source.get("since") or [None] * len(gaps), strict=True):
        # A gap that was filled in the middle is two, with the time of the same sample.
        if last is not None and (time is None or last < time):
            before = last
        last = time
        yield (gap[0], gap[1]), before, time


def _may_overlap(earliest: int | None, latest: int | None, within: ResolvedRange) -> bool:
    if latest is not None and within.start_ns is not None and latest < within.start_ns:
        return False
    return earliest is None or within.end_ns is None or earliest <= within.end_ns
