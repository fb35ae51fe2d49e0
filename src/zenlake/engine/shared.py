"""An outbox that any thread may fill.

`put()` encodes in the caller's thread straight into the open batch. Then, in this order:

* nothing was sent for a moment: the caller writes the batch to the socket itself (latency);
* batches are full: the caller writes the full ones (throughput), several at once when they fill
  up faster than they are worth a write of their own;
* otherwise the loop is asked once to flush (one wake for many messages). While batches fill up
  it then comes by itself every millisecond: nobody needs to wake it.

Only sockets that we own (tcp, unix) are written from the caller; other links are flushed by the
loop. A lane without room makes the caller wait, as long as the message's congestion control says;
it waits at the socket itself, and writes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Final, cast

from zenlake.engine.channel import Pausable, Waker, begin_wait, end_wait
from zenlake.engine.mutex import Mutex
from zenlake.errors import LinkError, LocalError
from zenlake.transport.outbox import Outbox
from zenlake.wire.cursor import Writer
from zenlake.wire.message import Message

log = logging.getLogger("zenlake.engine")

DROP: Final = 0
BLOCK: Final = 1
BLOCK_FIRST: Final = 2

#: Full batches go together when there are as many as the link takes at once, or when none went for
#: so many seconds: a write wakes the other side, which costs both more than copying a batch.
LINGER: Final = 200e-6

#: A caller that comes this long after the last write of its kind writes the socket itself.
IDLE: Final = 50e-6


class SharedOutbox(Outbox):
    """An outbox with a lock, and the link that it empties into."""

    def __init__(
        self,
        stream: bool,
        depth: int,
        ask_flush: Callable[[SharedOutbox], None],
        is_loop: Callable[[], bool],
        wait_before_drop: float,
        wait_before_close: float,
    ) -> None:
        """`ask_flush` has the loop call `flush` soon; it may be called from any thread."""
        super().__init__(65535, 2 if stream else 0, 0x0FFF_FFFF, 0, False, depth)
        self.lock: Mutex = Mutex()
        self.room: threading.Condition = threading.Condition(cast(threading.Lock, self.lock))
        self.waiters: int = 0
        self.ask_flush: Callable[[SharedOutbox], None] = ask_flush
        self.is_loop: Callable[[], bool] = is_loop
        self.wait_before_drop: float = wait_before_drop
        self.wait_before_close: float = wait_before_close
        #: Writes to the link without waiting, and says how much was taken; None: no link.
        self.write: Callable[[bytes], int] | None = None
        #: Whether callers may write the link themselves.
        self.direct: bool = False
        #: The part of a batch that the link did not take.
        self.leftover: bytes = b""
        self.flush_asked: bool = False
        #: Waits until the link may take more, on any thread; None: only the loop can tell.
        self.wait_writable: Callable[[float], None] | None = None
        #: Whether callers have filled batches since the loop came, and whether it comes again.
        self.streaming: bool = False
        self.comes_again: bool = False
        self.last_direct: float = 0.0
        #: When full batches were written last, and what was held when somebody thought of it.
        self.last_burst: float = 0.0
        self.weighed: int = 0
        #: How many bytes the link is given at once, now and at most; 0: each batch by itself.
        self.stride: int = 0
        self.burst: int = 0
        #: How many batches a lane holds while the link is slow.
        self.shallow: int = depth
        #: What the link has taken, in bytes.
        self.written: int = 0
        #: By priority: nothing has left this lane since a message was dropped on it.
        self.congested: list[bool] = [False] * 8
        #: By priority: somebody who may block is blocking already.
        self.blocking: list[bool] = [False] * 8
        #: Called when a message that may not be dropped found no room in time.
        self.unresponsive: Callable[[], None] | None = None
        self.broken: Exception | None = None
        #: Rung once when a batch has left: tasks wait for room by these.
        self.bells: list[Waker] = []
        #: Has somebody look soon what is left to write; False: nobody will.
        self.look_later: Callable[[SharedOutbox], bool] | None = None
        #: Whether somebody will.
        self.later: bool = False
        #: Links that are not read until no lane holds more than it should.
        self.paused: list[Pausable] = []
        #: Whether somebody looks after them.
        self.watched: bool = False

    def write_at_once(self, burst: int) -> None:
        """Give the link up to so many bytes at once, while it takes them."""
        self.burst = burst

    def _pace(self, stride: int) -> None:
        """Give the link so many bytes at once; every lane has room for as much.

        A link that does not take all at once is given little, so that what is urgent does not
        wait behind much, and that those who wait for room see some soon.
        """
        self.stride = min(stride, self.burst)
        self.depth = max(self.shallow, self.stride // 65535)

    # ------------------------------------------------------------------------------- filling

    def offer(
        self,
        head: bytes,
        payload: bytes,
        priority: int,
        reliable: bool,
        congestion: int,
        express: bool,
    ) -> bool:
        """Add a publication, from any thread."""
        self.lock.acquire()
        try:
            while not self.push(head, payload, priority, reliable):
                if self.closed or not self._wait(priority, reliable, congestion):
                    return False
            self._moved(express)
            return True
        finally:
            self.lock.release()

    def offer_message(
        self, message: Message, priority: int, reliable: bool, congestion: int, express: bool
    ) -> bool:
        """Add any publication or question, from any thread."""
        w = Writer()
        message.write(w)
        data = b"".join(w.parts)
        self.lock.acquire()
        try:
            while not self.send_encoded(data, priority, reliable, False):
                if self.closed or not self._wait(priority, reliable, congestion):
                    return False
            self._moved(express)
            return True
        finally:
            self.lock.release()

    def send(
        self,
        message: Message,
        priority: int,
        reliable: bool,
        force: bool = False,
        awaited: bool = False,
    ) -> bool:
        """Say something of the node's own; never waits: the node's lock is held."""
        w = Writer()
        message.write(w)
        data = b"".join(w.parts)
        self.lock.acquire()
        try:
            taken = self.send_encoded(data, priority, reliable, force)
            if taken:
                # On the loop, what one chunk brings about is flushed together at its end.
                if self.is_loop():
                    self._ask()
                else:
                    self._moved(awaited)
            else:
                self.drops[priority] += 1
            return taken
        finally:
            self.lock.release()

    def reply(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        """Add an answer, from any thread; the word that there are no more writes it, or a look.

        Answers come together, and whoever asked waits for the last one: each for itself would
        cost them and us more than the moment that they wait for each other.
        """
        self.lock.acquire()
        try:
            while not self.push(head, payload, priority, True):
                if self.is_loop():
                    if not self._reply_beyond(head, payload, priority, hold):
                        return False
                    break
                if self.closed or not self._wait(priority, True, BLOCK if hold else DROP):
                    return False
            if self.held or not self._left_for_later():
                self._moved(False)
            return True
        finally:
            self.lock.release()

    def _left_for_later(self) -> bool:
        """Whether somebody will look soon whether anything is left to write."""
        if self.later:
            return True
        look_later = self.look_later
        if look_later is None:
            return False
        self.later = True
        if look_later(self):
            return True
        self.later = False
        return False

    def relay(
        self, parts: list[bytes], size: int, count: int, priority: int, reliable: bool, hold: bool
    ) -> bool:
        """Pass on what others say; never waits: the node's lock is held."""
        self.lock.acquire()
        try:
            here = self.is_loop()
            if self.full(priority) and not self.leftover and (self.direct or here):
                self._flush(True)
            taken = super().relay(parts, size, count, priority, reliable, hold)
            if taken and here:
                self._ask()
            elif taken:
                self._moved(False)
            return taken
        finally:
            self.lock.release()

    def send_transport(self, batch: bytes) -> None:
        """Add transport messages, before everything else."""
        super().send_transport(batch)
        self._ask()

    def send_close(self, batch: bytes) -> None:
        """Add the closing word, behind all that waits."""
        super().send_close(batch)
        self._ask()

    def _moved(self, express: bool) -> None:
        """Something was added: write it now, or have it written soon. The lock is held."""
        if self.direct and not self.leftover:
            if self.held and not express:
                # A batch is full: whoever filled it writes it. What is in the next one can wait.
                self.streaming = True
                if self.held != self.weighed:
                    self._burst()
            elif express or not self.flush_asked:
                now = perf_counter()
                if express or now - self.last_direct > IDLE:
                    self.last_direct = now
                    if not self._flush(False):
                        self._ask()
                    return
        self._ask()

    def _burst(self) -> None:
        """Write the batches that are full, unless more will be soon. The lock is held."""
        now = perf_counter()
        if self.held >= self.stride - (self.stride >> 3) or now - self.last_burst > LINGER:
            self.last_burst = now
            self._flush(True)
        self.weighed = self.held

    def _ask(self) -> None:
        if not self.flush_asked:
            self.flush_asked = True
            self.ask_flush(self)

    def _wait(self, priority: int, reliable: bool, congestion: int) -> bool:
        """Wait for room, as long as the message may; False if it is dropped. The lock is held."""
        if self.refused:
            self.refused = False
            if self.oversized == 1:
                log.warning(
                    "a message was dropped: a low-latency session takes at most %d bytes at once; "
                    "further ones are only counted",
                    self.limit,
                )
            return False
        if self.direct and not self.leftover:
            self._flush(True)
            if not self.full(priority):
                return True
        here = self.is_loop()
        droppable = self.may_drop(priority, reliable, congestion)
        if here or self.wait_writable is None or (droppable and self.congested[priority]):
            self._ask()  # others write it themselves while they wait
        if droppable:
            if self.congested[priority] or here:
                self.drops[priority] += 1
                return False
            if self._room_within(priority, self.wait_before_drop):
                return True
            self.give_up(priority, True)
            return False
        if here:
            raise LocalError(
                "this message would have to wait for room, and the loop thread must not wait: "
                "publish from another thread, or with congestion control DROP"
            )
        self.blocking[priority] = True
        try:
            if self._room_within(priority, self.wait_before_close):
                return True
        finally:
            self.blocking[priority] = False
        self.give_up(priority, False)
        return False

    def may_drop(self, priority: int, reliable: bool, congestion: int) -> bool:
        """Whether a message that finds no room may be dropped, and waits but a moment."""
        if not reliable or congestion == DROP:
            return True
        return congestion == BLOCK_FIRST and self.blocking[priority]

    def give_up(self, priority: int, droppable: bool) -> None:
        """A message found no room in time: dropped, or a neighbour who is at fault."""
        self.drops[priority] += 1
        if droppable:
            self.congested[priority] = True
            return
        unresponsive = self.unresponsive
        if unresponsive is not None and not self.closed:
            unresponsive()

    def _room_within(self, priority: int, seconds: float) -> bool:
        """Wait until the lane has room."""
        deadline = perf_counter() + seconds
        # A callback that waits here must not hold up the link that would make room for it.
        waiting = begin_wait()
        self.waiters += 1
        try:
            while self.full(priority):
                left = deadline - perf_counter()
                if left <= 0 or self.closed:
                    self._ask()
                    return False
                wait_writable = self.wait_writable
                if wait_writable is None or not self.leftover or self.write is None:
                    self.room.wait(left)
                    continue
                # No other thread has to be woken for what this one can do itself.
                self.lock.release()
                try:
                    wait_writable(left)
                except BaseException:
                    self.lock.acquire()
                    self._ask()
                    raise
                self.lock.acquire()
                if self.leftover:
                    self._flush(True)
            return not self.closed
        finally:
            self.waiters -= 1
            end_wait(waiting)

    # ------------------------------------------------------------------------------- emptying

    def flush(self) -> bool:
        """Write what there is, on the loop; False if the link must become writable first."""
        self.lock.acquire()
        try:
            done = self._flush(False)
            self.comes_again = done and self.streaming
            self.streaming = False
            # While the link is not writable nobody needs to ask: it will call.
            self.flush_asked = not done or self.comes_again
            return done
        finally:
            self.lock.release()

    def _flush(self, closed_only: bool) -> bool:
        """Write batches until the link takes no more; the lock is held."""
        write = self.write
        if write is None:
            return True
        try:
            while True:
                data = self.leftover
                whole = not data
                if whole:
                    if closed_only and not self._has_closed():
                        return True
                    data = self.take(self.stride, closed_only)
                    if not data:
                        return True
                taken = write(data)
                self.written += taken
                if taken < len(data):
                    self.leftover = data[taken:]
                    self._pace(0)
                    return False
                self.leftover = b""
                if whole and self.stride < self.burst and len(data) > self.stride >> 1:
                    self._pace(2 * len(data))
                self._freed()
        except LinkError as error:
            # Whoever reads the link will hear of it; here there is only nothing left to do.
            self.broken = error
            self.leftover = b""
            return True

    def _has_closed(self) -> bool:
        return self.held > 0 or len(self.urgent) > 0

    def _freed(self) -> None:
        """A batch has left: lanes have room again."""
        for priority in range(8):
            if self.congested[priority] and not self.full(priority):
                self.congested[priority] = False
        if self.waiters:
            self.room.notify_all()
        if self.bells:
            self._ring()
        if self.paused and not self._crowded():
            self._resume()

    def _crowded(self) -> bool:
        for lane in self.lanes:  # noqa: SIM110  (this is compiled)
            if len(lane.queue) >= self.depth:
                return True
        return False

    def _resume(self) -> None:
        paused = self.paused
        self.paused = []
        for link in paused:
            link.resume_soon()

    def add_paused(self, link: Pausable) -> bool:
        """Have a link resumed when there is room again; False if there is room already."""
        self.lock.acquire()
        try:
            if self.closed or not self._crowded():
                return False
            self.paused.append(link)
            return True
        finally:
            self.lock.release()

    def _ring(self) -> None:
        bells = self.bells
        self.bells = []
        for bell in bells:
            bell.release()

    def shut(self) -> None:
        """Take nothing more; whoever waits is told."""
        self.lock.acquire()
        try:
            self.closed = True
            self.room.notify_all()
            self._ring()
            self._resume()
        finally:
            self.lock.release()
