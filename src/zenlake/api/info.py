"""What a session knows of the network: ids, transports, links, and their coming and going."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final, overload

from zenlake.api.core import SessionCore, open_runtime
from zenlake.api.entity import Beside, Called, H, Queued, Receiving, forgotten, receiver_of
from zenlake.clock import ZenohId
from zenlake.engine.handlers import Receiver
from zenlake.node.sessions.multicast import GroupMember
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.regions import PEER, ROUTER
from zenlake.transport.multilink import Purpose
from zenlake.values import Reliability, SampleKind, WhatAmI

if TYPE_CHECKING:
    from zenlake.engine.handlers import Handler

__all__ = [
    "Link",
    "LinkEvent",
    "LinkEventsListener",
    "SessionInfo",
    "Transport",
    "TransportEvent",
    "TransportEventsListener",
]

E = TypeVar("E")


class Described:
    """A value that is told from others by its parts, and sorted by them."""

    __slots__ = ()

    def _parts(self) -> tuple[object, ...]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        """Equal by all parts."""
        if type(other) is not type(self) or not isinstance(other, Described):
            return NotImplemented
        return self._parts() == other._parts()

    def __lt__(self, other: object) -> bool:
        """In the order of the parts."""
        if type(other) is not type(self) or not isinstance(other, Described):
            return NotImplemented
        return _sortable(self._parts()) < _sortable(other._parts())

    def __le__(self, other: object) -> bool:
        """In the order of the parts."""
        return self == other or self < other

    def __gt__(self, other: object) -> bool:
        """In the order of the parts."""
        return not self <= other

    def __ge__(self, other: object) -> bool:
        """In the order of the parts."""
        return not self < other

    def __hash__(self) -> int:
        """Equal ones have equal hashes."""
        return hash(str(self._parts()))


def _sortable(parts: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(part) for part in parts)


@final
class Transport(Described):
    """A session with another node."""

    __slots__ = ("_is_multicast", "_is_qos", "_whatami", "_zid")

    def __init__(
        self, zid: ZenohId, whatami: WhatAmI, is_qos: bool, is_multicast: bool = False
    ) -> None:
        """A session with the node `zid`."""
        self._is_multicast: bool = is_multicast
        self._zid: ZenohId = zid
        self._whatami: WhatAmI = whatami
        self._is_qos: bool = is_qos

    @property
    def zid(self) -> ZenohId:
        """The other node."""
        return self._zid

    @property
    def whatami(self) -> WhatAmI:
        """What the other node is."""
        return self._whatami

    @property
    def is_qos(self) -> bool:
        """Whether priorities are kept apart."""
        return self._is_qos

    @property
    def is_multicast(self) -> bool:
        """Whether it is with a whole group."""
        return self._is_multicast

    @property
    def is_shm(self) -> bool:
        """Whether memory is shared: never."""
        return False

    def _parts(self) -> tuple[object, ...]:
        return (self._zid, self._whatami, self._is_qos)

    def __repr__(self) -> str:
        """Role and id of the other node."""
        return f"<Transport {self._whatami} {self._zid}{' qos' if self._is_qos else ''}>"


@final
class Link(Described):
    """What a transport runs over."""

    __slots__ = ("_dst", "_group", "_is_qos", "_mtu", "_purpose", "_src", "_stream", "_zid")

    def __init__(
        self,
        zid: ZenohId,
        src: str,
        dst: str,
        mtu: int,
        stream: bool,
        is_qos: bool,
        group: str | None = None,
        purpose: Purpose | None = None,
    ) -> None:
        """From here to there; `group`: the multicast group that both are in."""
        self._purpose: Purpose = purpose or Purpose()
        self._group: str | None = group
        self._zid: ZenohId = zid
        self._src: str = src
        self._dst: str = dst
        self._mtu: int = mtu
        self._stream: bool = stream
        self._is_qos: bool = is_qos

    @property
    def zid(self) -> ZenohId:
        """The other node."""
        return self._zid

    @property
    def src(self) -> str:
        """This end."""
        return self._src

    @property
    def dst(self) -> str:
        """The other end."""
        return self._dst

    @property
    def group(self) -> str | None:
        """The multicast group, if it is one."""
        return self._group

    @property
    def mtu(self) -> int:
        """How many bytes fit into one batch."""
        return self._mtu

    @property
    def is_streamed(self) -> bool:
        """Whether bytes flow without borders, as in TCP."""
        return self._stream

    @property
    def interfaces(self) -> list[str]:
        """The network interfaces it uses, where they are known."""
        return []

    @property
    def auth_identifier(self) -> str | None:
        """The name that the other side proved."""
        return None

    @property
    def priorities(self) -> tuple[int, int] | None:
        """The first and the last priority it carries."""
        if self._is_qos and self._purpose.first >= 0:
            return (self._purpose.first, self._purpose.last)
        return (0, 7) if self._is_qos else None

    @property
    def reliability(self) -> Reliability | None:
        """Whether it repeats what was lost."""
        said = self._purpose.reliable
        reliable = self._stream if said < 0 else said == 1
        return Reliability.RELIABLE if reliable else Reliability.BEST_EFFORT

    def _parts(self) -> tuple[object, ...]:
        return (self._zid, self._src, self._dst, self._mtu, self._stream)

    def __repr__(self) -> str:
        """From here to there."""
        return f"<Link {self._src} -> {self._dst} ({self._zid})>"


def transport_of(neighbour: Neighbour) -> Transport | None:
    """The session with a neighbour, once it is open."""
    if isinstance(neighbour, GroupMember):
        return Transport(neighbour.zid, neighbour.whatami, neighbour.qos, True)
    face, unicast = neighbour.face, neighbour.unicast
    if face is None or unicast is None:
        return None
    terms = unicast.terms
    return Transport(ZenohId(face.zid), WhatAmI(1 << face.role), terms is not None and terms.qos)


def link_of(neighbour: Neighbour) -> Link | None:
    """The link to a neighbour, once its session is open."""
    if isinstance(neighbour, GroupMember):
        place, mtu = neighbour.multicast.place, neighbour.multicast.group.terms.batch_size
        return Link(neighbour.zid, neighbour.src, neighbour.dst, mtu, False, neighbour.qos, place)
    face, unicast = neighbour.face, neighbour.unicast
    if face is None or unicast is None:
        return None
    terms = unicast.terms
    mtu = neighbour.mtu if terms is None else min(neighbour.mtu, terms.batch_size)
    return Link(
        ZenohId(face.zid),
        neighbour.src,
        neighbour.dst,
        mtu,
        neighbour.stream,
        terms is not None and terms.qos,
        purpose=None if terms is None else Purpose.read(terms.purpose),
    )


@final
class TransportEvent:
    """A session with another node opened (PUT) or closed (DELETE)."""

    __slots__ = ("_kind", "_transport")

    def __init__(self, kind: SampleKind, transport: Transport) -> None:
        """What happened to what."""
        self._kind: SampleKind = kind
        self._transport: Transport = transport

    @property
    def kind(self) -> SampleKind:
        """PUT: it opened; DELETE: it closed."""
        return self._kind

    @property
    def transport(self) -> Transport:
        """The session."""
        return self._transport

    def __repr__(self) -> str:
        """What happened."""
        return f"<TransportEvent {self._kind.name} {self._transport!r}>"


@final
class LinkEvent:
    """A link came up (PUT) or went down (DELETE)."""

    __slots__ = ("_kind", "_link")

    def __init__(self, kind: SampleKind, link: Link) -> None:
        """What happened to what."""
        self._kind: SampleKind = kind
        self._link: Link = link

    @property
    def kind(self) -> SampleKind:
        """PUT: it came up; DELETE: it went down."""
        return self._kind

    @property
    def link(self) -> Link:
        """The link."""
        return self._link

    def __repr__(self) -> str:
        """What happened."""
        return f"<LinkEvent {self._kind.name} {self._link!r}>"


class EventsListener(Receiving[E, H]):
    """Tells of neighbours that come and go."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    def __init__(
        self,
        session: SessionCore,
        receiver: Receiver,
        make: Callable[[SampleKind, Neighbour], E | None],
        history: bool,
    ) -> None:
        """`make` gives what happened the form that programs see."""
        super().__init__(session, receiver)
        channel = receiver.channel
        kinds = {True: SampleKind.PUT, False: SampleKind.DELETE}

        def on_session(neighbour: Neighbour, opened: bool) -> None:
            event = make(kinds[opened], neighbour)
            if event is not None:
                channel.push(event, 0)
                channel.commit()

        self._on_session: Callable[[Neighbour, bool], None] = on_session
        session.channels.add(channel)
        runtime = session.runtime
        with runtime.locked():
            if history:
                for neighbour in runtime.neighbours():
                    on_session(neighbour, True)
            runtime.add_session_listener(on_session)

    def _end(self) -> None:
        if not self.gone:
            super()._end()
            self._runtime.remove_session_listener(self._on_session)
            self._session.channels.discard(self.receiver.channel)
            self.receiver.channel.end()


