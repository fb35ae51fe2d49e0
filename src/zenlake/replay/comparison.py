"""Two rows of samples of each key, compared: what is missing, extra, or differs by how much.

    comparison = WindowComparison(tolerance=0.001)
    comparison.left("robot/1", sample)
    comparison.right("robot/1", other)
    report = comparison.end()

Samples come from both sides in their order, by turns. Those of one key are matched one after the
other; where they differ, what follows within a few samples is looked at: if one side goes on there
as the other does here, samples between are missing, or extra. If nothing fits, the two are the same
sample with another content, and numbers in JSON say how far apart they are. What waits for its
counterpart is bounded for each key.
"""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, final

__all__ = [
    "AHEAD",
    "DifferenceReport",
    "Distance",
    "KeyDifferences",
    "SampleContent",
    "WindowComparison",
]

AHEAD: Final = 32
"""How many samples further a counterpart is looked for."""

MOST_WAITING: Final = 4096
"""How many samples of a key wait for a counterpart."""

MOST_BYTES: Final = 128 << 20
"""How many bytes of samples wait, of all keys together."""

MOST_KEYS: Final = 100_000
MOST_FIELDS: Final = 256
MOST_EXAMPLES: Final = 3
DEEPEST: Final = 32


@dataclass(frozen=True, slots=True)
class SampleContent:
    """What a sample shows to who compares it."""

    kind: int
    payload: bytes
    encoding: tuple[int, str | None] = (0, None)
    attachment: bytes | None = None
    #: When it was, for people; not compared.
    at: int = 0


@dataclass(slots=True)
class Distance:
    """How far apart the numbers of one field are."""

    count: int = 0
    most: float = 0.0
    total: float = 0.0

    def add(self, distance: float) -> None:
        """One more pair."""
        self.count += 1
        self.most = max(self.most, distance)
        self.total += distance

    def facts(self) -> dict[str, float | str]:
        """For JSON."""
        return {
            "count": self.count,
            "max": _finite(self.most),
            "mean": _finite(self.total / self.count) if self.count else 0.0,
        }


