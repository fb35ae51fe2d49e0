"""Which ranges of a journal a step reads, and which tables they are for.

`samples` never waits for another table: it always gets the next share. Tables that are about as
far get theirs from the same read. Those that are far behind (configured later, or stopped for a
while) catch up in a range of their own, a share a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["LEADER", "Span", "spans"]

LEADER: Final = "samples"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of one partition up to `end`, and from where each table wants it."""

    partition: int
    end: int
    starts: Mapping[str, int]

    @property
    def first(self) -> int:
        """The first offset that some table wants."""
        return min(self.starts.values())

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return self.end - self.first


def spans(partition: int, starts: Mapping[str, int], durable: int, share: int) -> list[Span]:
    """The ranges of one partition that a step reads; each table is in one of them at most.

    `starts`: the first offset that each table lacks. `share`: how many rows a range adds to the
    table that is ahead in it.
    """
    if not starts:
        return []
    lead = starts.get(LEADER, min(starts.values()))
    near = {name: start for name, start in starts.items() if start > lead - share}
    far = {name: start for name, start in starts.items() if name not in near}
    planned = [_span(partition, near, min(durable, lead + share))]
    if far:
        planned.append(_span(partition, far, min(durable, min(far.values()) + share)))
    return [span for span in planned if span.starts]


def _span(partition: int, starts: Mapping[str, int], end: int) -> Span:
    return Span(partition, end, {name: at for name, at in starts.items() if at < end})
