"""Links that are only memory: what a loop with bad luck would do to real ones, by a seed.

Bytes arrive in pieces, some turns of the loop later; a wire takes no more than it holds, so that
whoever sends comes to wait. No socket is opened and no time passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from zenlake.config.model_transport import LinkSettings
from zenlake.errors import LinkError
from zenlake.links.link import MAX_BATCH, LinkListener, OnData, OnLink, OnLost, UnicastLink
from zenlake.links.registry import PROTOCOLS, Protocol
from zenlake.values.locator import EndPoint

#: How many bytes are under way in one direction, at most.
HOLDS = 100_000


class Wire(UnicastLink):
    """One end of a link."""

    stream = True
    reliable = True
    thread_safe = False
    mtu = MAX_BATCH

    def __init__(self, wires: Wires, loop: asyncio.AbstractEventLoop, src: str, dst: str) -> None:
        super().__init__(src, dst)
        self._wires = wires
        self._loop = loop
        self.peer: Wire
        self._coming = bytearray()
        self._over = False
        self._awake = False
        self._paused = False
        self._closed = False
        self._on_data: OnData | None = None
        self._on_lost: OnLost | None = None
        self._on_writable: Callable[[], None] | None = None
        wires.open.append(self)

    @property
    def interfaces(self) -> list[str]:
        return []

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        self._on_data, self._on_lost = on_data, on_lost
        self._wake()

    def send(self, data: bytes) -> int:
        if self._closed or self.peer._closed:
            raise LinkError(f"{self.dst}: the link is closed")
        part = data[: max(0, HOLDS - len(self.peer._coming))]
        self.peer._coming += part
        self.peer._wake()
        return len(part)

    def when_writable(self, callback: Callable[[], None]) -> None:
        self._on_writable = callback
        self.peer._wake()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._wake()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wires.open.remove(self)
            self.peer._over = True
            self.peer._wake()

    def _wake(self) -> None:
        if not self._awake and not self._closed:
            self._awake = True
            self._loop.call_soon(self._turn, self._wires.random.randrange(3))

    def _turn(self, left: int) -> None:
        """Something may arrive, when enough turns have passed."""
        if left:
            self._loop.call_soon(self._turn, left - 1)
            return
        self._awake = False
        if self._closed or self._paused or self._on_data is None or self._on_lost is None:
            return
        if self._coming:
            size = self._wires.random.choice((1, 100, 10_000, HOLDS))
            data = bytes(self._coming[:size])
            del self._coming[:size]
            self._on_data(data)
            writable, self.peer._on_writable = self.peer._on_writable, None
            if writable is not None and not self.peer._closed:
                writable()
            self._wake()
        elif self._over:
            self._over = False
            self._on_lost(None)


class Wires(LinkListener):
    """A network of one place, `sim/here:1`, that everybody listens at or connects to."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.open: list[Wire] = []
        self.listening: OnLink | None = None

    def locators(self) -> list[str]:
        return ["sim/here:1"]

    def close(self) -> None:
        self.listening = None

    async def listen(
        self, _at: EndPoint, _loop: asyncio.AbstractEventLoop, on_link: OnLink, _: LinkSettings
    ) -> LinkListener:
        await asyncio.sleep(0)
        self.listening = on_link
        return self

    async def connect(
        self, _to: EndPoint, loop: asyncio.AbstractEventLoop, _timeout: float, _: LinkSettings
    ) -> UnicastLink:
        for _turn in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        if self.listening is None:
            raise LinkError("nobody listens")
        near = Wire(self, loop, "sim/near:1", "sim/here:1")
        far = Wire(self, loop, "sim/here:1", "sim/near:1")
        near.peer, far.peer = far, near
        self.listening(far)
        return near

    def protocol(self) -> Protocol:
        """How the registry of links is told of it."""
        return Protocol(
            "sim", "Memory.", "sim/here:1", MAX_BATCH, self.connect, self.listen, (), ()
        )

    def __enter__(self) -> Wires:
        PROTOCOLS["sim"] = self.protocol()
        return self

    def __exit__(self, *_: object) -> None:
        del PROTOCOLS["sim"]
