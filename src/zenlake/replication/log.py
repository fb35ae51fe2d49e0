"""The replication log: the newest event of each key, in intervals with a fingerprint each.

A fingerprint is the exclusive or of the fingerprints of the events in an interval or a part of
one, so it is kept by every change at the same cost. The fingerprint of all that is cold is that of
everything, without what is warm, hot or still to come: a digest costs the same however much lies
behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import final

from zenlake.replication.eras import Eras
from zenlake.replication.events import Action, Event
from zenlake.replication.messages import Digest, DigestDiff

__all__ = ["ReplicationLog"]


@final
class _Part:
    """The events of a part of an interval."""

    __slots__ = ("events", "fingerprint")

    def __init__(self) -> None:
        self.fingerprint = 0
        # By identity: an event is compared with no other here.
        self.events: dict[int, Event] = {}


@final
class _Interval:
    """The parts of an interval that have events."""

    __slots__ = ("fingerprint", "parts")

    def __init__(self) -> None:
        self.fingerprint = 0
        self.parts: dict[int, _Part] = {}


@final
class ReplicationLog:
    """The newest event of each key, and of each expression put or deleted with wildcards."""

    def __init__(self, eras: Eras) -> None:
        """Empty."""
        self.eras = eras
        self.fingerprint = eras.fingerprint
        self._keys: dict[str | None, Event] = {}
        self._puts_of_many: dict[str | None, Event] = {}
        self._deletions_of_many: dict[str | None, Event] = {}
        self._intervals: dict[int, _Interval] = {}
        self._all = 0
        # Intervals that had not begun at the last look at the time.
        self._ahead: set[int] = set()
        self._seen = 0
        #: Events of deleted keys.
        self.deletions = 0

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._keys) + len(self._puts_of_many) + len(self._deletions_of_many)

    # --------------------------------------------------------------------------------- changes

    def newest(self, name: str | None, action: Action = Action.PUT) -> Event | None:
        """The event of a key, or of an expression by what was done to it."""
        return self._of(action).get(name)

    def record(self, event: Event) -> None:
        """Have this event in place of the one of the same key, or expression and action."""
        old = self._of(event.action).get(event.name)
        if old is not None:
            self.remove(old)
        self._of(event.action)[event.name] = event
        self.deletions += event.action is Action.DELETE
        at, part_at = self.eras.place(event.time)
        interval = self._intervals.get(at)
        if interval is None:
            interval = self._intervals[at] = _Interval()
            if at > self._seen:
                self._ahead.add(at)
        part = interval.parts.get(part_at)
        if part is None:
            part = interval.parts[part_at] = _Part()
        part.events[id(event)] = event
        self._flip(interval, part, event.fingerprint)

    def remove(self, event: Event) -> None:
        """Forget an event of this log."""
        del self._of(event.action)[event.name]
        self.deletions -= event.action is Action.DELETE
        at, part_at = self.eras.place(event.time)
        interval = self._intervals[at]
        part = interval.parts[part_at]
        del part.events[id(event)]
        self._flip(interval, part, event.fingerprint)
        if not part.events:
            del interval.parts[part_at]
            if not interval.parts:
                del self._intervals[at]
                self._ahead.discard(at)

    def forget(self, deletions: int, values: int = 0) -> int:
        """Forget deletions and events of many, and puts, older than an NTP64; gives how many."""
        last = self.eras.place(max(deletions, values))[0]
        old = [
            event
            for at in [at for at in self._intervals if at <= last]
            for part in self._intervals[at].parts.values()
            for event in part.events.values()
            if event.time < (values if event.action is Action.PUT else deletions)
        ]
        for event in old:
            self.remove(event)
        return len(old)

    def forget_oldest_deletions(self) -> int:
        """Forget the older half of the deleted keys; gives how many."""
        times = sorted(e.time for e in self._keys.values() if e.action is Action.DELETE)
        if not times:
            return 0
        middle = times[len(times) // 2]
        old = [
            event
            for event in self._keys.values()
            if event.action is Action.DELETE and event.time <= middle
        ]
        for event in old:
            self.remove(event)
        return len(old)

    def _of(self, action: Action) -> dict[str | None, Event]:
        if action is Action.PUT_MANY:
            return self._puts_of_many
        return self._deletions_of_many if action is Action.DELETE_MANY else self._keys

    def _flip(self, interval: _Interval, part: _Part, fingerprint: int) -> None:
        part.fingerprint ^= fingerprint
        interval.fingerprint ^= fingerprint
        self._all ^= fingerprint

    # --------------------------------------------------------------------------------- digests

    def digest(self, now: int) -> Digest:
        """What others compare, at a moment in milliseconds since 1970."""
        current = self.eras.current(now)
        hot_from, warm_from = self.eras.hot_from(current), self.eras.warm_from(current)
        warm = {
            at: interval.fingerprint
            for at in range(warm_from, hot_from)
            if (interval := self._intervals.get(at)) is not None and interval.fingerprint
        }
        hot = {at: parts for at in range(hot_from, current + 1) if (parts := self.parts_of(at))}
        return Digest(self.fingerprint, self._cold(current), warm, hot)

    def _cold(self, current: int) -> int:
        """The fingerprint of all that is cold while an interval is the current one."""
        self._look(current)
        cold = self._all
        near = range(self.eras.warm_from(current), current + 1)
        for at in (*near, *self._ahead):
            interval = self._intervals.get(at)
            if interval is not None:
                cold ^= interval.fingerprint
        return cold

    def _look(self, current: int) -> None:
        if current < self._seen:
            self._ahead = {at for at in self._intervals if at > current}
        else:
            self._ahead = {at for at in self._ahead if at > current}
        self._seen = current

    def differences(self, digest: Digest, now: int) -> DigestDiff | None:
        """Where another's digest has what this log has not, or None.

        The current interval is left for the next digest: both sides still add to it. A clock that
        is one interval ahead or behind draws the line to what is cold elsewhere; that alone is no
        difference.
        """
        if digest.configuration != self.fingerprint:
            return None
        current = self.eras.current(now)
        warm = frozenset(
            at for at, fingerprint in digest.warm.items() if self._fingerprint(at) != fingerprint
        )
        hot: dict[int, frozenset[int]] = {}
        for at, parts in digest.hot.items():
            if at == current:
                continue
            mine = self.parts_of(at)
            other = frozenset(part for part, theirs in parts.items() if mine.get(part) != theirs)
            if other:
                hot[at] = other
        lines = (current, current - 1, current + 1)
        cold = all(self._cold(at) != digest.cold for at in lines if at >= 0)
        self._look(current)
        return DigestDiff(cold, warm, hot) if cold or warm or hot else None

    # ---------------------------------------------------------------------------- for aligners

    def _fingerprint(self, at: int) -> int:
        interval = self._intervals.get(at)
        return 0 if interval is None else interval.fingerprint

    def parts_of(self, at: int) -> dict[int, int]:
        """The fingerprints of the parts of an interval."""
        interval = self._intervals.get(at)
        if interval is None:
            return {}
        return {
            number: part.fingerprint for number, part in interval.parts.items() if part.fingerprint
        }

    def cold_intervals(self, now: int) -> dict[int, int]:
        """The fingerprint of each cold interval."""
        line = self.eras.warm_from(self.eras.current(now))
        return {at: interval.fingerprint for at, interval in self._intervals.items() if at < line}

    def other_intervals(self, intervals: Mapping[int, int]) -> frozenset[int]:
        """Those intervals whose fingerprint is not the one of this log."""
        return frozenset(
            at for at, fingerprint in intervals.items() if self._fingerprint(at) != fingerprint
        )

    def other_parts(self, parts: Mapping[int, Mapping[int, int]]) -> dict[int, frozenset[int]]:
        """Those parts of intervals whose fingerprint is not the one of this log."""
        differ: dict[int, frozenset[int]] = {}
        for at, fingerprint in parts.items():
            mine = self.parts_of(at)
            other = frozenset(
                part for part, value in fingerprint.items() if mine.get(part) != value
            )
            if other:
                differ[at] = other
        return differ

    def intervals(self) -> list[int]:
        """All intervals that have events, the oldest first."""
        return sorted(self._intervals)

    def events(self, at: int, parts: Iterable[int] | None = None) -> Iterator[Event]:
        """The events of an interval, or of some parts of it."""
        interval = self._intervals.get(at)
        if interval is None:
            return
        for number in sorted(interval.parts) if parts is None else parts:
            part = interval.parts.get(number)
            if part is not None:
                yield from part.events.values()
