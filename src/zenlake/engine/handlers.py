"""What a program does with what it receives: take it from a channel, or be called.

A handler is given in one of these shapes:

    None, DefaultHandler(), FifoChannel(n), RingChannel(n)     the entity can be iterated
    a callable, or Callback(fn, drop, indirect=...)            called on a thread of its own
    BatchCallback(fn), for parts of zenlake                    the same, with many items at a time
    (callable, object)                                         the same, beside any object
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast, final

from mypy_extensions import mypyc_attr

from zenlake.engine.channel import END, Channel, live
from zenlake.engine.item_queue import BYTES, ITEMS
from zenlake.errors import ZError
from zenlake.node.entities import IncomingQuery, QuerySink, ReplySink, SampleSink, StatusSink
from zenlake.node.sample import Sample
from zenlake.transport.drops import DropLog
from zenlake.wire.codec_network import Responder, TimestampStack
from zenlake.wire.codec_zenoh import Del, Err, Put

__all__ = [
    "BatchCallback",
    "Callback",
    "ChannelSink",
    "DefaultHandler",
    "FifoChannel",
    "Handler",
    "HandlerStats",
    "RingChannel",
]

T = TypeVar("T")

#: So many samples of one read are copied out of it before a channel keeps the read itself.
FEW: Final = 8
#: What the engine is given to commit and to hold up links for.
ChannelSink = Channel


class DefaultHandler(Generic[T]):
    """A first-in, first-out channel of ordinary size."""

    def __init__(self) -> None:
        """Nothing to choose."""

    def __repr__(self) -> str:
        """How to write it."""
        return "DefaultHandler()"


class FifoChannel(Generic[T]):
    """A first-in, first-out channel; when it is full, the links that feed it wait."""

    def __init__(self, capacity: int) -> None:
        """Hold up to `capacity` items."""
        self._capacity: int = checked_capacity("FifoChannel", capacity)

    @property
    def capacity(self) -> int:
        """How many items it holds."""
        return self._capacity

    def __repr__(self) -> str:
        """How to write it."""
        return f"FifoChannel({self._capacity})"


class RingChannel(Generic[T]):
    """A channel that drops its oldest item when it is full."""

    def __init__(self, capacity: int) -> None:
        """Hold the newest `capacity` items."""
        self._capacity: int = checked_capacity("RingChannel", capacity)

    @property
    def capacity(self) -> int:
        """How many items it holds."""
        return self._capacity

    def __repr__(self) -> str:
        """How to write it."""
        return f"RingChannel({self._capacity})"


def checked_capacity(name: str, capacity: int) -> int:
    """A number of items that makes sense."""
    if isinstance(capacity, bool) or not isinstance(capacity, int):
        raise TypeError(f"{name} takes a number of items, not {type(capacity).__name__}")
    if capacity < 0:
        raise ValueError(
            f"{name}({capacity}): no channel holds fewer than no items; give 1 or more"
        )
    return capacity


class Callback(Generic[T]):
    """A function to call for each item, and one to call after the last.

    With `indirect` (the default) it runs on a thread of its own and may take its time; without,
    on the thread that reads the link: it must not wait, and everything else there waits for it.
    """

    def __init__(
        self,
        callback: Callable[[T], object],
        drop: Callable[[], object] | None = None,
        *,
        indirect: bool = True,
    ) -> None:
        """Call `callback` with each item, and `drop` with nothing at the end."""
        if not callable(callback):
            raise TypeError(f"a callback is called, and {type(callback).__name__} cannot be")
        self._callback: Callable[[T], object] = callback
        self._drop: Callable[[], object] | None = drop
        self._indirect: bool = indirect

    @property
    def callback(self) -> Callable[[T], object]:
        """What is called for each item."""
        return self._callback

    @property
    def drop(self) -> Callable[[], object] | None:
        """What is called after the last."""
        return self._drop

    @property
    def indirect(self) -> bool:
        """Whether it runs on a thread of its own."""
        return self._indirect

    def __call__(self, arg: T, /) -> object:
        """Call the function."""
        return self._callback(arg)

    def __repr__(self) -> str:
        """How to write it."""
        return f"Callback({self._callback!r}, {self._drop!r}, indirect={self._indirect})"


@final
class BatchCallback(Generic[T]):
    """A function to call with a list of all items that have come, on a thread of its own.

    For who takes a lock for what it does with an item: one for many costs less.
    """

    def __init__(self, callback: Callable[[list[T]], object]) -> None:
        """Call `callback` with the items in their order; no item waits for others."""
        self.callback: Callable[[list[T]], object] = callback

    def __call__(self, arg: T, /) -> object:
        """Call the function with one item."""
        return self.callback([arg])


class Handler(Generic[T]):
    """The end of a channel that a program takes from; iterating ends when it is closed."""

    def __init__(self, channel: Channel, of: str, owner: object = None) -> None:
        """Take from `channel`; `of`: what it carries; `owner`: lives as long as this does."""
        self._channel: Channel = channel
        self._of: str = of
        self._owner: object = owner

    def recv(self, /) -> T:
        """The next item; waits for it, and raises `ZError` when there will be none."""
        item = self._channel.take()
        if item is END:
            raise ZError("channel is empty and closed")
        return cast(T, item)

    def try_recv(self, /) -> T | None:
        """The next item if it is here, else None; raises `ZError` when there will be none."""
        item = self._channel.take(False)
        if item is END:
            raise ZError("channel is empty and closed")
        return cast("T | None", item)

    def __iter__(self) -> Handler[T]:
        """Itself."""
        return self

    def __next__(self) -> T:
        """The next item; stops when there will be none."""
        item = self._channel.take()
        if item is END:
            raise StopIteration
        return cast(T, item)

    def __repr__(self) -> str:
        """What it carries."""
        return f"Handler[{self._of}]"


@final
class HandlerStats:
    """What became of everything that came for one entity, up to the moment it was asked."""

    __slots__ = ("delivered", "dropped", "dropped_keys", "queued", "received")

    def __init__(self, channel: Channel) -> None:
        """As it is now."""
        self.received: int = channel.received
        self.delivered: int = channel.delivered
        queue = channel.queue
        self.queued: int = len(queue.items)
        self.dropped: dict[str, int] = {
            "oldest": queue.dropped_oldest,
            "full": queue.dropped_full,
            "cancelled": queue.dropped_cancelled,
        }
        #: Of the first two by reason and key, those that lost most first; `a/**`: other keys there.
        self.dropped_keys: dict[str, dict[str, int]] = {}
        lost = queue.lost
        if lost is not None:
            for reason, tally in list(lost.tallies.items()):
                self.dropped_keys[reason] = dict(tally.most())

    def __repr__(self) -> str:
        """The numbers."""
        return (
            f"Stats(received={self.received}, delivered={self.delivered}, "
            f"queued={self.queued}, dropped={self.dropped})"
        )


class Receiver:
    """A channel made from what a program gave as handler, and what the program gets for it."""

    __slots__ = ("channel", "handler", "is_callback", "of")

    def __init__(self, given: object, of: str, name: str) -> None:
        """`of`: what the channel carries; `name`: for the thread, if there is one."""
        self.of: str = of
        self.is_callback: bool = False
        self.handler: object = None
        self.channel: Channel
        if given is None or isinstance(given, DefaultHandler):
            self.channel = Channel(ITEMS, False)
            self.handler = Handler[object](self.channel, of)
        elif isinstance(given, FifoChannel):
            self.channel = Channel(given.capacity, False)
            self.handler = Handler[object](self.channel, of)
        elif isinstance(given, RingChannel):
            self.channel = Channel(given.capacity, True)
            self.handler = Handler[object](self.channel, of)
        else:
            self.channel = Channel(ITEMS, False)
            self._call(given, name)
        live(self.channel)

    def _call(self, given: object, name: str) -> None:
        callback = given
        if isinstance(given, tuple) and len(given) == 2:
            callback, self.handler = given
        if not callable(callback):
            raise ValueError(
                f"{given!r} is no handler: give nothing, FifoChannel(n), RingChannel(n), "
                "a function, or (function, object)"
            )
        self.is_callback = True
        if isinstance(callback, BatchCallback):
            called = cast("Callable[[object], object]", callback.callback)
            self.channel.deliver(called, None, False, name)
            self.channel.delivery.batches = True
        elif isinstance(callback, Callback):
            self.channel.deliver(callback.callback, callback.drop, not callback.indirect, name)
        else:
            self.channel.deliver(callback, None, False, name)

    def attach(
        self,
        mark: Callable[[Channel], None],
        on_loop: Callable[[], bool],
        poll: Callable[[Channel], bool] | None = None,
        drops: DropLog | None = None,
    ) -> None:
        """Connect the channel with the engine that feeds it; `drops` has all of the node."""
        self.channel.queue.total = drops
        self.channel.takers.poll = poll
        self.channel.mark = mark
        self.channel.on_loop = on_loop


class SampleQueue(SampleSink):
    """Samples into a channel, one wake for many."""

    def __init__(self, channel: Channel) -> None:
        """Committed by the engine, or by a publisher of the same node."""
        self.channel: Channel = channel

    def push(self, sample: Sample) -> None:
        """One sample."""
        channel = self.channel
        chunk = sample.chunk
        weight = sample.payload_size
        if chunk and not channel.direct:
            # A queued sample keeps the complete read alive: so few of one read are copied out, and
            # where many are queued one of them weighs as much as the read.
            queue = channel.queue
            if chunk is not queue.chunk:
                queue.chunk = chunk
                queue.of_chunk = 0
            queue.of_chunk += 1
            if queue.ring or queue.of_chunk <= FEW:
                sample.content()
            else:
                weight = len(chunk) if queue.of_chunk == FEW + 1 else 0
        channel.push(sample, weight)

    def drop_log(self) -> DropLog | None:
        """What its channel has dropped."""
        return self.channel.queue.lost

    def commit(self) -> None:
        """Wake a waiter; a program that publishes faster than it takes itself waits a while."""
        channel = self.channel
        channel.commit()
        queue = channel.queue
        if (len(queue.items) >= queue.capacity or queue.held >= BYTES) and channel.is_full():
            channel.wait_for_room()

    def end(self) -> None:
        """There will be no more."""
        self.channel.end()


class TokenQueue(SampleSink):
    """Liveliness changes into a channel: rare, so that each one wakes."""

    def __init__(self, channel: Channel) -> None:
        """Any thread may push."""
        self.channel: Channel = channel

    def push(self, sample: Sample) -> None:
        """One token came or went."""
        self.channel.push(sample, 0)
        self.channel.commit()

    def commit(self) -> None:
        """Nothing to do: `push` has woken already."""

    def end(self) -> None:
        """There will be no more."""
        self.channel.end()


class QueryQueue(QuerySink):
    """Queries into a channel, one wake for many: see `Runtime.take_marked`."""

    def __init__(self, channel: Channel, make: Callable[[IncomingQuery], object]) -> None:
        """`make` turns a query into the object that programs get."""
        self.channel: Channel = channel
        self.make: Callable[[IncomingQuery], object] = make

    def push(self, query: IncomingQuery) -> None:
        """One query."""
        body = query.body.body
        self.channel.push(self.make(query), 0 if body is None else len(body.payload))

    def end(self) -> None:
        """There will be no more."""
        self.channel.end()


@mypyc_attr(allow_interpreted_subclasses=True)
class Stampable:
    """A reply that takes a timestamp stack."""

    __slots__ = ()

    def stamp(self, stack: TimestampStack) -> None:
        """Take the timestamps that were recorded along its route."""


class ReplyQueue(ReplySink):
    """Replies into a channel, one wake for many: see `Runtime.take_marked`."""

    def __init__(
        self,
        channel: Channel,
        make: Callable[[str, Put | Del | Err, Responder | None, int], object],
    ) -> None:
        """`make` turns a reply into the object that programs get."""
        self.channel: Channel = channel
        self.make: Callable[[str, Put | Del | Err, Responder | None, int], object] = make
        self.stack: TimestampStack | None = None

    def stamp(self, stack: TimestampStack) -> None:
        """Keep the timestamps of the reply that is pushed next."""
        self.stack = stack

    def push(self, key: str, body: Put | Del | Err, responder: Responder | None, qos: int) -> None:
        """One reply."""
        weight = 0 if isinstance(body, Del) else len(body.payload)
        made = self.make(key, body, responder, qos)
        stack = self.stack
        if stack is not None:
            self.stack = None
            if isinstance(made, Stampable):
                made.stamp(stack)
        self.channel.push(made, weight)

    def make_room(self, count: int) -> None:
        """Take so many replies that lie in memory already, however few the channel holds."""
        queue = self.channel.queue
        if not queue.ring:
            queue.limit = max(queue.limit, len(queue.items) + count + 1)

    def end(self) -> None:
        """There will be no more; an error says so if there was no room for some."""
        lost = self.channel.queue.dropped_full
        if lost:
            why = f"{lost} replies came faster than they were taken, and are lost: ask for fewer"
            self.channel.received += 1
            self.channel.queue.add(self.make("", Err(encoding=1, payload=why.encode()), None, 5))
        self.channel.end()


class StatusQueue(StatusSink):
    """Matching statuses into a channel."""

    def __init__(self, channel: Channel, make: Callable[[bool], object]) -> None:
        """`make` turns a status into the object that programs get."""
        self.channel: Channel = channel
        self.make: Callable[[bool], object] = make

    def push(self, matching: bool) -> None:
        """The status has changed."""
        self.channel.push(self.make(matching), 0)
        self.channel.commit()

    def end(self) -> None:
        """There will be no more."""
        self.channel.end()
