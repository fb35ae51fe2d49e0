"""The end of a channel that a task takes from."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from zenlake.engine.channel import END, Channel
from zenlake.engine.here import GLANCE, PASS, Share, arrival
from zenlake.errors import ZError

__all__ = ["Handler"]

T = TypeVar("T")


class Handler(Generic[T]):
    """What a task takes items from; iterating ends when it is closed.

    Taking what is here already does not suspend the task; so that others have their turn, it gives
    way once in a while.
    """

    __slots__ = ("__weakref__", "_channel", "_left", "_of", "_owner", "_share")

    def __init__(self, channel: Channel, of: str, owner: object = None) -> None:
        """Take from `channel`; `of`: what it carries; `owner`: lives as long as this does."""
        self._channel = channel
        self._of = of
        self._owner = owner
        self._left = GLANCE
        self._share = Share()

    async def recv(self, /) -> T:
        """The next item; waits for it, and raises `ZError` when there will be none."""
        if self._left:
            self._left -= 1
        else:
            await self._give_way()
        item = self._channel.take(False)
        if item is None:
            item = await self._arrived()
        if item is END:
            raise ZError("channel is empty and closed")
        return cast(T, item)

    def try_recv(self, /) -> T | None:
        """The next item if it is here, else None; raises `ZError` when there will be none."""
        item = self._channel.take(False)
        if item is END:
            raise ZError("channel is empty and closed")
        return cast("T | None", item)

    def __aiter__(self) -> Handler[T]:
        """Itself."""
        return self

    async def __anext__(self) -> T:
        """The next item; stops when there will be none."""
        # An item is taken at the very end, behind every wait: who is cancelled has taken none.
        if self._left:
            self._left -= 1
        else:
            await self._give_way()
        item = self._channel.take(False)
        if item is None:
            item = await self._arrived()
        if item is END:
            raise StopAsyncIteration
        return cast(T, item)

    async def _give_way(self) -> None:
        self._left = GLANCE
        if self._share.spent():
            await PASS

    async def _arrived(self) -> object:
        channel = self._channel
        while True:
            await arrival(channel)
            item = channel.take(False)
            if item is not None:
                self._share.renew()
                return item

    def __repr__(self) -> str:
        """What it carries."""
        return f"Handler[{self._of}]"
