"""A channel: what crosses from the thread that hears to the thread that takes.

    push  ──►  deque  ──►  take                 a program that calls recv(), or iterates
    push  ──►  deque  ──►  callback             a thread of the channel's own
    push  ──────────────►  callback             the thread that hears (`direct`)

Pushing appends and nothing else; `commit` wakes whoever waits, once for all that was pushed.
Nobody is forgotten between the two: who waits first says so and then looks once more, who pushes
first appends and then looks who waits. Both orders are kept by the interpreter's lock.

A channel is bounded by items and by bytes. When it is full the links that feed it are read no
more until it is half empty; a ring drops its oldest item instead.
"""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Final, Protocol

from zenlake.errors import ZError

log = logging.getLogger("zenlake")

#: How many items a channel holds when nobody says otherwise.
ITEMS: Final = 65536
#: How many bytes a channel holds.
BYTES: Final = 64 << 20
#: Items up to this size are bounded by their number alone, and not weighed.
LIGHT: Final = 1024
#: How often its bound a channel holds while nobody may be paused for it.
SLACK: Final = 4
#: How long a program that feeds its own full channel waits for room.
PATIENCE: Final = 1.0


class Pausable(Protocol):
    """A link that can be read again."""

    def resume_soon(self) -> None:
        """Read on; from any thread."""


class Waker(Protocol):
    """What somebody who waits is let through by: a lock, or the bell of a task."""

    def release(self) -> None:
        """Let them through; from any thread."""


class Heavy:
    """An item whose bytes are counted."""

    __slots__ = ("item", "weight")

    def __init__(self, item: object, weight: int) -> None:
        """`weight` in bytes."""
        self.item: object = item
        self.weight: int = weight


class End:
    """What is taken from a channel that is empty and closed."""


END: Final = End()


