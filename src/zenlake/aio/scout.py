"""Scouting: who is there, without joining them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Self

from zenlake.aio.entity import Given, Scoped, is_task, on_this_loop
from zenlake.aio.handler import Handler, iterate
from zenlake.clock import ZenohId
from zenlake.config import Config
from zenlake.engine.assembly import fresh_zid
from zenlake.engine.handlers import HandlerStats, Receiver
from zenlake.engine.loop import CallerLoop
from zenlake.engine.scouts import StandaloneScout
from zenlake.errors import ZError
from zenlake.scouting.scout import DiscoveredNode
from zenlake.values import Hello, WhatAmI, WhatAmIMatcher

__all__ = ["Scout", "scout"]


class Scout(Scoped):
    """A running scout, until it is stopped; iterate over whom it finds."""

    def __init__(self, receiver: Receiver, start: Callable[[Receiver], StandaloneScout]) -> None:
        """Made by `scout`."""
        self._receiver = receiver
        self._loop = CallerLoop()
        self._stopped = False
        self._scout = start(receiver)

    def _check(self) -> None:
        if self._stopped:
            raise ZError("Stopped scout: it looks no more; start another with zenlake.aio.scout()")

    @property
    def stats(self) -> HandlerStats:
        """What was found, delivered and dropped so far."""
        return HandlerStats(self._receiver.channel)

    async def stop(self, /) -> None:
        """Look no more."""
        self._check()
        self._end()

    def _end(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._scout.stop()
            self._receiver.channel.end()

    def _handler(self) -> Handler[Hello]:
        self._check()
        if self._receiver.is_callback:
            raise TypeError("a function is called with whom it finds: there is nothing to take")
        return Handler[Hello](self._receiver.channel, "Hello")

    async def recv(self, /) -> Hello:
        """The next node that is found; waits for it."""
        return await self._handler().recv()

    def try_recv(self, /) -> Hello | None:
        """The next node if it is found already, else None."""
        return self._handler().try_recv()

    def __aiter__(self) -> AsyncGenerator[Hello, None]:
        """All nodes that are found, until it is stopped."""
        return iterate(self._handler(), self)

    def __await__(self) -> Generator[Any, None, Self]:
        """Itself: it looks already."""
        return self
        yield

    async def __aexit__(self, /, *_error: object) -> None:
        """Look no more."""
        self._end()

    def __del__(self) -> None:
        """Stopped with its last reference, unless a callback is to be told."""
        scout = getattr(self, "_scout", None)
        if scout is not None and not self._stopped and not self._receiver.is_callback:
            self._loop.soon(scout.stop)

    def __repr__(self) -> str:
        """Whether it looks."""
        return f"<Scout{' stopped' if self._stopped else ''}>"


def scout(
    handler: Given[Hello] = None,
    what: WhatAmIMatcher | str | None = None,
    config: Config | None = None,
) -> Scout:
    """Look who is there, by multicast: routers and peers unless `what` says otherwise.

    Needs a running loop, and looks until it is stopped: leave it by `async with`.

    Parameters as of `zenlake.scout`.
    """
    if is_task(handler):
        raise TypeError("a scout calls a plain function; iterate over it to await something")
    matcher = WhatAmIMatcher("router|peer" if what is None else what)
    settings = (config or Config()).resolved.scouting.multicast

    def start(receiver: Receiver) -> StandaloneScout:
        channel = receiver.channel

        def on_hello(node: DiscoveredNode) -> None:
            channel.push(Hello(ZenohId(node.zid), WhatAmI(node.role), node.locators), 0)
            channel.commit()

        return StandaloneScout(CallerLoop(), settings, fresh_zid(), matcher.flags, on_hello)

    return Scout(Receiver(on_this_loop(handler), "Hello", "zenlake scout"), start)
