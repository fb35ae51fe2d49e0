"""What is declared on a session: how it is made, how it ends, and how its handler is reached."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from zenlake.aio.core import AwaitingCore
from zenlake.aio.handler import Handler, iterate
from zenlake.api.entity import Beside, Called, Queued, check_declared, end
from zenlake.api.entity import Declared as SyncDeclared
from zenlake.api.entity import KeyedReceiving as SyncKeyedReceiving
from zenlake.api.entity import Receiving as SyncReceiving
from zenlake.engine.channel import Channel
from zenlake.engine.handlers import Callback, HandlerStats
from zenlake.engine.tasks import emptying
from zenlake.keys import KeyExpr
from zenlake.values import EntityGlobalId

__all__ = ["Declared", "Declaring", "Given", "KeyedReceiving", "Receiving", "Scoped"]

log = logging.getLogger("zenlake")

T = TypeVar("T")
S = TypeVar("S", bound=SyncDeclared)
R = TypeVar("R", bound="SyncReceiving[Any, Any]")
K = TypeVar("K", bound="SyncKeyedReceiving[Any, Any]")

#: What a program may give as handler: a channel, a function, or a coroutine function.
Given: TypeAlias = Queued[T] | Called[T] | Beside[T, object]


class Scoped:
    """Something that ends with an `async with` block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(self, /, *_error: object) -> None:
        """Subclasses say how it ends."""
        raise NotImplementedError


C = TypeVar("C", bound=Scoped)


class Declaring(Generic[C]):
    """Something that is about to be: `await` it, or enter it and have it end with the block."""

    __slots__ = ("_made", "_work")

    def __init__(self, work: Coroutine[Any, Any, C]) -> None:
        """`work` makes it."""
        self._work = work
        self._made: C | None = None

    def __await__(self) -> Generator[Any, None, C]:
        """Make it."""
        return self._work.__await__()

    async def __aenter__(self) -> C:
        """Make it, until the end of the block."""
        made = await self._work
        self._made = made
        return made

    async def __aexit__(self, /, *error: object) -> None:
        """Undo it."""
        if self._made is not None:
            await self._made.__aexit__(*error)


class Declared(Scoped, Generic[S]):
    """Something that is declared until it is undeclared, forgotten, or its session closes."""

    def __init__(self, session: AwaitingCore, inner: S, kept: bool = False) -> None:
        """`kept`: it lives on when the program forgets it, for it has a callback."""
        self._session = session
        self._inner = inner
        self._kept = kept

    async def undeclare(self, /) -> None:
        """Undeclare it now; what has come already is still delivered."""
        self._inner.undeclare()

    async def __aenter__(self) -> Self:
        """Itself."""
        check_declared(self._inner)
        return self

    async def __aexit__(self, /, *_error: object) -> None:
        """Undeclare it."""
        end(self._inner)

    def __del__(self) -> None:
        """Undeclared with its last reference, by the loop."""
        inner = getattr(self, "_inner", None)
        if inner is None or self._kept or inner.gone:
            return
        runtime = self._session.runtime
        if not runtime.closed:
            runtime.loop.soon(partial(end, inner))

    def __repr__(self) -> str:
        """What it is."""
        return repr(self._inner)


class Receiving(Declared[R], Generic[R, T]):
    """Something declared that has a handler."""

    def __init__(self, session: AwaitingCore, inner: R, given: object) -> None:
        """`given`: the handler as the program gave it."""
        receiver = inner.receiver
        super().__init__(session, inner, receiver.is_callback or is_task(given))
        self._handler: object = receiver.handler
        if not self._kept:
            self._handler = Handler[T](receiver.channel, receiver.of)
        elif isinstance(given, tuple):
            self._handler = given[1]
        else:
            self._handler = None
        if is_task(given):
            session.tasks.start(deliver(receiver.channel, given, repr(inner)), self)

    @property
    def handler(self) -> object:
        """The channel to take from, or the object given beside a callback; None for a callback."""
        check_declared(self._inner)
        return self._handler

    @property
    def stats(self) -> HandlerStats:
        """What was received, delivered and dropped so far."""
        stats = self._inner.stats
        if not self._inner.receiver.is_callback:
            # A task that iterates counts its items in batches.
            stats.delivered = stats.received - stats.queued - sum(stats.dropped.values())
        return stats

    def _taken(self) -> Handler[T]:
        check_declared(self._inner)
        handler = self._handler
        if self._kept or not isinstance(handler, Handler):
            raise TypeError(f"{self!r} calls a function with what comes: there is nothing to take")
        return cast("Handler[T]", handler)

    async def recv(self, /) -> T:
        """The next item; waits for it, and raises `ZError` when there will be none."""
        return await self._taken().recv()

    def try_recv(self, /) -> T | None:
        """The next item if it is here, else None."""
        return self._taken().try_recv()

    def __aiter__(self) -> AsyncGenerator[T, None]:
        """All items, until it is undeclared."""
        # `async for x in await session.declare_subscriber(key)`: the loop is all that holds it.
        return iterate(self._taken(), self)


class KeyedReceiving(Receiving[K, T], Generic[K, T]):
    """Something declared on a key expression that has a handler."""

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        return self._inner.id

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression that it is declared on."""
        return self._inner.key_expr


# ---------------------------------------------------------------------------------- callbacks


def function_of(given: object) -> object:
    """The function in what a program gave as handler, if there is one."""
    if isinstance(given, tuple) and len(given) == 2:
        given = given[0]
    return given.callback if isinstance(given, Callback) else given


def is_task(given: object) -> bool:
    """Whether a handler is a coroutine function: a task of its own calls it, item by item."""
    function = function_of(given)
    if not callable(function):
        return False
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(function.__call__)


def on_this_loop(given: Given[T]) -> Any:
    """A handler in the form for a node that runs on this loop: a function is called at once."""
    if is_task(given):
        return None
    if isinstance(given, tuple) and len(given) == 2:
        return (on_this_loop(given[0]), given[1])
    if isinstance(given, Callback):
        return Callback(given.callback, given.drop, indirect=False)
    if callable(given):
        return Callback(given, indirect=False)
    return given


async def deliver(channel: Channel, given: object, name: str) -> None:
    """Await a program's function with each item, one after the other, until the end."""
    function = cast("Callable[[object], Coroutine[Any, Any, object]]", function_of(given))
    if isinstance(given, tuple):
        given = given[0]
    items = Handler[object](channel, "")
    task = cast("asyncio.Task[object]", asyncio.current_task())
    emptying[task] = channel
    try:
        async for item in items:
            try:
                await function(item)
            except Exception:
                # Whatever a program does with one item, the next one is delivered.
                log.exception("%s: the callback failed", name)
            item = None
    finally:
        del emptying[task]
        if isinstance(given, Callback) and given.drop is not None:
            given.drop()
