"""Scouting that runs: the sockets, the timer, and the node that is told whom they found."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from zenlake.config.model_scouting import MulticastScouting
from zenlake.engine.loop import Loop
from zenlake.engine.settings import roles
from zenlake.errors import LinkError
from zenlake.links.multicast import Multicast
from zenlake.scouting.autoconnect import Autoconnect
from zenlake.scouting.scout import Answering, Found, Scouting

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime

log = logging.getLogger("zenlake.scouting")


class MulticastScout:
    """Asks a group who is there, until stopped; on the loop thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: MulticastScouting,
        scouting: Scouting,
        answering: Answering | None,
        on_found: Callable[[Found], None],
    ) -> None:
        """`answering`: how to answer the questions of others (None: not at all)."""
        self._loop = loop
        self._scouting = scouting
        self._answering = answering
        self._on_found = on_found
        self._timer: asyncio.TimerHandle | None = None
        self.group = Multicast(
            loop,
            settings.address,
            settings.interface,
            settings.ttl,
            listen=answering is not None and settings.listen,
        )

    def start(self, asks: bool) -> None:
        """Open the sockets; `asks`: not only answer."""
        self.group.open(self._asked, self._answered)
        if asks:
            self._scouting.start(time.monotonic())
            self._tick()

    def stop(self) -> None:
        """Ask and answer no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._scouting.stop()
        self.group.close()

    def rest(self) -> None:
        """Ask no more for now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._scouting.stop()

    def again(self) -> None:
        """Ask anew."""
        if self._timer is None:
            self._scouting.start(time.monotonic())
            self._tick()

    def _tick(self) -> None:
        question = self._scouting.tick(time.monotonic())
        if question is not None:
            self.group.ask(question)
        deadline = self._scouting.deadline
        if deadline is not None:
            delay = max(0.0, deadline - time.monotonic())
            self._timer = self._loop.call_later(delay, self._tick)

    def _asked(self, data: bytes, address: tuple[str, int], interface: str) -> None:
        if self._answering is not None:
            hello = self._answering.received(data, self.group.is_here(address))
            if hello is not None:
                self.group.answer(hello, address)

    def _answered(self, data: bytes, address: tuple[str, int], interface: str) -> None:
        for found in self._scouting.received(data, time.monotonic()):
            self._on_found(found)


class NodeScouting:
    """The scouting of a running node."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing is sent before `start`."""
        self.runtime = runtime
        self.settings = runtime.settings.scouting.multicast
        self.matcher = roles(self.settings.autoconnect)
        self.autoconnect = Autoconnect.configured(runtime.zid, self.settings)
        self.scout: MulticastScout | None = None

    def start(self) -> None:
        """Begin; a machine without multicast is told so and goes on."""
        runtime = self.runtime
        role = 1 << runtime.node.mode
        answering = (
            Answering(runtime.zid, role, runtime.node.locators) if runtime.node.mode != 2 else None
        )
        scout = MulticastScout(
            runtime.loop.loop,
            self.settings,
            Scouting(runtime.zid, role, self.matcher),
            answering,
            self._found,
        )
        try:
            # A client that was told where to connect does not look around.
            scout.start(
                bool(self.matcher)
                and not (runtime.node.mode == 2 and runtime.node.settings.connect)
            )
        except LinkError as error:
            log.warning("no scouting: %s", error)
            return
        self.scout = scout

    def _found(self, found: Found) -> None:
        runtime = self.runtime
        with runtime.lock:
            node = runtime.node
            node.now = time.monotonic()
            node.discover(found.zid, found.role, list(found.locators), self.autoconnect, 0.0)
        runtime.arm()

    def connected(self, client: bool) -> None:
        """A client that has found somebody asks no more."""
        if client and self.scout is not None:
            self.scout.rest()

    def disconnected(self, client: bool) -> None:
        """A client that has lost everybody asks again."""
        if client and self.scout is not None and not self.runtime.node.settings.connect:
            self.scout.again()

    def close(self) -> None:
        """Stop."""
        if self.scout is not None:
            self.scout.stop()
            self.scout = None


class StandaloneScout:
    """Scouting without a node: for those who only want to know who is there."""

    def __init__(
        self,
        loop: Loop,
        settings: MulticastScouting,
        zid: bytes,
        matcher: int,
        on_found: Callable[[Found], None],
    ) -> None:
        """Starts at once; raises if there is no way to ask."""
        self._loop = loop
        self._scout = MulticastScout(loop.loop, settings, Scouting(zid, 4, matcher), None, on_found)
        self._stopped = False
        if loop.is_current():
            self._scout.start(True)
        else:
            loop.run(self._start())

    async def _start(self) -> None:
        self._scout.start(True)

    def stop(self) -> None:
        """Ask no more; from any thread."""
        if not self._stopped:
            self._stopped = True
            if self._loop.is_current():
                self._scout.stop()
            else:
                self._loop.soon(self._scout.stop)
