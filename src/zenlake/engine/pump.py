"""Between a link and a node: bytes in, bytes out, and the end of both.

States: *running* from `start`; *paused* while `pauses` counts waits of channels and outboxes that
are full (the link is not read); *draining* after `finish` (what waits is written); *ending* (the
writing half is shut down, and what arrives is dropped until the other side ends, too; both take at
most `LAST_WORDS` seconds); *closed*. A pump lives on the loop thread; `received` may run on the
thread that polls (see `polling`), under the node's lock, and `pause` and `resume_soon` on any.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from zenlake.clock import ZenohId
from zenlake.engine.arenas import LARGE_READ, keep_arenas
from zenlake.engine.shared import SharedOutbox
from zenlake.errors import LinkError
from zenlake.links.link import UnicastLink
from zenlake.links.stream import READ_SIZE
from zenlake.node.incidents import LIMIT
from zenlake.node.rejections import host_of
from zenlake.node.sessions.admission import LinkIdentity
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.node.sessions.rates import RateLimit
from zenlake.transport.handshake import UNRESPONSIVE
from zenlake.transport.outbox import DATA, Outbox
from zenlake.transport.transcript import IN, OUT, Transcript

if TYPE_CHECKING:
    from zenlake.engine.handlers import ChannelSink
    from zenlake.engine.running_node import RunningNode

log = logging.getLogger("zenlake.engine")
transcript = logging.getLogger("zenlake.transcript")

#: How long a link that is to be closed may take for what still waits.
LAST_WORDS = 1.0
#: How much one read of packed batches should become: what is handled in small bites stays in the
#: processor's cache, and the memory of one is there for the next.
BITE = 1 << 18
#: How much is read at once of a link that sends more than its turns handle: reading takes time
#: too, while the others wait, and the rest can wait in the socket.
MOUTHFUL = 1 << 17
#: How often the loop comes to a link that programs fill faster, in seconds.
MEANWHILE = 0.001


class LinkPoller(Protocol):
    """Reads links in the loop's place."""

    def remove(self, pump: Pump) -> None:
        """Leave a link to the loop; on the loop thread."""

    def resumed(self, pump: Pump) -> None:
        """Read a link again that was paused; on the loop thread."""


