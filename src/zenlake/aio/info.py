"""What a session knows of the network, and being told of its coming and going."""

from __future__ import annotations

from typing import Any

from zenlake.aio.core import AwaitingCore
from zenlake.aio.entity import Declaring, Given, Receiving, on_this_loop
from zenlake.api.info import Link, LinkEvent, Transport, TransportEvent
from zenlake.api.info import LinkEventsListener as SyncLinkEventsListener
from zenlake.api.info import SessionInfo as SyncSessionInfo
from zenlake.api.info import TransportEventsListener as SyncTransportEventsListener
from zenlake.clock import ZenohId

__all__ = ["LinkEventsListener", "SessionInfo", "TransportEventsListener"]


class TransportEventsListener(Receiving[SyncTransportEventsListener[Any], TransportEvent]):
    """Tells of sessions with other nodes that open and close."""


class LinkEventsListener(Receiving[SyncLinkEventsListener[Any], LinkEvent]):
    """Tells of links that come up and go down."""


class SessionInfo:
    """What a session knows of the network right now; nothing here has to wait."""

    def __init__(self, session: AwaitingCore) -> None:
        """Made by `Session.info`."""
        self._session = session
        self._inner = SyncSessionInfo(session.core)

    def zid(self, /) -> ZenohId:
        """The session's own id."""
        return self._inner.zid()

    def routers_zid(self, /) -> list[ZenohId]:
        """The routers it has a session with."""
        return self._inner.routers_zid()

    def peers_zid(self, /) -> list[ZenohId]:
        """The peers it has a session with."""
        return self._inner.peers_zid()

    def transports(self, /) -> list[Transport]:
        """Its sessions with other nodes."""
        return self._inner.transports()

    def links(self, /) -> list[Link]:
        """Its links."""
        return self._inner.links()

    def declare_transport_events_listener(
        self, /, handler: Given[TransportEvent] = None, *, history: bool | None = None
    ) -> Declaring[TransportEventsListener]:
        """Be told of sessions that open and close; with `history`, of those that are open.

        Parameters as of `zenlake.SessionInfo.declare_transport_events_listener`.
        """

        async def declare() -> TransportEventsListener:
            inner = self._inner.declare_transport_events_listener(
                on_this_loop(handler), history=history
            )
            return TransportEventsListener(self._session, inner, handler)

        return Declaring(declare())

    def declare_link_events_listener(
        self, /, handler: Given[LinkEvent] = None, *, history: bool | None = None
    ) -> Declaring[LinkEventsListener]:
        """Be told of links that come up and go down; with `history`, of those that are up.

        Parameters as of `zenlake.SessionInfo.declare_link_events_listener`.
        """

        async def declare() -> LinkEventsListener:
            inner = self._inner.declare_link_events_listener(on_this_loop(handler), history=history)
            return LinkEventsListener(self._session, inner, handler)

        return Declaring(declare())

    def __repr__(self) -> str:
        """Whose it is."""
        return repr(self._inner)
