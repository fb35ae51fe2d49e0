"""What one side of a session has declared: resources, publishers, subscribers, selections.

Declarations are applied all or none: a transaction works on a copy, which replaces the tables if
nothing in it failed. Ids of resources are even, those of selections odd; an id that was never
declared may still be published and subscribed to, and is then matched by its number alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from zenlake.errors import DecodeError
from zenlake.expr import ExprError, Node, Type, Unsupported, parse, parse_type
from zenlake.wire.cursor import Reader
from zenlake.xrce.codec import (
    Binding,
    Commit,
    ForgetPublisher,
    ForgetResource,
    ForgetSelection,
    ForgetSubscriber,
    Property,
    Publisher,
    Resource,
    Result,
    Selection,
    Subscriber,
)
from zenlake.xrce.names import Name, parse_name
from zenlake.xrce.properties import DURABILITY, RELIABILITY, number_of, value_of
from zenlake.xrce.selections import parse_selection

Declaration = (
    Resource | Publisher | Subscriber | Selection | Binding | Commit | Result | ForgetResource
    | ForgetPublisher | ForgetSubscriber | ForgetSelection
)  # fmt: skip

#: What a Result says.
OK, NO_SPACE, CONFLICT, TOO_LARGE, TRY_AGAIN, INVALID, UNSUPPORTED, OTHER = range(8)

PUSH, PULL, PERIODIC_PUSH, PERIODIC_PULL = range(1, 5)
ID_MAX: Final = (1 << 63) - 1
#: Bytes of names, queries and properties of one session in one space.
TABLE_BYTES: Final = 1 << 23
#: Vendor properties: parameters of a predicate (a list of texts), type of a resource (in IDL).
PARAMETERS: Final = 1
TYPE: Final = 25


class InvalidDeclaration(Exception):
    """A declaration that cannot be; `status` says why, `id` which."""

    def __init__(self, status: int, id: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.id = id


@dataclass(slots=True, eq=False)
class Known:
    """A declared resource."""

    rid: int
    uri: str
    name: Name
    properties: tuple[Property, ...] = ()
    type: Type | None = None

    @property
    def durability(self) -> int:
        """0 volatile, 1 transient, 2 persistent."""
        return self.name.durability or number_of(self.properties, DURABILITY)

    @property
    def reliable(self) -> bool:
        """Whether samples of it are reliable unless a declaration says otherwise."""
        return number_of(self.properties, RELIABILITY) != 0


@dataclass(slots=True, eq=False)
class Chosen:
    """A declared selection; it may have several ids."""

    text: str
    name: Name
    tree: Node | None
    parameters: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()


@dataclass(slots=True, eq=False)
class DeclaredPublisher:
    """A declared publisher; without a name it is matched by its number."""

    id: int
    space: int
    name: Name | None
    durability: int = 0
    reliable: bool = True
    #: Whether its owner was told of a subscriber.
    matched: bool = False


@dataclass(slots=True, eq=False)
class Subscription:
    """A declared subscriber; without a name it is matched by its number."""

    id: int
    space: int
    mode: int
    name: Name | None
    chosen: Chosen | None = None
    origin: int = 0
    period: int = 0
    duration: int = 0
    reliable: bool = True
    #: When it was declared: its windows are counted from then on.
    since: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether every sample for it is of the one resource that it names."""
        return self.chosen is None and (self.name is None or self.name.trivial)

    @property
    def plain(self) -> bool:
        """Whether it wants every sample of the one resource that it names, whatever its tag."""
        return self.exact and (self.name is None or not self.name.tags)

    def same(self, other: Subscription) -> bool:
        """Whether it was declared in the same words."""
        return (self.mode, self.origin, self.period, self.duration) == (
            other.mode, other.origin, other.period, other.duration,
        )  # fmt: skip