class TransportEventsListener(EventsListener[TransportEvent, H]):
    """Tells of sessions with other nodes that open and close."""

    WHAT: ClassVar[str] = "transport events listener"


class LinkEventsListener(EventsListener[LinkEvent, H]):
    """Tells of links that come up and go down."""

    WHAT: ClassVar[str] = "link events listener"


def _transport_event(kind: SampleKind, neighbour: Neighbour) -> TransportEvent | None:
    # A session opens with its first link and closes with its last.
    others = [link for link in neighbour.links if link is not neighbour]
    transport = None if others else transport_of(neighbour)
    return None if transport is None else TransportEvent(kind, transport)


def _link_event(kind: SampleKind, neighbour: Neighbour) -> LinkEvent | None:
    link = link_of(neighbour)
    return None if link is None else LinkEvent(kind, link)


class SessionInfo:
    """What a session knows of the network right now."""

    def __init__(self, session: SessionCore) -> None:
        """Made by `Session.info`."""
        self._session: SessionCore = session

    def zid(self, /) -> ZenohId:
        """The session's own id."""
        return ZenohId(self._session.runtime.zid)

    def _neighbours(self) -> list[Neighbour]:
        runtime = self._session.runtime
        return [] if runtime.closed else runtime.neighbours()

    def _sessions(self) -> list[Neighbour]:
        """One neighbour for each session, however many links it has."""
        return [each for each in self._neighbours() if not each.links or each.links[0] is each]

    def _of_role(self, role: int) -> list[ZenohId]:
        # Members of multicast groups are no sessions, and are not counted here by Eclipse either.
        faces = [each.face for each in self._sessions() if not isinstance(each, GroupMember)]
        return [ZenohId(face.zid) for face in faces if face is not None and face.role == role]

    def routers_zid(self, /) -> list[ZenohId]:
        """The routers it has a session with."""
        return self._of_role(ROUTER)

    def peers_zid(self, /) -> list[ZenohId]:
        """The peers it has a session with."""
        return self._of_role(PEER)

    def transports(self, /) -> list[Transport]:
        """Its sessions with other nodes."""
        transports = [transport_of(neighbour) for neighbour in self._sessions()]
        return [transport for transport in transports if transport is not None]

    def links(self, /) -> list[Link]:
        """Its links."""
        links = [link_of(neighbour) for neighbour in self._neighbours()]
        return [link for link in links if link is not None]

    @overload
    def declare_transport_events_listener(
        self, /, handler: Queued[TransportEvent] = None, *, history: bool | None = None
    ) -> TransportEventsListener[Handler[TransportEvent]]: ...
    @overload
    def declare_transport_events_listener(
        self, /, handler: Beside[TransportEvent, H], *, history: bool | None = None
    ) -> TransportEventsListener[H]: ...
    @overload
    def declare_transport_events_listener(
        self, /, handler: Called[TransportEvent], *, history: bool | None = None
    ) -> TransportEventsListener[None]: ...
    def declare_transport_events_listener(
        self, /, handler: object = None, *, history: bool | None = None
    ) -> TransportEventsListener[Any]:
        """Be told of sessions that open and close; with `history`, of those that are open.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
        """
        session = self._session
        open_runtime(session)
        receiver = receiver_of(session, handler, "TransportEvent")
        return TransportEventsListener(session, receiver, _transport_event, bool(history))

    @overload
    def declare_link_events_listener(
        self, /, handler: Queued[LinkEvent] = None, *, history: bool | None = None
    ) -> LinkEventsListener[Handler[LinkEvent]]: ...
    @overload
    def declare_link_events_listener(
        self, /, handler: Beside[LinkEvent, H], *, history: bool | None = None
    ) -> LinkEventsListener[H]: ...
    @overload
    def declare_link_events_listener(
        self, /, handler: Called[LinkEvent], *, history: bool | None = None
    ) -> LinkEventsListener[None]: ...
    def declare_link_events_listener(
        self, /, handler: object = None, *, history: bool | None = None
    ) -> LinkEventsListener[Any]:
        """Be told of links that come up and go down; with `history`, of those that are up.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
        """
        session = self._session
        open_runtime(session)
        receiver = receiver_of(session, handler, "LinkEvent")
        return LinkEventsListener(session, receiver, _link_event, bool(history))

    def __repr__(self) -> str:
        """Whose it is."""
        return f"<SessionInfo of {self._session!r}>"
