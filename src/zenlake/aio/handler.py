"""The end of a channel that a task takes from."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncGenerator
from typing import Generic, TypeVar, cast

from zenlake.engine.channel import END, Channel
from zenlake.engine.item_queue import Heavy
from zenlake.engine.tasks import CHECK_EVERY, YIELD, TimeSlice, wait_for_item
from zenlake.errors import ZError

__all__ = ["Handler", "iterate"]

T = TypeVar("T")


class Handler(Generic[T]):
    """What a task takes items from; iterating ends when it is closed.

    Taking what is here already does not suspend the task; so that others have their turn, it gives
    way once in a while. A wait that is cancelled has taken nothing.
    """

    __slots__ = ("__weakref__", "_channel", "_left", "_of", "_share")

    def __init__(self, channel: Channel, of: str) -> None:
        """Take from `channel`; `of`: what it carries."""
        self._channel = channel
        self._of = of
        self._left = CHECK_EVERY
        self._share = TimeSlice()

    async def recv(self, /) -> T:
        """The next item; waits for it, and raises `ZError` when there will be none."""
        item = await self._next()
        if item is END:
            raise ZError("channel is empty and closed")
        return cast(T, item)

    def try_recv(self, /) -> T | None:
        """The next item if it is here, else None; raises `ZError` when there will be none."""
        item = self._channel.take(False)
        if item is END:
            raise ZError("channel is empty and closed")
        return cast("T | None", item)

    async def __anext__(self) -> T:
        """The next item; stops when there will be none."""
        item = await self._next()
        if item is END:
            raise StopAsyncIteration
        return cast(T, item)

    def __aiter__(self) -> AsyncGenerator[T, None]:
        """All items, until there will be none."""
        return iterate(self, self)

    async def _next(self) -> object:
        # An item is taken at the very end, behind every wait.
        self._left -= 1
        if self._left <= 0:
            self._left = CHECK_EVERY
            if self._share.spent():
                await YIELD
        channel = self._channel
        while True:
            item = channel.take(False)
            if item is not None:
                return item
            await wait_for_item(channel)
            self._share.renew()

    async def _items(self, owner: object) -> AsyncGenerator[T | None, None]:
        yield None
        channel = self._channel
        items = cast("deque[T]", channel.queue.items)
        popleft = items.popleft
        wakers = channel.takers.wakers
        back_pressure = channel.back_pressure
        share = self._share
        while True:
            taken = 0
            if not back_pressure.watched:
                # Nobody waits for room, or for an item: these are taken without a call. None is
                # kept here by a name: who lets go of a query has finalised it.
                try:
                    while items and not wakers and taken < CHECK_EVERY:
                        if items[0].__class__ is Heavy:
                            break
                        taken += 1
                        yield popleft()
                finally:
                    channel.delivered += taken
            if taken == CHECK_EVERY:
                if share.spent():
                    await YIELD
            elif items:
                yield cast(T, channel.take(False))
            elif channel.ended:
                return
            else:
                await wait_for_item(channel)
                share.renew()

    def __repr__(self) -> str:
        """What it carries."""
        return f"Handler[{self._of}]"


def iterate(handler: Handler[T], owner: object) -> AsyncGenerator[T, None]:
    """Iterate over all items; `owner` lives as long as the iteration."""
    items = handler._items(owner)
    # A loop finalises generators that were left early by tasks of its own, later. This one
    # has nothing to wait for at its end, and so is closed on the spot: it is begun where it
    # meets no loop's hooks, as far as its first yield, which waits for nothing.
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        items.asend(None).send(None)
    except StopIteration:
        pass
    finally:
        sys.set_asyncgen_hooks(*hooks)
    return cast("AsyncGenerator[T, None]", items)
