"""Scouting: who is there, without joining them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, overload

from zenlake.api.entity import Beside, Called, H, Queued
from zenlake.clock import ZenohId
from zenlake.config import Config
from zenlake.engine.handlers import Handler, HandlerStats, Receiver
from zenlake.engine.loop import shared_loop
from zenlake.engine.runtime import Runtime
from zenlake.errors import ZError
from zenlake.scouting.scout import DiscoveredNode
from zenlake.values import Hello, WhatAmI, WhatAmIMatcher

if TYPE_CHECKING:
    from typing import Self

    from zenlake.engine.scouts import StandaloneScout

__all__ = ["Scout", "scout"]


class Scout(Generic[H]):
    """A running scout, until it is stopped."""

    def __init__(self, receiver: Receiver, scout: StandaloneScout) -> None:
        """Made by `scout`."""
        self._receiver: Receiver = receiver
        self._scout: StandaloneScout = scout
        self._stopped: bool = False

    def _check(self) -> Any:
        if self._stopped:
            raise ZError("Stopped scout: it looks no more; start another with zenlake.scout()")
        return self._receiver.handler

    @property
    def handler(self) -> H:
        """The channel to take from, or the object given beside a callback; None for a callback."""
        handler: H = self._check()
        return handler

    @property
    def stats(self) -> HandlerStats:
        """What was found, delivered and dropped so far."""
        return HandlerStats(self._receiver.channel)

    def stop(self, /) -> None:
        """Look no more."""
        self._check()
        self._end()

    def _end(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._scout.stop()
            self._receiver.channel.end()

    def recv(self, /) -> Hello:
        """The next node that is found; waits for it."""
        hello: Hello = self._check().recv()
        return hello

    def try_recv(self, /) -> Hello | None:
        """The next node if it is found already, else None."""
        hello: Hello | None = self._check().try_recv()
        return hello

    def __iter__(self) -> Iterator[Hello]:
        """All nodes that are found, until it is stopped."""
        handler = self._check()
        receiver = self._receiver
        if not receiver.is_callback:
            return Handler[Hello](receiver.channel, receiver.of, self)
        hellos: Iterator[Hello] = iter(handler)
        return hellos

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, /, *_args: object, **_kwargs: object) -> None:
        """Look no more."""
        self._end()

    def __del__(self) -> None:
        """Stopped with its last reference, unless a callback is to be told."""
        if not self._stopped and not self._receiver.is_callback:
            self._end()

    def __repr__(self) -> str:
        """Whether it looks."""
        return f"<Scout{' stopped' if self._stopped else ''}>"


@overload
def scout(
    handler: Queued[Hello] = None,
    what: WhatAmIMatcher | str | None = None,
    config: Config | None = None,
) -> Scout[Handler[Hello]]: ...
@overload
def scout(
    handler: Beside[Hello, H],
    what: WhatAmIMatcher | str | None = None,
    config: Config | None = None,
) -> Scout[H]: ...
@overload
def scout(
    handler: Called[Hello],
    what: WhatAmIMatcher | str | None = None,
    config: Config | None = None,
) -> Scout[None]: ...
def scout(
    handler: object = None,
    what: WhatAmIMatcher | str | None = None,
    config: Config | None = None,
) -> Scout[Any]:
    """Look who is there, by multicast: routers and peers unless `what` says otherwise.

    Args:
        handler: Where they go: a channel to take from (the default), a callback, or a pair of a
            callback and an object to reach as `handler`.
        config: The configuration; the defaults if not given.
    """
    matcher = WhatAmIMatcher("router|peer" if what is None else what)
    receiver = Receiver(handler, "Hello", "zenlake scout")
    channel = receiver.channel
    channel.on_loop = shared_loop().is_current

    def on_hello(node: DiscoveredNode) -> None:
        hello = Hello(ZenohId(node.zid), WhatAmI(node.role), node.locators)
        channel.push(hello, 0)
        channel.commit()

    return Scout(receiver, Runtime.scout(config or Config(), matcher.flags, on_hello))
