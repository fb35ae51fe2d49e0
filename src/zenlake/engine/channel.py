"""A channel: hands items over from the thread that reads a link to the thread that takes them.

    push  ──►  queue  ──►  take                 a program that calls recv(), or iterates
    push  ──►  queue  ──►  callback             a thread of the channel's own
    push  ──────────────►  callback             the thread that pushes (`direct`)

Pushing appends and nothing else; `commit` wakes one waiter, once for all that was pushed.

It is composed of machines that each fit on a page:

    ItemQueue      the items, bounded by number and bytes (item_queue)
    Takers         threads and tasks that wait for an item (takers)
    BackPressure   links, threads and tasks that wait for room (back_pressure)
    Delivery       the callback and its thread (delivery)

States: *open* until `ended`; an ended channel takes no item in, and hands out those inside; then
`take` returns `END`, and a callback's thread calls `drop` and is `done`.

Invariants:

* `received` = `delivered` + items in the queue + those dropped, by reason (while no thread is
  between two steps).
* after `commit`, if there are items then a waiter is awake, or there is none.
* a link in `back_pressure.links` is resumed when the queue is half empty, when back-pressure is
  lifted, or at the end.
* `marked` is set from the first push after a commit to the next commit: the engine's list of
  channels to commit has each once.

Locks: `guard` makes single steps atomic (bytes, lists of waiters, `ended`, `started`); no other
lock is taken and no foreign code runs while it is held. `push` and `commit` may be called with the
node's lock, since neither waits; a direct callback then runs under it, and must not wait either.
`take`, `join` and `wait_for_room` wait, and are called without it. Wakers and `resume_soon` are
called without any lock of the channel.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, final

from zenlake.engine.back_pressure import PATIENCE, BackPressure, Pausable
from zenlake.engine.delivery import Delivery, begin_wait, delivering, end_wait, forget_threads
from zenlake.engine.item_queue import ITEMS, Heavy, ItemQueue
from zenlake.engine.takers import Takers
from zenlake.errors import ZError


class End:
    """What is taken from a channel that is empty and ended."""


END: Final = End()


@final
class Channel:
    """A bounded queue between threads, or a callback."""

    __slots__ = (
        "back_pressure", "delivered", "delivery", "direct", "ended", "guard", "mark", "marked",
        "on_loop", "queue", "received", "takers",
    )  # fmt: skip

    def __init__(self, capacity: int = ITEMS, ring: bool = False) -> None:
        """For a program that takes; `deliver` makes it one that calls."""
        self.guard: Lock = Lock()
        self.queue: ItemQueue = ItemQueue(capacity, ring, self.guard)
        self.takers: Takers = Takers()
        self.back_pressure: BackPressure = BackPressure(self.guard)
        self.delivery: Delivery = Delivery()
        #: Whether the callback runs on the thread that pushes.
        self.direct: bool = False
        self.ended: bool = False
        self.received: int = 0
        self.delivered: int = 0
        #: Has the engine commit the channel at the end of the read; None: the pusher commits.
        self.mark: Callable[[Channel], None] | None = None
        self.marked: bool = False
        #: Whether the caller is the loop thread, which must not wait.
        self.on_loop: Callable[[], bool] | None = None

    def deliver(
        self,
        callback: Callable[[object], object],
        drop: Callable[[], object] | None,
        direct: bool,
        name: str,
    ) -> None:
        """Call `callback` for each item, and `drop` after the last one."""
        self.delivery.callback = callback
        self.delivery.drop = drop
        self.delivery.name = name
        self.direct = direct

    def start(self) -> None:
        """Have the channel's own thread running."""
        self.delivery.start(self)

    def join(self) -> None:
        """Wait until the callback runs no more; returns at once inside of it."""
        self.delivery.join(self)

    def settle(self, patience: float) -> bool:
        """Wait until the callback has returned from all items pushed so far; False: it has not.

        `patience` in seconds. Returns at once inside of the callback.
        """
        delivery = self.delivery
        if self.direct or delivery.callback is None or delivering() is self:
            return True
        if not self.queue.items and (delivery.resting or not delivery.started):
            return True
        passage = self.queue.mark()
        if delivery.done:
            return True
        self.commit()
        waiting = begin_wait()
        try:
            return passage.passed.acquire(timeout=patience)
        finally:
            end_wait(waiting)

    # -------------------------------------------------------------------------------- pushing

    def push(self, item: object, weight: int) -> None:
        """Add an item; `weight` in bytes."""
        if self.ended:
            return
        self.received += 1
        if self.direct:
            self.delivery.call(self, item)
        elif self.queue.push(item, weight) and not self.marked:
            mark = self.mark
            if mark is not None:
                mark(self)
                self.marked = True

    def commit(self) -> None:
        """Wake one waiter if there are items; a waiter that leaves some wakes the next."""
        self.marked = False
        queue = self.queue
        queue.chunk = b""
        if queue.items:
            takers = self.takers
            interrupt = takers.interrupt
            if interrupt is not None:
                interrupt()
            if takers.wakers:
                takers.wake()
            elif self.delivery.callback is not None and not self.delivery.started:
                self.start()

    def end(self) -> None:
        """Take no more items in; those inside are still handed out."""
        with self.guard:
            if self.ended:
                return
            self.ended = True
        _living.discard(self)
        delivery = self.delivery
        if self.direct:
            delivery.finish(self)
        elif delivery.callback is not None and not delivery.started:
            if self.queue.items or delivery.drop is not None:
                self.start()
            else:
                delivery.done = True
        self.takers.wake_all()
        self.back_pressure.drained()

    def discard(self) -> None:
        """Drop the items inside."""
        self.queue.discard()

    # --------------------------------------------------------------------------- back-pressure

    def is_full(self) -> bool:
        """Whether the links that feed it should pause."""
        return self.queue.is_full() and not self.back_pressure.lifted and not self.ended

    def add_paused(self, link: Pausable) -> bool:
        """Have a link resumed when there is room again; False if there is room already."""
        with self.guard:
            self.back_pressure.watched = True
            if self.is_full():
                self.back_pressure.links.append(link)
                return True
        return False

    def wait_for_room(self, patience: float = PATIENCE) -> None:
        """Have a program that feeds its own channel wait a while; never a thread that empties."""
        back_pressure = self.back_pressure
        if back_pressure.stuck or delivering() is not None:
            return
        on_loop = self.on_loop
        if on_loop is not None and on_loop():
            return
        waker = Lock()
        waker.acquire()
        back_pressure.wakers.append(waker)
        back_pressure.watched = True
        if self.is_full() and not waker.acquire(timeout=patience):
            back_pressure.stuck = True

    # --------------------------------------------------------------------------------- taking

    def take(self, wait: bool = True) -> object:
        """The next item; `END` when there will be none, None when there is none and no wait."""
        queue = self.queue
        items = queue.items
        while True:
            if items:
                try:
                    item = queue.first()
                except IndexError:
                    continue
                return self._taken(item)
            if self.ended:
                if items:
                    continue
                return END
            if not wait:
                return None
            self._park()

    def _taken(self, item: object) -> object:
        self.delivered += 1
        queue = self.queue
        if isinstance(item, Heavy):
            queue.lighten(item.weight)
            item = item.item
        if self.back_pressure.watched and queue.is_half_empty():
            self.back_pressure.drained()
        if queue.items and self.takers.wakers:
            self.takers.wake()  # there is enough for another waiter
        return item

    def _park(self) -> None:
        """Wait until there is something to take."""
        on_loop = self.on_loop
        if on_loop is not None and on_loop():
            raise ZError(
                "nothing is here yet, and the loop thread must not wait for it: "
                "use try_recv(), or wait on another thread"
            )
        poll = self.takers.poll
        waiting = begin_wait()
        try:
            if poll is None or not poll(self):
                self.takers.sleep(self)
        finally:
            end_wait(waiting)

    def orphan(self) -> None:
        """End it in a child process: no thread feeds it there, and no lock is released."""
        guard = Lock()
        self.guard = guard
        self.queue.guard = guard
        self.back_pressure.guard = guard
        self.back_pressure.wakers = deque()
        self.takers.wakers = deque()
        self.ended = True
        self.delivery.done = True


#: Channels that are not ended.
_living: set[Channel] = set()


def live(channel: Channel) -> None:
    """Have a channel ended in a child of this process, where no thread feeds it."""
    _living.add(channel)


def _after_fork() -> None:
    forget_threads()
    for channel in list(_living):
        channel.orphan()
    _living.clear()


os.register_at_fork(after_in_child=_after_fork)
