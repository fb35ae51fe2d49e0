"""What an advanced subscriber decides: order, gaps, history, duplicates, whom to ask for what.

Samples of a source that numbers them are delivered in the order of their numbers, each once:

    the next number           delivered, and what was held behind it
    a number of before        dropped: it came twice
    a number too far ahead    held, and the missing ones asked for; what does not come is missed

Samples of a source that only stamps them are delivered if they are newer than the last one. While
a reply about a source's past is awaited its samples are held, and put in order with the reply.

Nothing here waits or sends: `delivered`, `missed` and `requests` are for the owner to take.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from zenlake.keys.matching import intersects
from zenlake.keys.time_range import Now, TimeBound, TimeRange
from zenlake.node.advanced_keys import (
    SERIALS,
    SourceId,
    ahead,
    past_of,
    past_of_source,
    publisher_named,
    serials,
)
from zenlake.node.sample import Sample

#: Sources that are remembered; the one silent for longest is forgotten for a new one.
SOURCES: Final = 4096
#: Samples that are held for all sources together, and their bytes.
HELD: Final = 16_384
HELD_BYTES: Final = 64 << 20
#: Queries that are open at a time; others wait for their turn.
CONCURRENT_QUERIES: Final = 256
#: Seconds after which a source that says nothing is forgotten.
RETENTION: Final = 3600.0


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What of the past is wanted."""

    max_samples: int | None = None
    #: In seconds.
    max_age: float | None = None

    def parameters(self) -> list[str]:
        """The parameters that ask for it."""
        parameters: list[str] = []
        if self.max_samples is not None:
            parameters.append(f"_max={self.max_samples}")
        if self.max_age is not None:
            offset = Now(-round(self.max_age * 1_000_000_000))
            parameters.append(f"_time={TimeRange(TimeBound(offset), None)}")
        return parameters


class Missed(NamedTuple):
    """Samples of a source that no cache has any more."""

    source: SourceId
    nb: int


@dataclass(eq=False, slots=True)
class Ask:
    """A query about the past: of one source, or of all of them."""

    key: str
    parameters: str
    source: Source | None


@dataclass(eq=False, slots=True)
class Source:
    """What is known of one publisher: of numbers if it has an id, of stamps if it has none."""

    id: SourceId | None
    #: The number, or the time, of the last sample that was delivered.
    last: int | None = None
    #: Samples that wait for others, by number or time.
    held: dict[int, Sample] = field(default_factory=dict)
    #: Queries about it that are not answered to the end.
    open: int = 0
    heard_at: float = 0.0
    #: When it is to be asked again without a cause.
    ask_at: float = float("inf")
    alive: bool = False

    def is_silent(self, since: float) -> bool:
        """Whether nothing was heard of it for a while, and nothing is expected."""
        return self.heard_at <= since and not self.alive and not self.open and not self.held