class Pump:
    """Moves the bytes of one neighbour; lives on the loop thread."""

    def __init__(
        self,
        runtime: RunningNode,
        link: UnicastLink,
        neighbour: Neighbour,
        forget: Callable[[Pump], None],
    ) -> None:
        """Nothing moves before `start`; `forget` is called when the link is closed."""
        self._forget = forget
        self.runtime = runtime
        self.link = link
        self.neighbour = neighbour
        neighbour.link_identity = lambda: link_identity(link)
        assert neighbour.unicast is not None
        self.unicast = neighbour.unicast
        outbox = self.unicast.outbox
        assert isinstance(outbox, SharedOutbox)
        self.outbox = outbox
        self.closed = False
        self.pauses = 0
        #: Who polls the link in the loop's place, if somebody does.
        self.poller: LinkPoller | None = None
        #: Whether more was read than the neighbour's turn had time for, and whether the link has
        #: ended behind that.
        self._behind = False
        self._mouthful = False
        self._ended: list[Exception | None] = []
        limits = runtime.node.settings.limits
        self._rate: RateLimit | None = None
        if limits.messages_a_second or limits.bytes_a_second:
            self._rate = RateLimit(limits.messages_a_second, limits.bytes_a_second, monotonic())
        self._counted = 0

    def start(self) -> None:
        """Begin."""
        self.outbox.congestion.unresponsive = self._unresponsive
        if transcript.isEnabledFor(logging.DEBUG):
            TranscribedLink(self).begin()
        else:
            self.begin(self.link.send, self.received)
        self.flush()

    def begin(self, write: Callable[[bytes], int], on_data: Callable[[bytes], None]) -> None:
        """Have the outbox emptied by `write`, and what the link reads given to `on_data`."""
        link = self.link
        wait_writable = link.wait_writable if link.thread_safe else None
        self.outbox.attach(write, link.thread_safe, link.burst, wait_writable)
        link.start(on_data, self.lost)

    def received(self, data: bytes) -> None:
        """Give bytes to the node, commit channels, and pause if one of them is full."""
        if len(data) >= LARGE_READ:
            keep_arenas()
        runtime = self.runtime
        now = monotonic()
        with runtime.lock:
            runtime.node.receive(self.neighbour, data, now)
            marked = runtime.take_marked()
            crowded = self._take_crowded()
        unpacked = self.unicast.unpacked
        if unpacked:
            self.link.read_at_most(BITE * len(data) // unpacked)
        if self.unicast.behind and not self._behind:
            # Others have their turn before the rest of it, and before this link is read again.
            self._behind = True
            if not unpacked:
                self._mouthful = True
                self.link.read_at_most(MOUTHFUL)
            self.pause()
            if runtime.loop.is_current():
                runtime.loop.loop.call_soon(self._go_on)
            else:
                runtime.loop.soon(self._go_on)
        elif self._mouthful and len(data) < MOUTHFUL:
            # It does not send more than is handled any more.
            self._mouthful = False
            self.link.read_at_most(READ_SIZE)
        self._handled(marked, crowded)
        if self._rate is not None:
            self._keep_to(self._rate, len(data), now)

    def _keep_to(self, rate: RateLimit, size: int, now: float) -> None:
        """Read nothing for a while if more came than may come."""
        messages = self.unicast.received - self._counted
        self._counted += messages
        wait = rate.wait(messages, size, now)
        if wait > 0.0:
            self.pause()
            self._tell_limit(rate, now)
            self.runtime.on_the_loop(lambda: self._read_after(wait))

    def _tell_limit(self, rate: RateLimit, now: float) -> None:
        """Have operators know who is read later, and by which limit."""
        allowed = [
            f"{most} {what} a second (limits/session/{what}_per_second)"
            for what, most in (("messages", rate.messages), ("bytes", rate.size))
            if most
        ]
        with self.runtime.lock:
            self.runtime.node.incidents.add(
                LIMIT,
                now,
                peer=host_of(self.neighbour.dst),
                reason=f"read later: it sends more than {' or '.join(allowed)}",
            )

    def _read_after(self, seconds: float) -> None:
        self.runtime.loop.loop.call_later(seconds, self.resume)

    def _go_on(self) -> None:
        """Another turn of a neighbour that sent more than one took."""
        if self.closed:
            return
        runtime = self.runtime
        # What others sent since the last turn shall not wait for this one to end.
        runtime.flushing.flush_now()
        with runtime.lock:
            runtime.node.go_on(self.neighbour, monotonic())
            marked = runtime.take_marked()
            crowded = self._take_crowded()
        self._handled(marked, crowded)
        if self.unicast.behind:
            runtime.loop.loop.call_soon(self._go_on)
            return
        self._behind = False
        self.resume()
        if self._ended:
            self.lost(self._ended[0])

    def _take_crowded(self) -> list[Outbox]:
        """The full outboxes that its messages went to; the node's lock is held."""
        crowded = self.neighbour.pushes.relay.crowded
        if crowded:
            self.neighbour.pushes.relay.crowded = []
        return crowded

    def _handled(self, marked: list[ChannelSink], crowded: list[Outbox]) -> None:
        """Commit channels, and pause for those and for outboxes that are full."""
        runtime = self.runtime
        for sink in marked:
            sink.commit()
            if sink.is_full() and sink.add_paused(self):
                self.pause()
        for outbox in crowded:
            self._pause_for(outbox)
        if runtime.opening:
            runtime.progress()
        runtime.arm_soon()

    def lost(self, error: Exception | None) -> None:
        """End the session of a link that broke or was closed by the other side."""
        if self._behind and not self.closed:
            self._ended = [error]  # what it sent before is handled first
            return
        runtime = self.runtime
        if error is None:
            error = LinkError("the other side ended the link without a word")
        with runtime.lock:
            runtime.node.lost(self.neighbour, error, monotonic())
        runtime.commit_all()
        self.shut()

    def flush(self) -> None:
        """Write what waits; comes again when the link can take more, and while much comes."""
        if self.closed:
            return
        if not self.outbox.flush():
            self.link.when_writable(self.flush)
        elif self.outbox.request.comes_again:
            self.runtime.loop.loop.call_later(MEANWHILE, self.flush)

    # -------------------------------------------------------------------------- back-pressure

    def _pause_for(self, outbox: Outbox) -> None:
        """Pause this link for a full outbox that its messages go to, if nothing may be dropped."""
        if isinstance(outbox, SharedOutbox) and outbox.add_paused(self):
            self.pause()
            if not outbox.room.supervised:
                outbox.room.supervised = True
                self.runtime.on_the_loop(lambda: self._supervise(outbox))

    def _supervise(self, outbox: SharedOutbox) -> None:
        """Check after a while that an outbox moves which links are paused for."""
        written = outbox.link.written
        self.runtime.loop.loop.call_later(
            outbox.congestion.wait_before_close, self._look, outbox, written
        )

    def _look(self, outbox: SharedOutbox, written: int) -> None:
        if not outbox.room.links or outbox.closed:
            outbox.room.supervised = False
        elif outbox.link.written == written:
            outbox.room.supervised = False
            outbox.give_up(DATA, False)
        else:
            self._supervise(outbox)

    def pause(self) -> None:
        """Do not read the link; each call needs a `resume`. From any thread."""
        self.pauses += 1
        if self.pauses == 1:
            self.runtime.on_the_loop(self._pause_link)

    def _pause_link(self) -> None:
        if self.pauses and not self.closed:
            self.unicast.paused = True
            self.link.pause()

    def resume(self) -> None:
        """Undo one `pause`; on the loop thread."""
        self.pauses -= 1
        if self.pauses == 0 and not self.closed:
            # Silence of our own making does not count against the neighbour.
            self.unicast.paused = False
            self.unicast.last_heard = monotonic()
            self.link.resume()
            if self.poller is not None:
                self.poller.resumed(self)

    def resume_soon(self) -> None:
        """Undo one `pause`; from any thread."""
        self.runtime.loop.soon(self.resume)

    # ------------------------------------------------------------------------------- the end

    def finish(self) -> None:
        """The session is over: write what waits, then close the link."""
        self.outbox.closed = True
        self.runtime.loop.soon(self._drain, monotonic() + LAST_WORDS)

    def _drain(self, deadline: float) -> None:
        """Write what waits, for a while, then close."""
        if self.closed:
            return
        if self.outbox.flush():
            self._end(deadline)
            return
        if monotonic() >= deadline:
            self.shut()
            return
        loop = self.runtime.loop.loop
        timer = loop.call_later(max(0.0, deadline - monotonic()), self.shut)

        def again() -> None:
            timer.cancel()
            self._drain(deadline)

        self.link.when_writable(again)

    def _end(self, deadline: float) -> None:
        """Wait until the other side ends a session that was open, then close."""
        if self.poller is not None:
            self.poller.remove(self)
        if self.neighbour.face is not None and self.link.finish(self.shut):
            self.runtime.loop.loop.call_later(max(0.0, deadline - monotonic()), self.shut)
        else:
            self.shut()

    def _unresponsive(self) -> None:
        """A message waited too long for room: close the session."""
        self.runtime.loop.soon(self._give_up)

    def _give_up(self) -> None:
        if not self.closed:
            log.warning("%s does not take our data: closed", self.link.dst)
            with self.runtime.lock:
                self.unicast.close(monotonic(), UNRESPONSIVE)
            self.runtime.commit_all()

    def shut(self) -> None:
        """Close the link."""
        if self.closed:
            return
        self.outbox.flush()
        self.closed = True
        self.outbox.shut()
        self.outbox.detach()
        self.outbox.congestion.unresponsive = None  # which is ours, and so refers to it
        self._forget(self)
        self.link.close()
        # The node may want to connect again, sooner than it wanted anything before.
        self.runtime.arm()


def link_identity(link: UnicastLink) -> LinkIdentity:
    """What a link knows of the node at its other end."""
    name = link.auth_identifier
    return LinkIdentity(tuple(link.interfaces), () if name is None else (name,))


class TranscribedLink:
    """Logs every message that goes over a link, in either direction."""

    def __init__(self, pump: Pump) -> None:
        """For a pump that is about to start."""
        self._pump = pump
        self._link = pump.link
        self._written = Transcript(pump.link.stream, self._tell)

    def begin(self) -> None:
        """Start the link with the transcript between it and the pump."""
        self._pump.begin(self._write, self._read)

    def _read(self, data: bytes) -> None:
        self._written.add(IN, data)
        self._pump.received(data)

    def _write(self, data: bytes) -> int:
        taken = self._link.send(data)
        self._written.add(OUT, data[:taken])
        return taken

    def _tell(self, direction: int, line: str) -> None:
        face = self._pump.neighbour.face
        who = "" if face is None else f" {ZenohId(face.zid)}"
        transcript.debug("%s%s %s: %s", ("<", ">")[direction], who, self._link.dst, line)