class Channel:
    """A bounded queue between threads, or a callback."""

    __slots__ = (
        "add", "bell", "callback", "capacity", "chunk", "delivered", "direct", "done", "drop",
        "dropped_cancelled", "dropped_full", "dropped_oldest", "ended", "first", "gates", "guard",
        "held", "helper", "items", "lifted", "limit", "mark", "marked", "name", "of_chunk",
        "on_loop", "paused", "received", "releasing", "ring", "rooms", "started", "stuck",
        "watched",
    )  # fmt: skip

    def __init__(self, capacity: int = ITEMS, ring: bool = False) -> None:
        """For a program that takes; `deliver` makes it one that calls."""
        self.capacity: int = max(1, capacity)
        self.ring: bool = ring
        self.limit: int = max(SLACK * self.capacity, ITEMS)
        self.items: deque[object] = deque()
        self.add: Callable[[object], None] = self.items.append
        self.first: Callable[[], object] = self.items.popleft
        #: The read that the last item lies in, until the next commit, and how many lie there.
        self.chunk: bytes = b""
        self.of_chunk: int = 0
        #: Bytes of heavy items inside.
        self.held: int = 0
        self.received: int = 0
        self.delivered: int = 0
        self.dropped_oldest: int = 0
        self.dropped_full: int = 0
        self.dropped_cancelled: int = 0
        self.guard: Lock = Lock()
        #: The gates of those who wait for an item, and of those who wait for room or the end.
        self.gates: deque[Waker] = deque()
        self.rooms: deque[Waker] = deque()
        self.ended: bool = False
        self.done: bool = False
        #: Whether somebody wants to hear that it is half empty.
        self.watched: bool = False
        self.paused: list[Pausable] = []
        self.lifted: int = 0
        self.stuck: bool = False
        #: Reads the links of the node in place of the loop, if that is wanted.
        self.helper: Callable[[Channel], bool] | None = None
        #: Calls a thread back that reads links for this channel.
        self.bell: Callable[[], None] | None = None
        self.marked: bool = False
        self.mark: Callable[[Channel], None] | None = None
        self.on_loop: Callable[[], bool] | None = None
        self.callback: Callable[[object], object] | None = None
        self.drop: Callable[[], object] | None = None
        self.direct: bool = False
        self.started: bool = False
        #: Whether its own thread is letting go of an item just now.
        self.releasing: bool = False
        self.name: str = ""

    def deliver(
        self,
        callback: Callable[[object], object],
        drop: Callable[[], object] | None,
        direct: bool,
        name: str,
    ) -> None:
        """Call `callback` for each item, and `drop` after the last one."""
        self.callback = callback
        self.drop = drop
        self.direct = direct
        self.name = name

    # -------------------------------------------------------------------------------- feeding

    def push(self, item: object, weight: int) -> None:
        """Add an item; `weight` in bytes."""
        if self.ended:
            return
        self.received += 1
        if self.direct:
            self._call(item)
            return
        items = self.items
        if self.ring:
            while len(items) >= self.capacity and self._drop_oldest():
                pass
        elif len(items) >= self.limit or self.held > SLACK * BYTES:
            self.dropped_full += 1
            self.chunk = b""
            return
        if weight > LIGHT:
            with self.guard:
                self.held += weight
            self.add(Heavy(item, weight))
        else:
            self.add(item)
        if not self.marked:
            mark = self.mark
            if mark is not None:
                mark(self)
                self.marked = True

    def _drop_oldest(self) -> bool:
        try:
            item = self.items.popleft()
        except IndexError:
            return False  # somebody took it meanwhile
        if isinstance(item, Heavy):
            self._lighten(item.weight)
        self.dropped_oldest += 1
        return True

    def commit(self) -> None:
        """Wake whoever waits, if there is something for them."""
        self.marked = False
        self.chunk = b""
        if self.items:
            bell = self.bell
            if bell is not None:
                bell()
            if self.gates:
                self._wake()
            elif not self.started and self.callback is not None:
                self.start()

    def _wake(self) -> None:
        try:  # noqa: SIM105  (this is hot, and compiled)
            self.gates.popleft().release()
        except IndexError:
            pass  # they were woken by somebody else

    def end(self) -> None:
        """There will be no more; what is inside is still handed over."""
        with self.guard:
            if self.ended:
                return
            self.ended = True
        _living.discard(self)
        if self.direct:
            self._finish()
        elif self.callback is not None and not self.started:
            if self.items or self.drop is not None:
                self.start()
            else:
                self.done = True
        while self.gates:
            self._wake()
        bell = self.bell
        if bell is not None:
            bell()
        self._drained()

    def discard(self) -> None:
        """Forget what is inside."""
        while True:
            try:
                item = self.items.popleft()
            except IndexError:
                break
            if isinstance(item, Heavy):
                self._lighten(item.weight)
            self.dropped_cancelled += 1

    # --------------------------------------------------------------------------- back-pressure

    def is_full(self) -> bool:
        """Whether those who feed it should pause."""
        if self.ring or self.lifted or self.ended:
            return False
        return len(self.items) >= self.capacity or self.held >= BYTES

    def add_paused(self, link: Pausable) -> bool:
        """Have a link resumed when there is room again; False if there is room already."""
        with self.guard:
            self.watched = True
            if self.is_full():
                self.paused.append(link)
                return True
        return False

    def wait_for_room(self, patience: float = PATIENCE) -> None:
        """Have a program that feeds its own channel wait a while; never one that empties it."""
        if self.stuck or get_ident() in _delivering:
            return
        on_loop = self.on_loop
        if on_loop is not None and on_loop():
            return
        gate = Lock()
        gate.acquire()
        self.rooms.append(gate)
        self.watched = True
        if self.is_full() and not gate.acquire(timeout=patience):
            # Perhaps this very thread is the one that takes: it is not kept waiting again.
            self.stuck = True

    def _lighten(self, weight: int) -> None:
        with self.guard:
            self.held -= weight

    def _drained(self) -> None:
        """Tell those who wait for room."""
        with self.guard:
            self.watched = False
            self.stuck = False
            paused = self.paused
            self.paused = []
        for link in paused:
            link.resume_soon()
        while self.rooms:
            try:
                self.rooms.popleft().release()
            except IndexError:
                break

    def lift(self) -> None:
        """Pause nobody for a while: the thread that empties it waits for something else."""
        with self.guard:
            self.lifted += 1
        if self.watched:
            self._drained()

    def settle(self) -> None:
        """The thread that empties it is back."""
        with self.guard:
            self.lifted -= 1

    # --------------------------------------------------------------------------------- taking

    def take(self, wait: bool = True) -> object:
        """The next item; `END` when there will be none, None when there is none and no wait."""
        items = self.items
        while True:
            if items:
                try:
                    item = self.first()
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
        if isinstance(item, Heavy):
            self._lighten(item.weight)
            item = item.item
        items = self.items
        if self.watched and len(items) * 2 <= self.capacity and self.held * 2 <= BYTES:
            self._drained()
        if items and self.gates:
            self._wake()  # there is enough for another who waits
        return item

    def _park(self) -> None:
        """Sleep until there is something to take."""
        on_loop = self.on_loop
        if on_loop is not None and on_loop():
            raise ZError(
                "nothing is here yet, and the loop thread must not wait for it: "
                "use try_recv(), or wait on another thread"
            )
        helper = self.helper
        if helper is not None:
            waiting = begin_wait()
            try:
                if helper(self):
                    return
            finally:
                end_wait(waiting)
        gate = Lock()
        gate.acquire()
        self.gates.append(gate)
        try:
            if not self.items and not self.ended:
                waiting = begin_wait()
                try:
                    gate.acquire()
                finally:
                    end_wait(waiting)
        finally:
            try:
                self.gates.remove(gate)
            except ValueError:
                # Woken: if an exception takes this thread away, another must have the item.
                if self.items and self.gates:
                    self._wake()

    # ----------------------------------------------------------------------------- delivering

    def start(self) -> None:
        """Have the channel's own thread running."""
        with self.guard:
            if self.started:
                return
            self.started = True
        threading.Thread(target=self._run, name=self.name, daemon=True).start()

    def _run(self) -> None:
        """Call for each item until the end: the life of the channel's own thread."""
        me = get_ident()
        _delivering[me] = self
        try:
            while True:
                item = self._next()
                if item is END:
                    break
                self._call(item)
                self.releasing = True
                item = None
                self.releasing = False
        finally:
            self._finish()
            _delivering.pop(me, None)

    def _next(self) -> object:
        items = self.items
        while True:
            try:
                item = self.first()
            except IndexError:
                if self.ended and not items:
                    return END
                self._rest()
                continue
            if isinstance(item, Heavy):
                self._lighten(item.weight)
                item = item.item
            if self.watched and len(items) * 2 <= self.capacity and self.held * 2 <= BYTES:
                self._drained()
            return item

    def _rest(self) -> None:
        """Sleep, on the channel's own thread, until there is something to deliver."""
        helper = self.helper
        if helper is not None and helper(self):
            return
        gate = Lock()
        gate.acquire()
        self.gates.append(gate)
        if self.items or self.ended:
            try:  # noqa: SIM105
                self.gates.remove(gate)
            except ValueError:
                pass  # woken already
        else:
            gate.acquire()

    def _call(self, item: object) -> None:
        callback = self.callback
        if callback is None:
            return
        self.delivered += 1
        try:
            callback(item)
        except BaseException as error:
            # Whatever a program does with one item, the next one is delivered.
            log.exception("%s: the callback failed", self.name)
            # Who keeps the log record must not keep the item: somebody may wait for its end.
            traceback.clear_frames(error.__traceback__)
            item = None

    def _finish(self) -> None:
        drop = self.drop
        self.drop = None
        if drop is not None:
            try:
                drop()
            except BaseException:
                log.exception("%s: the drop function failed", self.name)
        self.done = True
        self._drained()

    def join(self) -> None:
        """Wait until the callback runs no more; at once from inside it."""
        if self.callback is None or self.direct or _delivering.get(get_ident()) is self:
            return
        while not self.done:
            gate = Lock()
            gate.acquire()
            self.rooms.append(gate)
            if self.done:
                return
            waiting = begin_wait()
            try:
                gate.acquire()
            finally:
                end_wait(waiting)


#: Channels that are not ended, so that a child of this process can be told that they are.
_living: set[Channel] = set()
#: By thread: the channel that it empties.
_delivering: dict[int, Channel] = {}


def live(channel: Channel) -> None:
    """Have a channel ended in a child of this process, where nobody feeds it."""
    _living.add(channel)


def delivering() -> Channel | None:
    """The channel that the calling thread empties, if it is a channel's own."""
    return _delivering.get(get_ident())


def begin_wait() -> Channel | None:
    """Before a thread waits: what it empties must not hold up what it waits for."""
    channel = _delivering.get(get_ident())
    if channel is not None:
        channel.lift()
    return channel


def end_wait(channel: Channel | None) -> None:
    """After a thread has waited."""
    if channel is not None:
        channel.settle()


def _after_fork() -> None:
    """A child has none of the threads, and perhaps locks that nobody will release."""
    _delivering.clear()
    for channel in list(_living):
        channel.guard = Lock()
        channel.gates = deque()
        channel.rooms = deque()
        channel.ended = True
        channel.done = True
    _living.clear()


os.register_at_fork(after_in_child=_after_fork)