class Sources:
    """All publishers that one advanced subscriber hears, and what to deliver of them."""

    def __init__(
        self,
        key: str,
        history: HistoryRequest | None = None,
        recovery: bool = False,
        period: float | None = None,
        retention: float = RETENTION,
    ) -> None:
        """`recovery`: ask for what is missing; `period`: and every so many seconds in any case."""
        self.key: str = key
        self.history: HistoryRequest | None = history
        self.recovery: bool = recovery
        self.period: float | None = period
        self.retention: float = retention
        self.delivered: list[Sample] = []
        self.missed: list[Missed] = []
        self.requests: list[Ask] = []
        self._numbered: dict[SourceId, Source] = {}
        self._stamped: dict[bytes, Source] = {}
        #: The first query, for the history of all publishers.
        self._first: Ask | None = None
        self._open: int = 0
        self._queue: deque[Ask] = deque()
        self._held: int = 0
        self._held_bytes: int = 0

    # ------------------------------------------------------------------------------- hearing

    def begin(self) -> None:
        """Ask for the past, if it is wanted."""
        if self.history is not None:
            self._first = Ask(past_of(self.key), ";".join(self.history.parameters()), None)
            self._ask(self._first)

    def heard(self, sample: Sample, now: float) -> None:
        """A sample came by itself."""
        source = self._take(sample, now)
        if source is not None and self.recovery and source.held and not source.open:
            self._recover(source)

    def replied(self, sample: Sample, now: float) -> None:
        """A sample came as a reply."""
        if intersects(self.key, str(sample.key_expr)):
            self._take(sample, now)

    def beat(self, key: str, sn: int, now: float) -> None:
        """A publisher says which number it used last."""
        id = publisher_named(key)
        if not isinstance(id, SourceId) or not 0 <= sn < SERIALS:
            return
        if id not in self._numbered and self._first is not None:
            return  # the first query covers it
        source = self._source(id, now)
        last = source.last
        if source.open or (last is not None and ahead(sn, last) <= 0):
            return
        first = None if last is None else _next(last)
        self._ask_about(source, key, serials(first, sn))

    def appeared(self, key: str, now: float) -> None:
        """A publisher came alive, or was so already."""
        history = self.history
        id = publisher_named(key)
        if id is None or history is None:
            return
        source = self._source(id, now)
        source.alive = True
        parameters = history.parameters()
        if source.id is not None and source.last is not None:
            # It was away for a while: where lost samples are asked for, none is left out.
            wanted = [serials(_next(source.last), None)]
            parameters = wanted if self.recovery else wanted + parameters
        self._ask_about(source, key, ";".join(parameters))

    def disappeared(self, key: str, now: float) -> None:
        """A publisher is alive no more."""
        id = publisher_named(key)
        source = self._stamped.get(id) if isinstance(id, bytes) else None
        if isinstance(id, SourceId):
            source = self._numbered.get(id)
        if source is not None:
            source.alive = False
            source.heard_at = now

    def over(self, ask: Ask, now: float) -> None:
        """A query will not be answered any more."""
        self._open -= 1
        source = ask.source
        if ask is self._first:
            self._first = None
            for one in [*self._numbered.values(), *self._stamped.values()]:
                self._settle(one)
        elif source is not None:
            source.open -= 1
            self._settle(source)
        while self._queue and self._open < CONCURRENT_QUERIES:
            self._open += 1
            self.requests.append(self._queue.popleft())

    # ---------------------------------------------------------------------------------- time

    def tick(self, now: float) -> None:
        """Ask sources again whose deadline has passed, and forget silent ones."""
        for source in list(self._numbered.values()):
            if source.ask_at <= now and self.period is not None:
                source.ask_at = now + self.period
                if not source.open and source.last is not None:
                    self._recover(source)
        limit = now - self.retention
        for id in [id for id, one in self._numbered.items() if one.is_silent(limit)]:
            del self._numbered[id]
        for zid in [zid for zid, one in self._stamped.items() if one.is_silent(limit)]:
            del self._stamped[zid]

    def deadline(self) -> float:
        """When `tick` has something to do."""
        earliest = float("inf")
        for source in self._numbered.values():
            earliest = min(earliest, source.ask_at)
        for source in [*self._numbered.values(), *self._stamped.values()]:
            if not source.alive and not source.open:
                earliest = min(earliest, source.heard_at + self.retention)
        return earliest

    def end(self) -> None:
        """Nothing more will come: let go of what is held."""
        for source in [*self._numbered.values(), *self._stamped.values()]:
            self._release(source)

    def __len__(self) -> int:
        """How many sources are remembered."""
        return len(self._numbered) + len(self._stamped)

    # ------------------------------------------------------------------------------- sources

    def _source(self, id: SourceId | bytes, now: float) -> Source:
        source = self._numbered.get(id) if isinstance(id, SourceId) else self._stamped.get(id)
        if source is None:
            if len(self) >= SOURCES:
                self._forget_one()
            if isinstance(id, SourceId):
                source = self._numbered[id] = Source(id)
                if self.period is not None:
                    source.ask_at = now + self.period
            else:
                source = self._stamped[id] = Source(None)
        source.heard_at = now
        return source

    def _forget_one(self) -> None:
        """Make room: the source that is silent for longest goes."""
        numbered = min(self._numbered.items(), key=lambda one: one[1].heard_at, default=None)
        stamped = min(self._stamped.items(), key=lambda one: one[1].heard_at, default=None)
        if numbered is not None and (
            stamped is None or numbered[1].heard_at <= stamped[1].heard_at
        ):
            self._release(self._numbered.pop(numbered[0]))
        elif stamped is not None:
            self._release(self._stamped.pop(stamped[0]))

    # --------------------------------------------------------------------------------- order

    def _take(self, sample: Sample, now: float) -> Source | None:
        """Deliver, hold or drop one sample."""
        push = sample.push
        info = None if push is None else push.body.source_info
        if info is not None:
            source = self._source(SourceId(info.zid, info.eid), now)
            self._numbered_sample(source, info.sn, sample)
            return source
        if sample.stamp_id:
            source = self._source(sample.stamp_id, now)
            time = sample.stamp_seconds << 32 | sample.stamp_fraction
            if source.last is None or time > source.last:
                if self._first is not None or source.open:
                    self._hold(source, time, sample)
                else:
                    source.last = time
                    self.delivered.append(sample)
            return None
        self.delivered.append(sample)
        return None

    def _numbered_sample(self, source: Source, sn: int, sample: Sample) -> None:
        last = source.last
        awaiting = self._first is not None or source.open > 0
        if last is None:
            if awaiting:
                self._hold(source, sn, sample)
            else:
                self._deliver(source, sn, sample)
            return
        distance = ahead(sn, last)
        if distance <= 0:
            return
        if distance == 1:
            self._deliver(source, sn, sample)
        elif awaiting or self.recovery:
            self._hold(source, sn, sample)
        else:
            self._miss(source, distance - 1)
            self._deliver(source, sn, sample)

    def _deliver(self, source: Source, sn: int, sample: Sample) -> None:
        """Deliver a sample, and those that waited for it alone."""
        self.delivered.append(sample)
        held = source.held
        while held:
            follower = held.get(_next(sn))
            if follower is None:
                break
            sn = _next(sn)
            self._let_go(source, sn)
            self.delivered.append(follower)
        source.last = sn

    def _hold(self, source: Source, at: int, sample: Sample) -> None:
        if at in source.held:
            return
        source.held[at] = sample
        self._held += 1
        self._held_bytes += len(sample.content())
        if self._held > HELD or self._held_bytes > HELD_BYTES:
            self._release(source)  # better late than never, better missed than out of memory

    def _let_go(self, source: Source, at: int) -> Sample:
        sample = source.held.pop(at)
        self._held -= 1
        self._held_bytes -= sample.payload_size
        return sample

    def _settle(self, source: Source) -> None:
        if self._first is None and not source.open:
            self._release(source)

    def _release(self, source: Source) -> None:
        """Deliver all that is held, in order, and say what is missed between."""
        held = source.held
        if not held:
            return
        if source.id is None:
            for time in sorted(held):
                sample = self._let_go(source, time)
                if source.last is None or time > source.last:
                    source.last = time
                    self.delivered.append(sample)
            return
        start = next(iter(held)) if source.last is None else source.last
        for sn in sorted(held, key=lambda sn: ahead(sn, start)):
            sample = self._let_go(source, sn)
            last = source.last
            if last is not None:
                distance = ahead(sn, last)
                if distance <= 0:
                    continue
                if distance > 1:
                    self._miss(source, distance - 1)
            source.last = sn
            self.delivered.append(sample)

    def _miss(self, source: Source, count: int) -> None:
        if source.id is not None:
            self.missed.append(Missed(source.id, count))

    # -------------------------------------------------------------------------------- asking

    def _recover(self, source: Source) -> None:
        """Ask every cache for what comes after the last sample delivered."""
        if source.id is not None:
            first = None if source.last is None else _next(source.last)
            key = past_of_source(self.key, source.id)
            self._ask_about(source, key, serials(first, None))

    def _ask_about(self, source: Source, key: str, parameters: str) -> None:
        if len(self._queue) < SOURCES:
            source.open += 1
            self._ask(Ask(key, parameters, source))

    def _ask(self, ask: Ask) -> None:
        if self._open < CONCURRENT_QUERIES:
            self._open += 1
            self.requests.append(ask)
        else:
            self._queue.append(ask)


def _next(sn: int) -> int:
    return (sn + 1) % SERIALS
