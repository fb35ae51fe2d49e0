"""A client's messages about the node and about matching: information, and listeners for changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zenlake.http.users import User
from zenlake.node.inspection import view
from zenlake.remote.messages import RemoteMessage, encode
from zenlake.remote.state import ClientState
from zenlake.remote.values import link_of, stamp_of, transport_of
from zenlake.routing.policy.messages import DECLARE_QUERYABLE, DECLARE_SUBSCRIBER, EGRESS
from zenlake.values import SampleKind

if TYPE_CHECKING:
    from zenlake.aio.publish import Publisher
    from zenlake.aio.querier import Querier
    from zenlake.aio.session import Session

__all__ = ["NodeRequests"]

Shown = Callable[[Any], Any]
"""How a transport or a link is told."""


class NodeRequests:
    """Handlers, one for each kind of message, named after it."""

    def __init__(self, session: Session, user: User, uuid: str, state: ClientState) -> None:
        """`user`: who the client is; `uuid`: the client's."""
        self._session = session
        self._user = user
        self._uuid = uuid
        self._state = state

    async def _listen(
        self,
        message: RemoteMessage,
        subject: str,
        declare: Callable[[], Any],
        update: Callable[[int, Any], bytes],
    ) -> None:
        """Declare a listener, and have its events sent on as `update` writes them."""
        id = message.body["id"]
        self._state.check_new("listener", id)
        listener = await declare()
        self._state.add("listener", id, listener, subject)
        self._state.ok(message)
        self._state.start(self._state.forward_events(listener, lambda event: update(id, event)))

    def _told(self, of: Publisher | Querier, kind: int, matching: bool) -> bool:
        """What a client is told: who may not hear of declarations of a kind knows of none."""
        return matching and self._user.may(EGRESS, kind, str(of.key_expr))

    async def _listen_to_matching(
        self, message: RemoteMessage, of: Publisher | Querier, kind: int
    ) -> None:
        await self._listen(
            message,
            str(of.key_expr),
            of.declare_matching_listener,
            lambda id, status: encode(
                "MatchingStatusUpdate", id=id, matching=self._told(of, kind, status.matching)
            ),
        )

    async def _PublisherDeclareMatchingListener(self, message: RemoteMessage) -> None:
        publisher = self._state.entity("publisher", message.body["publisher"])
        await self._listen_to_matching(message, publisher, DECLARE_SUBSCRIBER)

    async def _QuerierDeclareMatchingListener(self, message: RemoteMessage) -> None:
        querier = self._state.entity("querier", message.body["querier"])
        await self._listen_to_matching(message, querier, DECLARE_QUERYABLE)

    async def _PublisherGetMatchingStatus(self, message: RemoteMessage) -> None:
        publisher = self._state.entity("publisher", message.body["id"])
        matching = self._told(publisher, DECLARE_SUBSCRIBER, publisher.matching_status.matching)
        self._state.reply("MatchingStatus", message, matching=matching)

    async def _QuerierGetMatchingStatus(self, message: RemoteMessage) -> None:
        querier = self._state.entity("querier", message.body["id"])
        matching = self._told(querier, DECLARE_QUERYABLE, querier.matching_status.matching)
        self._state.reply("MatchingStatus", message, matching=matching)

    # ------------------------------------------------------------------------------- the node

    async def _Ping(self, message: RemoteMessage) -> None:
        self._state.reply("PingAck", message, uuid=self._uuid)

    async def _GetSessionInfo(self, message: RemoteMessage) -> None:
        info = self._session.info
        told = self._user.may_read(view.root(self._session.runtime.node))
        # Programs ask for the node's own id as soon as they connect: that is no refusal.
        self._state.reply(
            "ResponseSessionInfo",
            message,
            zid=bytes(info.zid()),
            routers=[bytes(zid) for zid in info.routers_zid()] if told else [],
            peers=[bytes(zid) for zid in info.peers_zid()] if told else [],
        )

    async def _GetTimestamp(self, message: RemoteMessage) -> None:
        stamp = stamp_of(self._session.new_timestamp())
        self._state.reply("ResponseTimestamp", message, timestamp=stamp)

    def _demand_neighbours(self) -> None:
        """Raise `Denied` unless the admin space would tell the client who the neighbours are."""
        self._user.demand_read(view.root(self._session.runtime.node))

    async def _GetTransports(self, message: RemoteMessage) -> None:
        self._demand_neighbours()
        transports = [transport_of(one) for one in self._session.info.transports()]
        self._state.reply("ResponseTransports", message, transports=transports)

    async def _GetLinks(self, message: RemoteMessage) -> None:
        self._demand_neighbours()
        links = [link_of(one) for one in self._session.info.links()]
        self._state.reply("ResponseLinks", message, links=links)

    async def _listen_to_events(
        self, message: RemoteMessage, what: str, declare: Callable[..., Any], shown: Shown
    ) -> None:
        """`what`: a transport or a link; `shown` is how one is told."""
        self._demand_neighbours()
        update = f"{what.capitalize()}EventUpdate"
        await self._listen(
            message,
            f"{what}s",
            lambda: declare(history=message.body["history"]),
            lambda id, event: encode(
                update,
                id=id,
                kind=1 if event.kind is SampleKind.DELETE else 0,
                **{what: shown(getattr(event, what))},
            ),
        )

    async def _DeclareTransportEventsListener(self, message: RemoteMessage) -> None:
        declare = self._session.info.declare_transport_events_listener
        await self._listen_to_events(message, "transport", declare, transport_of)

    async def _DeclareLinkEventsListener(self, message: RemoteMessage) -> None:
        declare = self._session.info.declare_link_events_listener
        await self._listen_to_events(message, "link", declare, link_of)
