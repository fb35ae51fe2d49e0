"""Calling a program's function for each item of a channel.

    direct      on the thread that pushes; nothing is queued
    otherwise   on a thread of the channel's own, started by the first commit or by the end
    batches     the same, and the function is given a list of all that has come

States: *idle* ──start──► *running* (`started`) ──end of the channel──► *finished* (`done`, after
`drop`). An exception of the function is logged; the next item is delivered.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Final, final

from zenlake.engine.item_queue import Heavy, Passage

if TYPE_CHECKING:
    from zenlake.engine.channel import Channel

log = logging.getLogger("zenlake")

#: How many items a batch has at most: others wait for what its function locks.
MOST_OF_BATCH: Final = 256


@final
class Delivery:
    """The callback of one channel and the thread that calls it; empty if programs take instead."""

    __slots__ = ("batches", "callback", "done", "drop", "name", "releasing", "resting", "started")

    def __init__(self) -> None:
        """Without a callback."""
        self.callback: Callable[[object], object] | None = None
        #: Whether the callback is given lists of items.
        self.batches: bool = False
        #: Called once after the last item.
        self.drop: Callable[[], object] | None = None
        #: Of the thread.
        self.name: str = ""
        self.started: bool = False
        self.done: bool = False
        #: Whether the thread drops its reference to an item just now: see `api.asked.Query`.
        self.releasing: bool = False
        #: Whether the thread waits for items, and so has returned from its last call.
        self.resting: bool = False

    def start(self, channel: Channel) -> None:
        """Start the thread, unless it runs."""
        with channel.guard:
            if self.started:
                return
            self.started = True
        threading.Thread(target=self._run, args=(channel,), name=self.name, daemon=True).start()

    def _run(self, channel: Channel) -> None:
        """Call for each item until the channel is ended and empty."""
        me = get_ident()
        _delivering[me] = channel
        try:
            if self.batches:
                while self._next_batch(channel):
                    pass
            else:
                while self._next(channel):
                    pass
        finally:
            self.finish(channel)
            _delivering.pop(me, None)

    def _next(self, channel: Channel) -> bool:
        """Wait for an item and call for it; False at the end."""
        queue = channel.queue
        while True:
            try:
                item = queue.first()
            except IndexError:
                if channel.ended and not queue.items:
                    return False
                self._rest(channel)
                continue
            if isinstance(item, Heavy):
                queue.lighten(item.weight)
                item = item.item
                if isinstance(item, Passage):
                    item.passed.release()
                    return True
            if channel.back_pressure.watched and queue.is_half_empty():
                channel.back_pressure.drained()
            self.call(channel, item)
            self.releasing = True
            item = None
            self.releasing = False
            return True

    def _next_batch(self, channel: Channel) -> bool:
        """Wait for items and call for all that are there; False at the end."""
        queue = channel.queue
        batch: list[object] = []
        weight = 0
        passage: Passage | None = None
        while queue.items and len(batch) < MOST_OF_BATCH:
            try:
                item = queue.first()
            except IndexError:
                break  # discarded meanwhile
            if isinstance(item, Heavy):
                weight += item.weight
                item = item.item
                if isinstance(item, Passage):
                    passage = item
                    break
            batch.append(item)
        if not batch:
            if passage is not None:
                passage.passed.release()
                return True
            if channel.ended and not queue.items:
                return False
            self._rest(channel)
            return True
        if weight:
            queue.lighten(weight)
        if channel.back_pressure.watched and queue.is_half_empty():
            channel.back_pressure.drained()
        channel.delivered += len(batch) - 1
        self.call(channel, batch)
        if passage is not None:
            passage.passed.release()
        return True

    def _rest(self, channel: Channel) -> None:
        """Sleep, on the thread of the channel, until there is an item or the end."""
        takers = channel.takers
        poll = takers.poll
        self.resting = True
        if poll is None or not poll(channel):
            takers.sleep(channel)
        self.resting = False

    def call(self, channel: Channel, item: object) -> None:
        """Call the function for one item, or for a batch of them."""
        callback = self.callback
        if callback is None:
            return
        channel.delivered += 1
        try:
            callback(item)
        except BaseException as error:
            # Whatever a program does with one item, the next one is delivered.
            log.exception("%s: the callback failed", self.name)
            # A kept log record must not keep the item: a query is final when it is collected.
            traceback.clear_frames(error.__traceback__)
            item = None

    def finish(self, channel: Channel) -> None:
        """Call `drop`, and release the threads that join."""
        drop = self.drop
        self.drop = None
        if drop is not None:
            try:
                drop()
            except BaseException:
                log.exception("%s: the drop function failed", self.name)
        self.done = True
        channel.queue.discard()  # marks that came after the last item
        channel.back_pressure.drained()

    def join(self, channel: Channel) -> None:
        """Wait until the callback runs no more; returns at once inside of it."""
        if self.callback is None or channel.direct or _delivering.get(get_ident()) is channel:
            return
        while not self.done:
            waker = Lock()
            waker.acquire()
            channel.back_pressure.wakers.append(waker)
            if self.done:
                return
            waiting = begin_wait()
            try:
                waker.acquire()
            finally:
                end_wait(waiting)


#: By thread: the channel that it empties.
_delivering: dict[int, Channel] = {}


def delivering() -> Channel | None:
    """The channel that the calling thread empties, if it is a channel's own."""
    return _delivering.get(get_ident())


def begin_wait() -> Channel | None:
    """Lift the back-pressure of the channel that the calling thread empties, before it waits."""
    channel = _delivering.get(get_ident())
    if channel is not None:
        channel.back_pressure.lift()
    return channel


def end_wait(channel: Channel | None) -> None:
    """Restore what `begin_wait` has lifted."""
    if channel is not None:
        channel.back_pressure.restore()


def forget_threads() -> None:
    """A child process has none of the threads."""
    _delivering.clear()