@dataclass(slots=True)
class KeyDifferences:
    """What was found for one key."""

    same: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    #: Different, but all numbers within the tolerance; these count as the same.
    near: int = 0
    #: Why samples are different, and how often.
    reasons: dict[str, int] = field(default_factory=dict)
    fields: dict[str, Distance] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether nothing is missing, extra or different."""
        return not (self.missing or self.extra or self.different)

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "same": self.same,
            "near": self.near,
            "missing": self.missing,
            "extra": self.extra,
            "different": self.different,
            "reasons": dict(self.reasons),
            "fields": {name: one.facts() for name, one in sorted(self.fields.items())},
            "examples": list(self.examples),
        }


@dataclass(slots=True)
class DifferenceReport:
    """What was found, key by key."""

    keys: dict[str, KeyDifferences] = field(default_factory=dict)
    #: Samples of keys that are too many to list.
    unlisted: int = 0

    @property
    def equal(self) -> bool:
        """Whether both sides are the same."""
        return all(key.equal for key in self.keys.values()) and not self.unlisted

    def totals(self) -> dict[str, int]:
        """Everything added up."""
        names = ("same", "near", "missing", "extra", "different")
        sums = {name: sum(getattr(key, name) for key in self.keys.values()) for name in names}
        return {"keys": len(self.keys), **sums, "unlisted": self.unlisted}


@final
class _Queue:
    """The samples of one key that wait."""

    __slots__ = ("left", "right")

    def __init__(self) -> None:
        self.left: deque[SampleContent] = deque()
        self.right: deque[SampleContent] = deque()


@final
class WindowComparison:
    """Compares while samples come."""

    def __init__(
        self, tolerance: float = 0.0, ahead: int = AHEAD, most_bytes: int = MOST_BYTES
    ) -> None:
        """Numbers that are no further apart than `tolerance` count as the same."""
        self._tolerance = tolerance
        self._ahead = ahead
        self._most_bytes = most_bytes
        self._queues: dict[str, _Queue] = {}
        self.waiting_bytes = 0
        self.report = DifferenceReport()

    def left(self, key: str, sample: SampleContent) -> None:
        """The next sample of a key on the left."""
        self._enter(key, sample, True)

    def right(self, key: str, sample: SampleContent) -> None:
        """The next sample of a key on the right."""
        self._enter(key, sample, False)

    def pair(self, key: str, left: SampleContent | None, right: SampleContent | None) -> None:
        """A sample and what it must be compared with, for who knows that already."""
        page = self._page(key)
        if page is None:
            return
        if right is None:
            assert left is not None
            self._lone(page, left, "missing")
        elif left is None:
            self._lone(page, right, "extra")
        else:
            self._compare(page, left, right)

    def end(self) -> DifferenceReport:
        """No more samples come: match what waits; what has no counterpart is missing, or extra."""
        for key, queue in self._queues.items():
            self._match(key, queue, over=True)
        self._queues.clear()
        self.waiting_bytes = 0
        return self.report

    # --- matching -------------------------------------------------------------------------------

    def _page(self, key: str) -> KeyDifferences | None:
        page = self.report.keys.get(key)
        if page is None:
            if len(self.report.keys) >= MOST_KEYS:
                self.report.unlisted += 1
                return None
            page = self.report.keys[key] = KeyDifferences()
        return page

    def _enter(self, key: str, sample: SampleContent, left: bool) -> None:
        if self._page(key) is None:
            return
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        (queue.left if left else queue.right).append(sample)
        self.waiting_bytes += len(sample.payload)
        self._match(key, queue, over=False)
        if self.waiting_bytes > self._most_bytes:
            self._relieve()

    def _match(self, key: str, queue: _Queue, *, over: bool) -> None:
        page = self.report.keys[key]
        left, right = queue.left, queue.right
        while left and right:
            if _same(left[0], right[0]):
                page.same += 1
                self._take(left)
                self._take(right)
                continue
            enough = len(left) > self._ahead and len(right) > self._ahead
            full = max(len(left), len(right)) >= MOST_WAITING
            if not (over or enough or full):
                return  # what comes next says which of the two is out of step
            skip_left, skip_right = self._step(left, right)
            if skip_left == 0 and skip_right == 0:
                self._compare(page, self._take(left), self._take(right))
                continue
            for _ in range(skip_left):
                self._lone(page, self._take(left), "missing")
            for _ in range(skip_right):
                self._lone(page, self._take(right), "extra")
        while over or max(len(left), len(right)) >= MOST_WAITING:
            if left:
                self._lone(page, self._take(left), "missing")
            elif right:
                self._lone(page, self._take(right), "extra")
            else:
                return

    def _step(self, left: deque[SampleContent], right: deque[SampleContent]) -> tuple[int, int]:
        """How many samples to leave out on either side until both go on alike; the fewest."""
        most_left, most_right = min(len(left), self._ahead + 1), min(len(right), self._ahead + 1)
        for distance in range(1, most_left + most_right - 1):
            for skip in range(max(0, distance - most_right + 1), min(distance, most_left - 1) + 1):
                # As many on both sides is no step: those are pairs that differ.
                if skip != distance - skip and _same(left[skip], right[distance - skip]):
                    pairs = min(skip, distance - skip)
                    return skip - pairs, distance - skip - pairs
        return 0, 0

    def _take(self, queue: deque[SampleContent]) -> SampleContent:
        sample = queue.popleft()
        self.waiting_bytes -= len(sample.payload)
        return sample

    def _relieve(self) -> None:
        """Too much waits: what has waited longest has no counterpart."""
        for key, queue in self._queues.items():
            page = self.report.keys[key]
            while queue.left and self.waiting_bytes > self._most_bytes // 2:
                self._lone(page, self._take(queue.left), "missing")
            while queue.right and self.waiting_bytes > self._most_bytes // 2:
                self._lone(page, self._take(queue.right), "extra")

    # --- judging --------------------------------------------------------------------------------

    def _lone(self, page: KeyDifferences, sample: SampleContent, what: str) -> None:
        if what == "missing":
            page.missing += 1
        else:
            page.extra += 1
        self._example(page, {"what": what, "ns": sample.at})

    def _compare(self, page: KeyDifferences, left: SampleContent, right: SampleContent) -> None:
        if _same(left, right):
            page.same += 1
            return
        reasons: set[str] = set()
        if left.kind != right.kind:
            reasons.add("kind")
        if left.encoding != right.encoding:
            reasons.add("encoding")
        if left.attachment != right.attachment:
            reasons.add("attachment")
        if left.payload != right.payload:
            self._payloads(page, left.payload, right.payload, reasons)
        if not reasons:
            page.near += 1
            return
        page.different += 1
        for reason in reasons:
            page.reasons[reason] = page.reasons.get(reason, 0) + 1
        self._example(
            page,
            {"what": "different", "ns": left.at, "other_ns": right.at, "reasons": sorted(reasons)},
        )

    def _payloads(self, page: KeyDifferences, left: bytes, right: bytes, reasons: set[str]) -> None:
        try:
            self._values(page, "", json.loads(left), json.loads(right), reasons, 0)
        except (ValueError, RecursionError):
            reasons.add("payload")

    def _values(
        self, page: KeyDifferences, path: str, one: Any, other: Any, reasons: set[str], depth: int
    ) -> None:
        if _number(one) and _number(other):
            distance = _apart(one, other)
            name = path or "value"
            if name in page.fields or len(page.fields) < MOST_FIELDS:
                page.fields.setdefault(name, Distance()).add(distance)
            if distance > self._tolerance:
                reasons.add("numbers")
        elif isinstance(one, dict) and isinstance(other, dict) and depth < DEEPEST:
            if one.keys() != other.keys():
                reasons.add("fields")
            for name in one.keys() & other.keys():
                inner = f"{path}.{name}" if path else name
                self._values(page, inner, one[name], other[name], reasons, depth + 1)
        elif isinstance(one, list) and isinstance(other, list) and depth < DEEPEST:
            if len(one) != len(other):
                reasons.add("fields")
            for first, second in zip(one, other, strict=False):
                # All of a list is one field: a scan of a laser has a thousand numbers.
                self._values(page, f"{path}[]", first, second, reasons, depth + 1)
        elif one != other or type(one) is not type(other):
            reasons.add("values")

    def _example(self, page: KeyDifferences, example: dict[str, Any]) -> None:
        if len(page.examples) < MOST_EXAMPLES:
            page.examples.append(example)


def _same(left: SampleContent, right: SampleContent) -> bool:
    return (
        left.payload == right.payload
        and left.kind == right.kind
        and left.encoding == right.encoding
        and left.attachment == right.attachment
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _apart(one: float, other: float) -> float:
    """How far two numbers are apart, whatever they are."""
    try:
        if one == other or (math.isnan(one) and math.isnan(other)):
            return 0.0
        distance = abs(float(one) - float(other))
    except OverflowError:  # a whole number beyond all floats
        return math.inf
    return math.inf if math.isnan(distance) else distance


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"
