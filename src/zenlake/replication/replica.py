"""One replica: the log of a storage's contents, what it asks others, and what it answers.

    heard_digest(digest of another)  ──► DigestDiff, to be asked of it, or None
    heard_reply(reply of another)    ──► what to ask next; deletions and values are applied
    answer(query of another)         ──► replies
    put, delete                      ◄── the storage, after its contents took a sample

Nothing is remembered between the steps of an alignment: whatever is lost on the way is found again
by the next digest. What is applied goes through the rule of `newest/newest_values` like samples, so
all replicas that heard of the same updates, in whatever order, have the same contents:

    a deletion of a key   wins over every put of the key that is older
    a put of a key        wins over every deletion that is older than it
    its value             is the newest of its own and those of puts of many keys since

The log follows the contents and never the other way round, with one exception: a deletion that the
log still knows after the contents forgot it is told to them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from zenlake.errors import KeyExprError
from zenlake.keys import KeyExpr, intersects, is_wild
from zenlake.newest import Contents, Value
from zenlake.replication.eras import Eras
from zenlake.replication.events import Action, Event
from zenlake.replication.log import ReplicationLog
from zenlake.replication.messages import (
    AlignmentQuery,
    AlignmentReply,
    All,
    Digest,
    DigestDiff,
    Discovery,
    DiscoveryReply,
    Events,
    EventsMetadata,
    IntervalFingerprints,
    Intervals,
    Retrieval,
    SubIntervalFingerprints,
    SubIntervals,
)

__all__ = ["Replica", "ReplicaCounts"]

#: How many events are in one query or reply of ours.
MOST_EVENTS: Final = 1_000
#: The last NTP64 there is.
LAST: Final = (1 << 64) - 1
#: How many deleted keys the log remembers; the older half is forgotten when there are more.
MOST_DELETIONS: Final = 1_000_000


@dataclass(slots=True)
class ReplicaCounts:
    """What a replica has learned from others."""

    puts: int = 0
    deletes: int = 0
    outside: int = 0
    """Events of keys that the storage does not store, or of no key at all."""
    future: int = 0
    """Events with a time that lies ahead of this clock; they are taken when it has come."""
    expired: int = 0
    """Events that are too old to be kept."""
    forgotten: int = 0
    """Deletions forgotten before their time, because there were too many."""


@final
class Replica:
    """Follows the contents of one storage, and aligns them with others."""

    def __init__(
        self, eras: Eras, contents: Contents, zid: str, most_deletions: int = MOST_DELETIONS
    ) -> None:
        """Take up what the contents have."""
        self.log = ReplicationLog(eras)
        self.counts = ReplicaCounts()
        self._zid = zid
        self._eras = eras
        self._prefix = eras.prefix
        self._contents = contents
        self._most_deletions = most_deletions
        # Deletions and values older than these (NTP64) are not taken from others.
        self._deletions_since = 0
        self._values_since = 0
        for entry in contents.records():
            if self._below_prefix(entry.key):
                action = Action.DELETE if entry.value is None else Action.PUT
                name = self._name(entry.key)
                base = entry.base_time, entry.base_id
                self.log.record(Event(name, action, entry.time, entry.id, *base))
        for wide in contents.updates_of_many():
            if wide.put_id:
                self.log.record(Event(wide.expr, Action.PUT_MANY, wide.put_time, wide.put_id))
            if wide.deleted_id:
                deleted = wide.deleted_time, wide.deleted_id
                self.log.record(Event(wide.expr, Action.DELETE_MANY, *deleted))

    # --------------------------------------------------------------------- the storage's updates

    def put(self, key: str, time: int, id: bytes) -> None:
        """The contents have taken a put."""
        if not is_wild(key):
            self._follow_put(key)
            return
        self._record_many(Event(key, Action.PUT_MANY, time, id))
        for name in self._contents.changed:
            self._follow_put(name)

    def delete(self, key: str, time: int, id: bytes) -> None:
        """The contents have taken a deletion."""
        if not is_wild(key):
            self._follow_deletion(key, time, id, time, id)
            return
        self._record_many(Event(key, Action.DELETE_MANY, time, id))
        for name in self._contents.changed:
            old = self.log.newest(self._name(name)) if self._below_prefix(name) else None
            base = (time, id) if old is None else old.base
            self._follow_deletion(name, time, id, *base)

    def forget(self, deletions: int, values: int = 0) -> None:
        """The contents forget deletions, and values, that are older than an NTP64."""
        self._deletions_since = deletions
        self._values_since = values
        self.log.forget(deletions, values)

    def _record_many(self, event: Event) -> None:
        old = self.log.newest(event.name, event.action)
        if old is None or event.stamp > old.stamp:
            self.log.record(event)

    def _follow_put(self, key: str) -> None:
        """Write down what the contents have made of a put."""
        if not self._below_prefix(key):
            return
        name = self._name(key)
        old = self.log.newest(name)
        entry = self._contents.known(key)
        if entry is None or entry.value is None:
            # Refused, because a newer deletion is known; or there was no room for the value.
            if entry is None and old is not None and old.action is Action.PUT:
                self.log.remove(old)
            return
        base = entry.base_time, entry.base_id
        if old is not None and old.action is Action.DELETE and old.stamp > base:
            self._contents.delete(key, old.time, old.id)
            return
        event = Event(name, Action.PUT, entry.time, entry.id, *base)
        if event != old:
            self.log.record(event)

    def _follow_deletion(
        self, key: str, time: int, id: bytes, base_time: int, base_id: bytes
    ) -> None:
        """Write down what the contents have made of a deletion."""
        entry = self._contents.known(key)
        if not self._below_prefix(key) or (entry is not None and entry.value is not None):
            return
        name = self._name(key)
        old = self.log.newest(name)
        if old is None or old.action is Action.PUT or (time, id) > old.stamp:
            self.log.record(Event(name, Action.DELETE, time, id, base_time, base_id))
            if self.log.deletions > self._most_deletions:
                self.counts.forgotten += self.log.forget_oldest_deletions()

    # ------------------------------------------------------------------------------------- names

    def _below_prefix(self, key: str) -> bool:
        prefix = self._prefix
        return prefix is None or key == prefix or key.startswith(f"{prefix}/")

    def _name(self, key: str) -> str | None:
        prefix = self._prefix
        if prefix is None:
            return key
        return None if key == prefix else key[len(prefix) + 1 :]

    def key_of(self, event: Event) -> str | None:
        """The key or the expression of an event; None if this storage has no such key."""
        name, prefix = event.name, self._prefix
        if event.many or prefix is None:
            key = name
        else:
            key = prefix if name is None else f"{prefix}/{name}"
        try:
            if key is None or str(KeyExpr(key)) != key or is_wild(key) != event.many:
                return None
        except KeyExprError:
            return None
        return key if intersects(key, self._eras.key_expr) else None

    # ---------------------------------------------------------------------------------- asking

    def digest(self, now: int) -> Digest:
        """What to publish, at a moment in milliseconds since 1970."""
        return self.log.digest(now)

    def heard_digest(self, digest: Digest, now: int) -> DigestDiff | None:
        """What to ask the replica with this digest, if anything."""
        return self.log.differences(digest, now)

    def heard_reply(
        self, reply: AlignmentReply, value: Value | None, latest: int = LAST
    ) -> list[AlignmentQuery]:
        """What to ask next of the replica that replied so; the value of a retrieval is applied.

        Args:
            reply: What was replied.
            value: That of a retrieval.
            latest: The latest time (NTP64) that an event may have: one of the year 2100 would
                stay the newest of its key.
        """
        match reply:
            case DiscoveryReply():
                return [All()]
            case IntervalFingerprints(intervals):
                other = self.log.other_intervals(intervals)
                return [Intervals(other)] if other else []
            case SubIntervalFingerprints(found):
                parts = self.log.other_parts(found)
                return [SubIntervals(parts)] if parts else []
            case EventsMetadata(events):
                missing = [event for event in events if self.heard_event(event, latest)]
                return [
                    Events(tuple(missing[first : first + MOST_EVENTS]))
                    for first in range(0, len(missing), MOST_EVENTS)
                ]
            case Retrieval(event):
                if self._is_believed(event, latest):
                    self.apply(event, value)
        return []

    def _is_believed(self, event: Event, latest: int) -> bool:
        if event.time > latest or event.base_time > latest:
            self.counts.future += 1
            return False
        return True

    def heard_event(self, event: Event, latest: int = LAST) -> bool:
        """Whether the value of an event has to be asked for; a deletion is applied at once."""
        if not self._is_believed(event, latest):
            return False
        if event.action in (Action.DELETE, Action.DELETE_MANY):
            self.apply(event, None)
            return False
        return self._news(event)

    def apply(self, event: Event, value: Value | None) -> bool:
        """Take up an event of another replica with its value; tells whether it was news."""
        if not self._news(event):
            return False
        key = self.key_of(event)
        if key is None:
            self.counts.outside += 1
            return False
        contents = self._contents
        if event.action in (Action.DELETE, Action.DELETE_MANY):
            if not contents.delete(key, event.time, event.id):
                return False
            self.delete(key, event.time, event.id)
            self.counts.deletes += 1
            return True
        if value is None:
            return False
        if event.many:
            taken = contents.put(key, event.time, event.id, value)
        else:
            base_time, base_id = self._base(event)
            taken = contents.hold(key, event.time, event.id, value, base_time, base_id)
        if not taken:
            return False
        self.put(key, event.time, event.id)
        self.counts.puts += 1
        return True

    def _base(self, event: Event) -> tuple[int, bytes]:
        """When the key itself was put; Eclipse forgets it at a put of many, and we may know."""
        old = self.log.newest(event.name)
        if not event.base_id and old is not None and old.action is Action.PUT:
            return min(old.base, event.stamp)
        return event.base

    def _news(self, event: Event) -> bool:
        """Whether an event is newer than what is known, and young enough to be kept."""
        oldest = self._values_since if event.action is Action.PUT else self._deletions_since
        if event.time < oldest:
            self.counts.expired += 1
            return False
        old = self.log.newest(event.name, event.action)
        if old is None:
            return True
        if event.many or old.action is event.action is Action.DELETE:
            return event.stamp > old.stamp
        if event.action is Action.DELETE:
            return event.stamp > old.base
        if old.action is Action.DELETE:
            return event.base > old.stamp
        return event.stamp > old.stamp or (bool(event.base_id) and event.base > old.base)

    # -------------------------------------------------------------------------------- answering

    def answer(self, query: AlignmentQuery, now: int) -> Iterator[AlignmentReply]:
        """The replies to a query; those that are a `Retrieval` need a value, see `value_of`."""
        log = self.log
        match query:
            case Discovery():
                yield DiscoveryReply(self._zid)
            case All():
                for at in log.intervals():
                    yield from map(Retrieval, list(log.events(at)))
            case DigestDiff(cold, warm, hot):
                if cold:
                    yield IntervalFingerprints(log.cold_intervals(now))
                if warm:
                    yield from self.answer(Intervals(warm), now)
                if hot:
                    yield from self.answer(SubIntervals(hot), now)
            case Intervals(intervals):
                parts = {at: log.parts_of(at) for at in sorted(intervals)}
                yield SubIntervalFingerprints(
                    {at: fingerprints for at, fingerprints in parts.items() if fingerprints}
                )
            case SubIntervals(asked):
                events = [e for at in sorted(asked) for e in log.events(at, sorted(asked[at]))]
                for first in range(0, max(1, len(events)), MOST_EVENTS):
                    yield EventsMetadata(tuple(events[first : first + MOST_EVENTS]))
            case Events(events):
                for event in events:
                    old = log.newest(event.name, event.action)
                    # Changed since: what it is now is in the next digest.
                    if old is not None and (old.action, old.stamp) == (event.action, event.stamp):
                        yield Retrieval(old)
