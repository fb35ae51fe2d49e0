"""What is declared on a session: how it ends, and how its handler is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from mypy_extensions import mypyc_attr

from zenlake.api.core import SessionCore
from zenlake.api.options import closed_error
from zenlake.api.release import later
from zenlake.clock import ZenohId
from zenlake.engine.handlers import (
    Callback,
    DefaultHandler,
    FifoChannel,
    Handler,
    HandlerStats,
    Receiver,
    RingChannel,
)
from zenlake.errors import ZError
from zenlake.keys import KeyExpr
from zenlake.node.entities import LivelinessSubscriber, LocalQueryable, LocalSubscriber
from zenlake.values import EntityGlobalId

if TYPE_CHECKING:
    from typing import Self

    from zenlake.engine.runtime import Runtime
    from zenlake.node.programs.local import Local

__all__ = ["Declared", "KeyedReceiving", "Receiving"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
H = TypeVar("H")

#: The three shapes of a handler.
Queued: TypeAlias = DefaultHandler[T] | FifoChannel[T] | RingChannel[T] | None
Called: TypeAlias = Callable[[T], object] | Callback[T]
Beside: TypeAlias = tuple[Callable[[T], object], H]


def forgotten(entity: Declared) -> None:
    """Undeclare with the last reference, like a file that is closed: the `__del__` of entities.

    Each class has it as its own. Inherited from a compiled class by an interpreted one it would
    lose the exception that is raised just then, and the interpreter with it.
    """
    if not getattr(entity, "gone", True) and not entity._runtime.closed:
        later(entity._end)


@mypyc_attr(allow_interpreted_subclasses=True)
class Declared:
    """Something that is declared until it is undeclared, forgotten, or its session closes."""

    WHAT: ClassVar[str] = "entity"

    def __init__(self, session: SessionCore, background: bool = False) -> None:
        """`background`: it lives on when the program forgets it."""
        self._session: SessionCore = session
        self._runtime: Runtime = session.runtime
        #: Whether it was undeclared, for the awaiting entity around it.
        self.gone: bool = False
        if background:
            session.kept.add(self)

    def _check(self) -> None:
        if self.gone:
            raise ZError(f"Undeclared {self.WHAT}: it was undeclared before; declare another")

    def _check_open(self) -> None:
        if self.gone or self._runtime.closed:
            self._check()
            raise closed_error()

    def _withdraw(self, local: Local) -> None:
        """Undo the declaration; the node's lock is held."""

    def undeclare(self, /) -> None:
        """Undeclare it now; what has come already is still delivered."""
        self._check()
        self._end()

    def _end(self) -> None:
        if self.gone:
            return
        self.gone = True
        self._session.kept.discard(self)
        runtime = self._runtime
        if runtime.closed:
            return
        try:
            with runtime.locked() as node:
                self._withdraw(node.local)
        except ZError:
            if not runtime.closed:
                raise

    def __enter__(self) -> Self:
        """Itself."""
        self._check()
        return self

    def __exit__(self, /, *_args: object, **_kwargs: object) -> None:
        """Undeclare it."""
        self._end()


@mypyc_attr(allow_interpreted_subclasses=True)
class Receiving(Declared, Generic[T_co, H]):
    """Something declared that has a handler, and gets items of one type."""

    def __init__(self, session: SessionCore, receiver: Receiver) -> None:
        """The handler in the form that the program gave it."""
        super().__init__(session, receiver.is_callback)
        #: For the awaiting entity around it.
        self.receiver: Receiver = receiver

    @property
    def handler(self) -> H:
        """The channel to take from, or the object given beside a callback; None for a callback."""
        handler: Any = self._handler()
        return handler  # type: ignore[no-any-return]

    @property
    def stats(self) -> HandlerStats:
        """What was received, delivered and dropped so far."""
        return HandlerStats(self.receiver.channel)

    def _handler(self) -> Any:
        self._check()
        return self.receiver.handler

    def recv(self, /) -> T_co:
        """The next item; waits for it, and raises `ZError` when there will be none."""
        item: Any = self._handler().recv()
        return item  # type: ignore[no-any-return]

    def try_recv(self, /) -> T_co | None:
        """The next item if it is here, else None."""
        item: Any = self._handler().try_recv()
        return item  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[T_co]:
        """All items, until it is undeclared."""
        handler = self._handler()
        receiver = self.receiver
        if not receiver.is_callback:
            # `for sample in session.declare_subscriber(key)`: the loop is all that holds it.
            return Handler[T_co](receiver.channel, receiver.of, self)
        return iter(handler)


@mypyc_attr(allow_interpreted_subclasses=True)
class KeyedReceiving(Receiving[T_co, H]):
    """Something declared on a key expression that has a handler."""

    def __init__(
        self,
        session: SessionCore,
        receiver: Receiver,
        entity: LocalSubscriber | LivelinessSubscriber | LocalQueryable,
    ) -> None:
        """`entity`: what it is to the node."""
        super().__init__(session, receiver)
        self._entity: LocalSubscriber | LivelinessSubscriber | LocalQueryable = entity

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        self._check()
        return entity_id(self._runtime.zid, self._entity.eid)

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression that it is declared on."""
        self._check()
        return KeyExpr.trusted(self._entity.key)

    def _withdraw(self, local: Local) -> None:
        entity = self._entity
        if isinstance(entity, LocalSubscriber):
            local.unsubscribe(entity)
        elif isinstance(entity, LocalQueryable):
            local.unqueryable(entity)
        else:
            local.liveliness.unwatch(entity)

    def __repr__(self) -> str:
        """What it is, and its key expression."""
        self._check()
        return f"<{type(self).__name__} {self._entity.key}>"


def check_declared(entity: Declared) -> None:
    """Refuse to use an entity that was undeclared."""
    entity._check()


def end(entity: Declared) -> None:
    """Undeclare an entity unless that was done before."""
    entity._end()


def entity_id(zid: bytes, eid: int) -> EntityGlobalId:
    """The id of an entity of this node, for programs."""
    return EntityGlobalId(ZenohId(zid), eid)


def receiver_of(
    session: SessionCore, handler: object, of: str, key: KeyExpr | str = ""
) -> Receiver:
    """A receiver that the session's engine feeds."""
    name = f"zenlake {of.lower()} {key}"
    receiver = Receiver(handler, of, name)
    runtime = session.runtime
    receiver.attach(runtime.mark, runtime.on_loop, runtime.poll_for, runtime.node.drops)
    return receiver


__all__ += ["Beside", "Called", "Handler", "Queued", "check_declared", "end", "entity_id"]
__all__ += ["forgotten", "receiver_of"]
