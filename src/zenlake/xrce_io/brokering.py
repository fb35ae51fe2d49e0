"""A broker on links: it reads them, keeps its deadlines, and writes what it says.

It has a loop thread of its own, so that what it does with the other side of a bridge may wait
without holding up anybody else's links.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from zenlake.clock.throttle import Throttle
from zenlake.engine.loop import LoopThread
from zenlake.errors import LinkError, ZError
from zenlake.links.link import LinkListener, UnicastLink
from zenlake.links.multicast import MulticastSockets
from zenlake.links.registry import listen
from zenlake.values.locator import EndPoint
from zenlake.xrce.broker import Broker, Port
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.codec import Hello, Scout
from zenlake.xrce.outside import Outside, Values
from zenlake.xrce.packets import read_packet, write
from zenlake.xrce_io.wires import Wire

log = logging.getLogger("zenlake.xrce")

#: Connections without a session: how many there may be, and for how many seconds.
KNOCKING_MAX: Final = 256
KNOCKING_FOR: Final = 10.0
#: Where brokers and clients of 2018 look for each other.
SCOUTING: Final = "239.255.0.1:7447"


class RunningBroker:
    """A broker that listens."""

    def __init__(
        self,
        options: BrokerOptions,
        outside: Outside | None = None,
        values: Values | None = None,
        thread: LoopThread | None = None,
    ) -> None:
        """It listens nowhere yet: see `start`.

        `thread`: where it runs besides others, if it has no outside to wait for; else it has one
        of its own.
        """
        self.broker = Broker(options, outside, values)
        self.thread = thread or LoopThread()
        self._owns_thread = thread is None
        self._listening: list[LinkListener] = []
        self._throttle = Throttle()
        self._wires: dict[Port, tuple[UnicastLink, Wire]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = float("inf")
        self._scouting: MulticastSockets | None = None
        self._soon: list[Callable[[], None]] = []
        self._closed = False
        self._flushing = False

    def start(self, endpoints: Sequence[str], scouting: str = "", interface: str = "auto") -> None:
        """Listen at each endpoint; `scouting`: the group in which questions are answered."""
        try:
            self.thread.run(self._start(endpoints, scouting, interface), 30)
        except BaseException:
            self.close()
            raise

    async def _start(self, endpoints: Sequence[str], scouting: str, interface: str) -> None:
        loop = self.thread.loop
        for text in endpoints:
            self._listening.append(await listen(EndPoint.parse(text), loop, self._linked))
        if scouting:
            group = MulticastSockets(loop, scouting, interface)
            try:
                group.open(self._scouted, lambda *_: None)
                self._scouting = group
            except LinkError as error:
                log.warning("nobody finds this broker by multicast: %s", error)

    @staticmethod
    def now() -> float:
        """The time that the broker goes by."""
        return time.monotonic()

    def locators(self) -> list[str]:
        """Where it listens."""
        return [place for one in self._listening for place in one.locators()]

    def call(self, work: Callable[[], None]) -> None:
        """Do something with the broker on its own thread, soon; from any thread."""
        if self.thread.is_current():
            work()
            self.flush()
            return
        first = not self._soon
        self._soon.append(work)
        if first:
            self.thread.soon(self._work)

    @property
    def waiting(self) -> int:
        """How much of what other threads asked for is not done yet."""
        return len(self._soon)

    def _work(self) -> None:
        soon, self._soon = self._soon, []
        for work in soon:
            work()
        self.flush()

    def close(self) -> None:
        """Say goodbye to everybody and stop."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(TimeoutError):
            self.thread.run(self._stop(), 5)
        if self._owns_thread:
            self.thread.close()

    async def _stop(self) -> None:
        self.broker.close(time.monotonic())
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
        for listening in self._listening:
            listening.close()
        for link, _ in list(self._wires.values()):
            link.close()
        self._wires.clear()
        if self._scouting is not None:
            self._scouting.close()

    # ------------------------------------------------------------------------- on the loop thread

    def _linked(self, link: UnicastLink) -> None:

        if link.stream:
            knocking = sum(1 for port in self._wires if port.stream and port.member is None)
            if knocking >= KNOCKING_MAX:
                self.broker.counters.refused += 1
                link.close()
                return
        mtu = 0 if link.stream else min(link.mtu, self.broker.options.mtu)
        port = self.broker.connected(link, link.stream, mtu)
        self._wires[port] = (link, Wire(link))

        def arrived(data: bytes) -> None:
            self.broker.received(port, data, time.monotonic())
            if port.member is not None:
                link.admit()
                self._flush_soon()
                return
            self.flush()
            if not link.stream and port.member is None:
                # An address that only knocked is not kept.
                self._wires.pop(port, None)
                link.close()

        def patience_is_over() -> None:
            if port.member is None and self._wires.pop(port, None) is not None:
                self.broker.counters.refused += 1
                link.close()

        if link.stream:
            self.thread.loop.call_later(KNOCKING_FOR, patience_is_over)

        def lost(error: Exception | None) -> None:
            self.broker.lost(port)
            self._wires.pop(port, None)
            link.close()
            self.flush()

        link.start(arrived, lost)

    def _flush_soon(self) -> None:
        """Send what is said when all that has arrived is read."""
        if not self._flushing:
            self._flushing = True
            self.thread.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send now what waits to be sent."""
        self._flushing = False
        now = time.monotonic()
        try:
            self.broker.values.commit()
        except (OSError, ZError) as error:
            line = self._throttle.line(now, str(error))
            if line is not None:
                log.error("values are not kept, and tried again: %s", line)
        for port in self.broker.flush(now):
            out, port.out = port.out, []
            known = self._wires.get(port)
            if known is None:
                continue
            _, wire = known
            if out and not wire.send(out):
                self.broker.lost(port)
                port.closing = True
            if port.closing:
                self._wires.pop(port, None)
                wire.end()
        self._arm(now)

    def _arm(self, now: float) -> None:
        at = self.broker.deadline
        if at >= self._armed_for or self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = at
        self._timer = self.thread.loop.call_later(max(0.0, at - now), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._armed_for = float("inf")
        if self._closed:
            return
        self.broker.tick(time.monotonic())
        self.flush()

    def _scouted(self, datagram: bytes, address: tuple[str, int], interface: str) -> None:
        try:
            messages = read_packet(datagram)
        except ZError:
            return
        for message in messages:
            mask = self.broker.options.mask
            if isinstance(message, Scout) and message.mask & mask and self._scouting is not None:
                hello = Hello(mask=mask, locators=tuple(self.locators()))
                self._scouting.send_to(write(hello), address)
