"""An outbox that any thread may fill.

`put()` encodes in the caller's thread straight into the open batch. Then, in this order:

* nothing was sent for a moment: the caller writes the batch to the socket itself (latency);
* batches are full: the caller writes the full ones (throughput), several at once when they fill
  up faster than they are worth a write of their own;
* otherwise the loop is asked once to flush (one wake for many messages). While batches fill up
  it then flushes every millisecond by itself, and needs no wake.

Only sockets that we own (tcp, unix) are written from the caller; other links are flushed by the
loop. A lane without room makes the caller wait, as long as the message's congestion control says;
it waits at the socket itself, and writes.

It is composed of machines that each fit on a page:

    Outbox           lanes and batches (transport.outbox)     what is sent, in which order
    Pacing           how much at once (pacing)                when a caller writes
    LinkWriter       the link, its leftover (link_writer)     whether it can be written
    FlushRequest     what the loop was asked for (flushing)   whether the loop is going to write
    CongestionRules  what a full lane means (congestion)      whether a message waits or is dropped
    RoomWaiters      threads, tasks, links (room)             which of them a free lane wakes

States, by two flags:

    link.leftover   empty: the link takes more, and any thread may write it if `link.direct`
                    not empty: the link is *blocked*. Only the loop writes (`request.requested`
                    stays set, the link calls back when writable), or a thread that waits for room
                    and has waited at the socket itself (`link.wait_writable`)
    closed          False: open. True: nothing is accepted, waiters go on, the rest is written

Invariants, whenever the lock is free:

* what was accepted will be written while the link lives: either nothing waits, or
  `request.requested`, or `request.later`, or the thread that added it is about to call `_moved`.
* `leftover` goes before anything `take` returns, so batches leave complete and in order.
* a thread in `_room_within` is counted in `room.threads`; every batch that leaves wakes it.
* a link in `room.links` is paused, and is resumed when no lane is full, or by `shut`.

Locks: `lock` guards the outbox and all machines above. `write` never blocks and is called with it.
Callers may hold the node's lock (`send`, `relay`) and then must not wait; `offer` and `reply` are
called without it. The order is: node's lock, this one, the guard of a channel (`begin_wait`). A
thread waits at the condition, or in `link.wait_writable`, with the lock released.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter

from zenlake.engine.back_pressure import Pausable
from zenlake.engine.congestion import BLOCK, DROP, CongestionRules
from zenlake.engine.delivery import begin_wait, end_wait
from zenlake.engine.flush_request import FlushRequest
from zenlake.engine.link_writer import LinkWriter
from zenlake.engine.mutex import Mutex
from zenlake.engine.pacing import Pacing
from zenlake.engine.room import RoomWaiters
from zenlake.errors import LinkError, LocalError
from zenlake.transport.outbox import Outbox
from zenlake.wire.cursor import Writer
from zenlake.wire.message import Message

log = logging.getLogger("zenlake.engine")


class SharedOutbox(Outbox):
    """An outbox with a lock, and the link that it empties into."""

    def __init__(
        self,
        stream: bool,
        depth: int,
        flush_soon: Callable[[Outbox], None],
        is_loop: Callable[[], bool],
        wait_before_drop: float,
        wait_before_close: float,
    ) -> None:
        """`flush_soon` has the loop call `flush` soon; it may be called from any thread."""
        super().__init__(65535, 2 if stream else 0, 0x0FFF_FFFF, 0, False, depth)
        self.lock: Mutex = Mutex()
        self.is_loop: Callable[[], bool] = is_loop
        self.link: LinkWriter = LinkWriter()
        self.pacing: Pacing = Pacing(depth)
        self.request: FlushRequest = FlushRequest(flush_soon)
        self.congestion: CongestionRules = CongestionRules(wait_before_drop, wait_before_close)
        self.room: RoomWaiters = RoomWaiters(self.lock)

    def attach(
        self,
        write: Callable[[bytes], int],
        direct: bool = False,
        burst: int = 0,
        wait_writable: Callable[[float], None] | None = None,
    ) -> None:
        """Empty into a link from now on.

        `direct`: any thread may call `write`, and `wait_writable`; `burst`: how many bytes it is
        given at once, while it takes them.
        """
        link = self.link
        link.write = write
        link.direct = direct
        link.wait_writable = wait_writable
        self.pacing.burst = burst

    def detach(self) -> None:
        """Write no more: the link is closed."""
        self.link.write = None

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
                if self.closed:
                    return False
                if not self._wait(priority, reliable, congestion):
                    self.lose(priority, [head], 1)
                    return False
            self._moved(express)
            return True
        finally:
            self.lock.release()

    def offer_message(
        self, message: Message, priority: int, reliable: bool, congestion: int, express: bool
    ) -> bool:
        """Add any publication or query, from any thread."""
        w = Writer()
        message.write(w)
        data = b"".join(w.parts)
        self.lock.acquire()
        try:
            while not self.send_encoded(data, priority, reliable, False):
                if self.closed:
                    return False
                if not self._wait(priority, reliable, congestion):
                    self.lose(priority, [data], 1)
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
        *,
        force: bool = False,
        awaited: bool = False,
    ) -> bool:
        """Send a message of the node's own; never waits: the node's lock is held."""
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
                self.lose(priority, [data], 1)
            return taken
        finally:
            self.lock.release()

    def reply(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        """Add a reply, from any thread; the final response behind it writes it, or a later flush.

        Replies come together, and the querier waits for the last one: writing each by itself would
        cost both sides more than the moment that they wait for each other.
        """
        self.lock.acquire()
        try:
            while not self.push(head, payload, priority, True):
                if self.is_loop():
                    if not self._reply_beyond(head, payload, priority, hold):
                        return False
                    break
                if self.closed:
                    return False
                if not self._wait(priority, True, BLOCK if hold else DROP):
                    self.lose(priority, [head], 1)
                    return False
            if self.held or not self.request.ask_later(self):
                self._moved(False)
            return True
        finally:
            self.lock.release()

    def pass_on(self, head: bytes, payload: bytes, priority: int, hold: bool) -> bool:
        """Add a reply of another neighbour; never waits: the node's lock is held."""
        self.lock.acquire()
        try:
            taken = super().reply(head, payload, priority, hold)
            if taken and self.is_loop():
                self._ask()
            elif taken:
                self._moved(False)
            return taken
        finally:
            self.lock.release()

    def relay(
        self, parts: list[bytes], size: int, count: int, priority: int, reliable: bool, hold: bool
    ) -> bool:
        """Pass on messages of another neighbour; never waits: the node's lock is held."""
        self.lock.acquire()
        try:
            on_loop = self.is_loop()
            link = self.link
            if self.full(priority) and not link.leftover and (link.direct or on_loop):
                self._flush(True)
            taken = super().relay(parts, size, count, priority, reliable, hold)
            if taken and on_loop:
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
        """Add the Close message, behind all that waits."""
        super().send_close(batch)
        self._ask()

    def _moved(self, express: bool) -> None:
        """Write what was added now, or have it written soon. The lock is held."""
        link = self.link
        if link.direct and not link.leftover:
            if self.held and not express:
                # A batch is full: the caller that filled it writes it. The open one can wait.
                self.request.streaming = True
                if self.held != self.pacing.weighed:
                    self._burst()
            elif express or not self.request.requested:
                now = perf_counter()
                if express or self.pacing.is_idle(now):
                    self.pacing.last_direct = now
                    if not self._flush(False):
                        self._ask()
                    return
        self._ask()

    def _burst(self) -> None:
        """Write the batches that are full, unless more will be soon. The lock is held."""
        if self.pacing.is_burst_due(self.held, perf_counter()):
            self._flush(True)
        self.pacing.weighed = self.held

    def _ask(self) -> None:
        """Have the loop flush. The lock is held."""
        if not self.request.requested:
            self.request.request_flush(self)

    def _wait(self, priority: int, reliable: bool, control: int) -> bool:
        """Wait for room, as long as the message may; False if it is to be dropped.

        The lock is held.
        """
        if self.refused:
            if not self.oversized:
                log.warning(
                    "a message was dropped: a low-latency session takes at most %d bytes at once; "
                    "further ones are only counted",
                    self.framing.limit,
                )
            return False
        link = self.link
        if link.direct and not link.leftover:
            self._flush(True)
            if not self.full(priority):
                return True
        congestion = self.congestion
        on_loop = self.is_loop()
        droppable = congestion.may_drop(priority, reliable, control)
        if on_loop or link.wait_writable is None or (droppable and congestion.congested[priority]):
            self._ask()  # other threads write it themselves while they wait
        if droppable:
            if congestion.congested[priority] or on_loop:
                return False
            if self._room_within(priority, congestion.wait_before_drop):
                return True
            self.give_up(priority, True)
            return False
        if on_loop:
            raise LocalError(
                "this message would have to wait for room, and the loop thread must not wait: "
                "publish from another thread, or with congestion control DROP"
            )
        congestion.blocking[priority] = True
        try:
            if self._room_within(priority, congestion.wait_before_close):
                return True
        finally:
            congestion.blocking[priority] = False
        self.give_up(priority, False)
        return False

    def give_up(self, priority: int, droppable: bool) -> None:
        """A message found no room in time: perhaps the neighbour is given up."""
        congestion = self.congestion
        if droppable:
            congestion.congested[priority] = True
            return
        unresponsive = congestion.unresponsive
        if unresponsive is not None and not self.closed:
            unresponsive()

    def _room_within(self, priority: int, seconds: float) -> bool:
        """Wait until the lane has room. The lock is held, and released while the thread waits."""
        deadline = perf_counter() + seconds
        link = self.link
        # A callback that waits here must not hold up the link that would make room for it.
        waiting = begin_wait()
        self.room.threads += 1
        try:
            while self.full(priority):
                left = deadline - perf_counter()
                if left <= 0 or self.closed:
                    self._ask()
                    return False
                wait_writable = link.wait_writable
                if wait_writable is None or not link.leftover or link.write is None:
                    self.room.condition.wait(left)
                    continue
                # This thread waits at the socket and writes: no other thread has to be woken.
                self.lock.release()
                try:
                    wait_writable(left)
                except BaseException:
                    self.lock.acquire()
                    self._ask()
                    raise
                self.lock.acquire()
                if link.leftover:
                    self._flush(True)
            return not self.closed
        finally:
            self.room.threads -= 1
            end_wait(waiting)

    # ------------------------------------------------------------------------------- emptying

    def flush(self) -> bool:
        """Write what there is, on the loop; False if the link must become writable first."""
        self.lock.acquire()
        try:
            done = self._flush(False)
            self.request.flushed(done)
            return done
        finally:
            self.lock.release()

    def _flush(self, closed_only: bool) -> bool:
        """Write batches until the link takes no more. The lock is held.

        `closed_only`: leave the batch that is being filled. False if the link is blocked.
        """
        link = self.link
        write = link.write
        if write is None:
            return True
        pacing = self.pacing
        try:
            while True:
                data = link.leftover
                fresh = not data
                if fresh:
                    if closed_only and not self._has_closed():
                        return True
                    data = self.take(pacing.stride, closed_only)
                    if not data:
                        return True
                if not link.took(data, write(data)):
                    pacing.took_part()
                    self.depth = pacing.depth
                    return False
                if fresh:
                    pacing.took_all(len(data))
                    self.depth = pacing.depth
                self._freed()
        except LinkError as error:
            # The reader of the link reports it; here there is only nothing left to do.
            link.failed(error)
            return True

    def _has_closed(self) -> bool:
        return self.held > 0 or len(self.urgent) > 0

    def _freed(self) -> None:
        """A batch has left: lanes have room again. The lock is held."""
        congested = self.congestion.congested
        for priority in range(8):
            if congested[priority] and not self.full(priority):
                congested[priority] = False
        self.room.freed()
        if self.room.links and not self._any_full():
            self.room.resume_links()

    def _any_full(self) -> bool:
        for lane in self.lanes:  # noqa: SIM110  (this is compiled)
            if len(lane.queue) >= self.depth:
                return True
        return False

    def add_paused(self, link: Pausable) -> bool:
        """Have a link resumed when there is room again; False if there is room already."""
        self.lock.acquire()
        try:
            if self.closed or not self._any_full():
                return False
            self.room.links.append(link)
            return True
        finally:
            self.lock.release()

    def shut(self) -> None:
        """Accept nothing more, and let all waiters go on."""
        self.lock.acquire()
        try:
            self.closed = True
            self.leave_pool()
            self.room.closed()
        finally:
            self.lock.release()