class SpaceTables:
    """The declarations of a session in one resource space."""

    def __init__(self, space: int = 0, limit: int = 4096, any_parity: bool = False) -> None:
        """`limit`: how many entries there may be of each kind."""
        self.space = space
        self.limit = limit
        self.any_parity = any_parity
        self.resources: dict[int, Known] = {}
        self.publishers: dict[int, DeclaredPublisher] = {}
        self.subscribers: dict[int, Subscription] = {}
        self.selections: dict[int, Chosen] = {}
        #: The ids of resources that name one path.
        self.ids: dict[str, int] = {}
        #: Resources that their owner has forgotten while they are still in use.
        self.forgotten: set[int] = set()
        #: Bytes of what is declared.
        self.bytes = 0

    def copy(self) -> SpaceTables:
        """The same, to try declarations on."""
        made = SpaceTables(self.space, self.limit, self.any_parity)
        made.resources = dict(self.resources)
        made.publishers = dict(self.publishers)
        made.subscribers = dict(self.subscribers)
        made.selections = dict(self.selections)
        made.ids = dict(self.ids)
        made.forgotten = set(self.forgotten)
        made.bytes = self.bytes
        return made

    def apply_all(self, declarations: Iterable[Declaration], now: float) -> SpaceTables:
        """The tables with all of these; raises `InvalidDeclaration`, and nothing has changed."""
        made = self.copy()
        for declaration in declarations:
            made.apply(declaration, now)
        return made

    def apply(self, declaration: Declaration, now: float) -> None:
        """Take one declaration; raises `InvalidDeclaration`."""
        match declaration:
            case Resource():
                self._resource(declaration)
            case Publisher():
                self._publisher(declaration)
            case Subscriber():
                self._subscriber(declaration, now)
            case Selection():
                self._selection(declaration)
            case Binding():
                self._binding(declaration)
            case ForgetResource():
                self.forgotten.add(declaration.rid)
                self._sweep(declaration.rid)
            case ForgetPublisher():
                self.publishers.pop(declaration.id, None)
                self._sweep(declaration.id)
            case ForgetSubscriber():
                self.subscribers.pop(declaration.id, None)
                self._sweep(declaration.id)
            case ForgetSelection():
                self._forget_selection(declaration.sid)

    def _room(self, table: dict[int, object] | dict[int, Known], id: int) -> None:
        if not 1 <= id <= ID_MAX:
            raise InvalidDeclaration(INVALID, id, f"the id {id} is out of range: 1 to 2^63 - 1")
        if len(table) >= self.limit:
            raise InvalidDeclaration(
                NO_SPACE, id, f"more than {self.limit} declarations of one kind"
            )

    def _weigh(self, id: int, size: int) -> None:
        if self.bytes + size > TABLE_BYTES:
            raise InvalidDeclaration(
                NO_SPACE, id, f"more than {TABLE_BYTES} bytes of names and properties"
            )
        self.bytes += size

    def _resource(self, declared: Resource) -> None:
        if declared.rid % 2 and not self.any_parity:
            raise InvalidDeclaration(
                INVALID, declared.rid, f"resource {declared.rid}: resources have even ids"
            )
        self._room(self.resources, declared.rid)
        known = self.resources.get(declared.rid)
        if known is not None:
            if known.uri != declared.uri:
                raise InvalidDeclaration(
                    CONFLICT,
                    declared.rid,
                    f"resource {declared.rid} is '{known.uri}', not '{declared.uri}'",
                )
            self.forgotten.discard(declared.rid)
            return
        try:
            name = parse_name(declared.uri)
            durable = number_of(declared.properties, DURABILITY)
            number_of(declared.properties, RELIABILITY)
            text = value_of(declared.properties, TYPE)
            type = parse_type(text.decode()) if text else None
        except (DecodeError, ValueError) as error:
            raise InvalidDeclaration(INVALID, declared.rid, str(error)) from error
        if name.tags and durable and durable != name.durability:
            raise InvalidDeclaration(
                CONFLICT,
                declared.rid,
                f"'{declared.uri}' says another durability than its property 8",
            )
        self._weigh(declared.rid, bytes_of(declared))
        self.resources[declared.rid] = Known(
            declared.rid, declared.uri, name, declared.properties, type
        )
        if name.trivial and not name.meta:
            self.ids.setdefault(name.path, declared.rid)

    def _publisher(self, declared: Publisher) -> None:
        self._room(self.publishers, declared.rid)  # type: ignore[arg-type]
        if declared.rid in self.publishers:
            return
        known, chosen = self.resources.get(declared.rid), self.selections.get(declared.rid)
        name = known.name if known else chosen.name if chosen else None
        durable = known.durability if known else 0
        try:
            durable = max(durable, number_of(declared.properties, DURABILITY))
            reliable = _reliable(declared.properties, known)
        except DecodeError as error:
            raise InvalidDeclaration(INVALID, declared.rid, str(error)) from error
        self.publishers[declared.rid] = DeclaredPublisher(
            declared.rid, self.space, name, durable, reliable
        )

    def _subscriber(self, declared: Subscriber, now: float) -> None:
        self._room(self.subscribers, declared.id)  # type: ignore[arg-type]
        if declared.mode in (PERIODIC_PUSH, PERIODIC_PULL) and declared.duration >= declared.period:
            raise InvalidDeclaration(
                INVALID, declared.id, "a window must be shorter than its period"
            )
        known, chosen = self.resources.get(declared.id), self.selections.get(declared.id)
        name = known.name if known else chosen.name if chosen else None
        try:
            reliable = _reliable(declared.properties, known)
        except DecodeError as error:
            raise InvalidDeclaration(INVALID, declared.id, str(error)) from error
        made = Subscription(
            id=declared.id,
            space=self.space,
            mode=declared.mode,
            name=name,
            chosen=chosen,
            origin=declared.origin,
            period=declared.period,
            duration=declared.duration,
            reliable=reliable,
            since=now,
        )
        before = self.subscribers.get(declared.id)
        if before is None:
            self.subscribers[declared.id] = made
        elif not before.same(made):
            raise InvalidDeclaration(
                CONFLICT, declared.id, f"{declared.id} is subscribed to in another mode"
            )

    def _selection(self, declared: Selection) -> None:
        if declared.sid % 2 == 0 and not self.any_parity:
            raise InvalidDeclaration(
                INVALID, declared.sid, f"selection {declared.sid}: selections have odd ids"
            )
        self._room(self.selections, declared.sid)  # type: ignore[arg-type]
        chosen = self.selections.get(declared.sid)
        if chosen is not None:
            if chosen.text != declared.query:
                raise InvalidDeclaration(
                    CONFLICT, declared.sid, f"selection {declared.sid} is '{chosen.text}' already"
                )
            return
        try:
            selected = parse_selection(declared.query)
            tree = parse(selected.predicate) if selected.predicate else None
            parameters = _texts(value_of(declared.properties, PARAMETERS))
            if tree is not None:
                tree.holds({}, parameters)
        except Unsupported as error:
            raise InvalidDeclaration(UNSUPPORTED, declared.sid, str(error)) from error
        except (ExprError, DecodeError) as error:
            raise InvalidDeclaration(INVALID, declared.sid, str(error)) from error
        self._weigh(declared.sid, bytes_of(declared))
        self.selections[declared.sid] = Chosen(
            declared.query, selected.name, tree, parameters, declared.properties
        )

    def _binding(self, declared: Binding) -> None:
        chosen = self.selections.get(declared.old_id)
        if chosen is None or declared.old_id % 2 == 0 or declared.new_id % 2 == 0:
            raise InvalidDeclaration(
                INVALID, declared.old_id, "a binding names a known selection and an odd id"
            )
        self._room(self.selections, declared.new_id)  # type: ignore[arg-type]
        if self.selections.get(declared.new_id, chosen) is not chosen:
            raise InvalidDeclaration(
                CONFLICT, declared.new_id, f"{declared.new_id} is another selection"
            )
        self.selections[declared.new_id] = chosen

    def _forget_selection(self, sid: int) -> None:
        chosen = self.selections.pop(sid, None)
        if chosen is None:
            return
        if not any(other is chosen for other in self.selections.values()):
            self.bytes -= len(chosen.text) + _bytes_of(chosen.properties)
            for id, one in list(self.subscribers.items()):
                if one.chosen is chosen:
                    del self.subscribers[id]
        self.publishers.pop(sid, None)

    def _sweep(self, rid: int) -> None:
        """Let go of a forgotten resource that nobody uses."""
        if rid not in self.forgotten:
            return
        known = self.resources.get(rid)
        if known is None:
            self.forgotten.discard(rid)
        elif rid not in self.publishers and rid not in self.subscribers:
            del self.resources[rid]
            self.bytes -= len(known.uri) + _bytes_of(known.properties)
            self.forgotten.discard(rid)
            if self.ids.get(known.name.path) == rid:
                del self.ids[known.name.path]


def bytes_of(declaration: Declaration) -> int:
    """How much of what a declaration says is kept: its text and its properties."""
    match declaration:
        case Resource():
            return len(declaration.uri) + _bytes_of(declaration.properties)
        case Selection():
            return len(declaration.query) + _bytes_of(declaration.properties)
        case Publisher() | Subscriber():
            return _bytes_of(declaration.properties)
    return 0


def _bytes_of(properties: tuple[Property, ...]) -> int:
    return sum(len(item.value) + 64 for item in properties)


def _reliable(properties: tuple[Property, ...], known: Known | None) -> bool:
    if value_of(properties, RELIABILITY) is None and known is not None:
        return known.reliable
    return number_of(properties, RELIABILITY) != 0


def _texts(value: bytes | None) -> tuple[str, ...]:
    """A list of texts in the protocol's own encoding."""
    if value is None:
        return ()
    r = Reader(value)
    count = r.nat()
    if count > 100:
        raise DecodeError(f"{count} parameters: at most 100")
    return tuple(r.take(r.nat()).decode("utf-8", "replace") for _ in range(count))
