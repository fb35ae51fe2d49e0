"""Samples that pass a filter, on their way to a subscriber.

    session.declare_subscriber("robot/**?_filter=battery<20")

The filter is that of queries to a lake (`zenlake.expr`). It is asked in this process, before a
sample is queued: what does not pass wakes nobody. A router of zenlake's asks it too, before it
sends a sample (`zenlake.routing.filters`).
"""

from __future__ import annotations

import time
from typing import final

from zenlake.errors import SelectorError
from zenlake.expr.closure import SampleFields, compiled
from zenlake.expr.parse import parse
from zenlake.expr.payload import seen_payload
from zenlake.expr.tree import ExprError, reads_payload
from zenlake.keys import Parameters
from zenlake.node.entities import SampleSink
from zenlake.node.sample import Sample
from zenlake.routing.filters import asked_by_routers

__all__ = ["Filter", "FilteredQueue"]

FILTER = "_filter"


@final
class Filter:
    """A condition on samples."""

    def __init__(self, text: str) -> None:
        """Raises `SelectorError` for text that does not parse."""
        try:
            tree = parse(text)
            self._passes = compiled(tree)
        except ExprError as error:
            raise SelectorError(f"{FILTER}: {error}") from error
        self._payloads = reads_payload(tree)
        #: What routers are told of it; nothing, if they may not ask it.
        self.asked_by_routers = asked_by_routers(text)

    @classmethod
    def parse(cls, text: str) -> tuple[str, Filter]:
        """The keys that a subscriber asks for, and the filter behind the `?`."""
        keys, _, rest = text.partition("?")
        parameters = Parameters(rest)
        for name, _ in parameters:
            if name != FILTER:
                raise SelectorError(
                    f"'{name}' means nothing to a subscriber; write '{keys}?{FILTER}=battery<20'"
                )
        filters = parameters.interpreted(FILTER)
        if not filters:
            raise SelectorError(f"'{text}': write a filter, like '{keys}?{FILTER}=battery<20'")
        return keys, cls(filters)

    def before(self, sink: SampleSink) -> FilteredQueue:
        """A sink that hands on to this one what passes."""
        return FilteredQueue(sink, self)

    def passes(self, sample: Sample) -> bool:
        """Whether it is true of a sample."""
        kind, encoding = sample.kind.name.lower(), str(sample.encoding)
        record, plain = None, None
        if self._payloads and kind == "put":
            record, plain = seen_payload(sample.payload.to_bytes(), encoding)
        stamp = sample.timestamp
        now = time.time_ns() // 1000
        subject = SampleFields(
            record,
            str(sample.key_expr),
            now if stamp is None else stamp.get_time_as_ntp64().as_nanos() // 1000,
            kind,
            encoding,
            plain,
            now,
        )
        return self._passes(subject) is True


@final
class FilteredQueue(SampleSink):
    """Hands on the samples that pass."""

    def __init__(self, sink: SampleSink, filter: Filter) -> None:
        """To this sink."""
        self._sink = sink
        self._filter = filter
        #: Samples that did not pass.
        self.held_back = 0

    def push(self, sample: Sample) -> None:
        """One sample."""
        if self._filter.passes(sample):
            self._sink.push(sample)
        else:
            self.held_back += 1

    def commit(self) -> None:
        """Wake a waiter."""
        self._sink.commit()

    def end(self) -> None:
        """There will be no more."""
        self._sink.end()
