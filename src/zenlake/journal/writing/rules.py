"""Which segments have rows that are kept for a shorter time than others: decisions, no files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.remote import is_uri
from zenlake.journal.disk.segment import Segment
from zenlake.journal.options import RetainRule
from zenlake.keys import KeyExpr, includes

__all__ = ["DueSegment", "RetainRules"]

MOST_KEYS: Final = 100_000
"""For how many keys it is remembered which rule they have."""


@dataclass(frozen=True, slots=True)
class DueSegment:
    """A segment that is to be written anew, and at which age of its rows it was found."""

    partition: int
    segment: Segment
    age: float


class RetainRules:
    """Rules in their order: the first that includes a key decides."""

    def __init__(self, rules: Sequence[RetainRule] = ()) -> None:
        """Expressions are checked; raises `KeyExprError`."""
        self.rules: Final = tuple(replace(rule, keys=str(KeyExpr.of(rule.keys))) for rule in rules)
        self._ages: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def least(self) -> float:
        """The shortest age of all rules."""
        return min((rule.age for rule in self.rules), default=math.inf)

    def age_of(self, key: str) -> float:
        """How long values of a key are kept; infinite where no rule includes it."""
        age = self._ages.get(key)
        if age is None:
            if len(self._ages) >= MOST_KEYS:
                self._ages.clear()
            fits = (rule.age for rule in self.rules if includes(rule.keys, key))
            age = self._ages[key] = next(fits, math.inf)
        return age

    def due_at(self, segment: Segment, seen: float = 0.0) -> float:
        """When something of a segment is to go, by the clock that sealed it.

        `seen`: up to which age its rows were looked at before. Its age is that of its last row, so
        what goes was kept at least as long as the rule says. Of a segment with too many keys to
        list it is known only that something may be to go.
        """
        if segment.keys is None:
            ages = [rule.age for rule in self.rules]
        else:
            ages = [self.age_of(key) for key in segment.keys - segment.retired_keys]
        return segment.closed + min((age for age in ages if age > seen), default=math.inf)

    def next(
        self,
        manifests: Sequence[Manifest],
        now: float,
        read: Sequence[int] | None,
        seen: Callable[[int, Segment], float],
    ) -> DueSegment | None:
        """The segment that is due the longest, if one is.

        `read`: of each partition, the offset below which every reader has all; None if there is
        no reader. `seen`: up to which age a segment was looked at. Segments that were moved to
        another filesystem are left as they are.
        """
        due = [
            (at, number, segment)
            for number, manifest in enumerate(manifests)
            for segment in manifest.segments
            if not is_uri(segment.path)
            and (read is None or segment.end <= read[number])
            and (at := self.due_at(segment, seen(number, segment))) <= now
        ]
        if not due:
            return None
        _, number, segment = min(due, key=lambda one: (one[0], one[1], one[2].first))
        return DueSegment(number, segment, now - segment.closed)

    def gone(self, age: float) -> Callable[[str], bool]:
        """Tells whether values of a key are to go once they are this old."""
        return lambda key: self.age_of(key) <= age
