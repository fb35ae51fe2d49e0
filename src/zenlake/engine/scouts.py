"""Scouting by multicast: sockets and a timer around `scouting.scout`, with or without a node."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from zenlake.config.model_scouting import MulticastScouting
from zenlake.engine.loop import EventLoop
from zenlake.engine.settings import roles
from zenlake.errors import LinkError
from zenlake.links.multicast import MulticastSockets
from zenlake.routing.regions import CLIENT
from zenlake.scouting.autoconnect import Autoconnect
from zenlake.scouting.scout import DiscoveredNode, HelloResponder, ScoutSender

if TYPE_CHECKING:
    from zenlake.engine.running_node import RunningNode

log = logging.getLogger("zenlake.scouting")


class MulticastScout:
    """Sends SCOUT to a multicast group and receives HELLO, until stopped; on the loop thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: MulticastScouting,
        scouting: ScoutSender,
        responder: HelloResponder | None,
        on_hello: Callable[[DiscoveredNode], None],
    ) -> None:
        """`responder`: answers the SCOUT of other nodes (None: they are ignored)."""
        self._loop = loop
        self._scouting = scouting
        self._responder = responder
        self._on_hello = on_hello
        self._timer: asyncio.TimerHandle | None = None
        self.group = MulticastSockets(
            loop,
            settings.address,
            settings.interface,
            settings.ttl,
            listen=responder is not None and settings.listen,
        )

    def start(self, sends: bool) -> None:
        """Open the sockets; `sends`: send SCOUT too, and not only answer it."""
        self.group.open(self._received_scout, self._received_hello)
        if sends:
            self._scouting.start(time.monotonic())
            self._tick()

    def stop(self) -> None:
        """Send and answer no SCOUT any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._scouting.stop()
        self.group.close()

    def rest(self) -> None:
        """Send no SCOUT for now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._scouting.stop()

    def again(self) -> None:
        """Send SCOUT again."""
        if self._timer is None:
            self._scouting.start(time.monotonic())
            self._tick()

    def _tick(self) -> None:
        scout = self._scouting.tick(time.monotonic())
        if scout is not None:
            self.group.send_to_group(scout)
        deadline = self._scouting.deadline
        if deadline is not None:
            delay = max(0.0, deadline - time.monotonic())
            self._timer = self._loop.call_later(delay, self._tick)

    def _received_scout(self, data: bytes, address: tuple[str, int], interface: str) -> None:
        if self._responder is not None:
            hello = self._responder.received(data, self.group.is_local(address))
            if hello is not None:
                self.group.send_to(hello, address)

    def _received_hello(self, data: bytes, address: tuple[str, int], interface: str) -> None:
        for node in self._scouting.received(data, time.monotonic()):
            self._on_hello(node)


class NodeScouting:
    """The scouting of a running node."""

    def __init__(self, runtime: RunningNode) -> None:
        """Nothing is sent before `start`."""
        self.runtime = runtime
        self.settings = runtime.settings.scouting.multicast
        self.matcher = roles(self.settings.autoconnect)
        self.autoconnect = Autoconnect.configured(runtime.zid, self.settings)
        self.scout: MulticastScout | None = None

    def start(self) -> None:
        """Begin; where multicast is impossible a warning is logged."""
        runtime = self.runtime
        role = 1 << runtime.node.mode
        responder = None
        if runtime.node.mode != CLIENT:
            responder = HelloResponder(runtime.zid, role, runtime.node.locators)
        scout = MulticastScout(
            runtime.loop.loop,
            self.settings,
            ScoutSender(runtime.zid, role, self.matcher),
            responder,
            self._discovered,
        )
        try:
            # A client with endpoints to connect to does not scout.
            scout.start(
                bool(self.matcher)
                and not (runtime.node.mode == CLIENT and runtime.node.settings.connect)
            )
        except LinkError as error:
            log.warning("no scouting: %s", error)
            return
        self.scout = scout

    def _discovered(self, hello: DiscoveredNode) -> None:
        runtime = self.runtime
        with runtime.lock:
            node = runtime.node
            node.now = time.monotonic()
            node.sessions.discovered.add(
                hello.zid, hello.role, list(hello.locators), self.autoconnect, 0.0
            )
        runtime.arm()

    def connected(self, client: bool) -> None:
        """Stop scouting in a client that has a session."""
        if client and self.scout is not None:
            self.scout.rest()

    def disconnected(self, client: bool) -> None:
        """Scout again in a client that has lost its last session."""
        if client and self.scout is not None and not self.runtime.node.settings.connect:
            self.scout.again()

    def close(self) -> None:
        """Stop."""
        if self.scout is not None:
            self.scout.stop()
            self.scout = None


class StandaloneScout:
    """Scouting without a node, for `zenlake.scout`."""

    def __init__(
        self,
        loop: EventLoop,
        settings: MulticastScouting,
        zid: bytes,
        matcher: int,
        on_hello: Callable[[DiscoveredNode], None],
    ) -> None:
        """Starts at once; raises `LinkError` where multicast is impossible."""
        self._loop = loop
        self._scout = MulticastScout(
            loop.loop, settings, ScoutSender(zid, 4, matcher), None, on_hello
        )
        self._stopped = False
        if loop.is_current():
            self._scout.start(True)
        else:
            loop.run(self._start())

    async def _start(self) -> None:
        self._scout.start(True)

    def stop(self) -> None:
        """Send SCOUT no more; from any thread."""
        if not self._stopped:
            self._stopped = True
            if self._loop.is_current():
                self._scout.stop()
            else:
                self._loop.soon(self._scout.stop)
