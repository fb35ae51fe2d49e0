"""A client's messages about queries: what it asks, and what it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from zenlake.errors import LocalError, ZError
from zenlake.http.users import Denied, User
from zenlake.keys import Selector
from zenlake.remote.fields import RemoteEncoding
from zenlake.remote.messages import RemoteMessage, encode
from zenlake.remote.state import ClientState
from zenlake.remote.values import (
    Quality,
    QuerySettings,
    encoding_from,
    encoding_of,
    key_from,
    locality,
    sample_of,
    stamp_from,
)
from zenlake.routing.policy.messages import (
    DECLARE_QUERYABLE,
    EGRESS,
    INGRESS,
    LIVELINESS_QUERY,
    LIVELINESS_TOKEN,
    QUERY,
    REPLY,
)
from zenlake.values import Encoding, ReplyKeyExpr

if TYPE_CHECKING:
    from zenlake.aio.querier import Querier, Replies
    from zenlake.aio.query import Query
    from zenlake.aio.session import Session
    from zenlake.api.reply import Reply

__all__ = ["QueryRequests"]

QUERIES: Final = 1000
"""Queries that a client may leave unanswered; the oldest are ended, as Eclipse's plugin does."""


NO_ROOM: Final = (
    False,
    (
        b"messages that wait for clients hold all the memory for them; ask again",
        encoding_of(Encoding.TEXT_PLAIN),
    ),
)
"""The error that is replied instead of a value for which there is no room."""


class QueryRequests:
    """Handlers, one for each kind of message, named after it."""

    def __init__(self, session: Session, user: User, host: str, state: ClientState) -> None:
        """`user`: who the client is; `host`: the address that it came from."""
        self._session = session
        self._user = user
        self._host = host
        self._state = state
        self._outgoing = state.outgoing
        self._next_query = 0

    # --------------------------------------------------------------------------------- asking

    async def _DeclareQuerier(self, message: RemoteMessage) -> None:
        body = message.body
        self._state.check_new("querier", body["id"])
        key = key_from(body)
        self._user.demand(INGRESS, QUERY, str(key))
        quality, asking = Quality.read(body["qos"]), QuerySettings.read(body["settings"])
        querier = await self._session.declare_querier(
            key,
            target=asking.target,
            consolidation=asking.consolidation,
            accept_replies=asking.accept,
            timeout=body["timeout"] / 1000,
            congestion_control=quality.congestion_control,
            priority=quality.priority,
            express=quality.express,
            allowed_destination=quality.locality,
        )
        self._state.add("querier", body["id"], querier, body["key"])
        self._state.ok(message)

    async def _Get(self, message: RemoteMessage) -> None:
        await self._ask(message, self._get, REPLY)

    def _get(self, body: dict[str, Any]) -> tuple[str, Replies]:
        key = key_from(body)
        self._user.demand_query(str(key), body["parameters"] or "")
        quality, asking = Quality.read(body["qos"]), QuerySettings.read(body["settings"])
        encoding: RemoteEncoding | None = body["encoding"]
        return str(key), self._session.get(
            Selector(key, self._restricted(str(key), body)),
            target=asking.target,
            consolidation=asking.consolidation,
            accept_replies=asking.accept,
            timeout=body["timeout"] / 1000,
            congestion_control=quality.congestion_control,
            priority=quality.priority,
            express=quality.express,
            payload=body["payload"],
            encoding=None if encoding is None else encoding_from(encoding),
            attachment=body["attachment"],
            allowed_destination=quality.locality,
        )

    async def _QuerierGet(self, message: RemoteMessage) -> None:
        await self._ask(message, self._querier_get, REPLY)

    def _querier_get(self, body: dict[str, Any]) -> tuple[str, Replies]:
        querier: Querier = self._state.entity("querier", body["querier"])
        encoding: RemoteEncoding | None = body["encoding"]
        key = str(querier.key_expr)
        self._user.demand_query(key, body["parameters"] or "")
        return key, querier.get(
            parameters=self._restricted(key, body),
            payload=body["payload"],
            encoding=None if encoding is None else encoding_from(encoding),
            attachment=body["attachment"],
        )

    def _restricted(self, key: str, body: dict[str, Any]) -> str:
        return self._user.restricted(key, body["parameters"] or "", self._host)

    async def _LivelinessGet(self, message: RemoteMessage) -> None:
        await self._ask(message, self._liveliness_get, LIVELINESS_TOKEN)

    def _liveliness_get(self, body: dict[str, Any]) -> tuple[str, Replies]:
        key = key_from(body)
        self._user.demand(INGRESS, LIVELINESS_QUERY, str(key))
        return str(key), self._session.liveliness().get(key, timeout=body["timeout"] / 1000)

    async def _ask(
        self,
        message: RemoteMessage,
        get: Callable[[dict[str, Any]], tuple[str, Replies]],
        kind: int,
    ) -> None:
        """`get` gives the key that is asked for, and the replies; `kind` of message they are."""
        id = message.body["id"]
        try:
            if id in self._state.gets:
                raise LocalError(f"get {id} is under way")
            self._state.check_new("listener", -1)
            key, replies = get(message.body)
            self._state.gets[id] = replies
        except (ZError, Denied, ValueError):
            # The client waits for an end, whatever became of its query.
            self._outgoing.add(encode("QueryResponseFinal", id=id))
            raise
        self._state.ok(message)
        self._state.start(self._replies(id, replies, key, kind))

    async def _replies(self, id: int, replies: Replies, key: str, kind: int) -> None:
        try:
            async for reply in replies:
                sample = reply.ok
                # An error has the key of the question.
                about = key if sample is None else str(sample.key_expr)
                if self._user.may(EGRESS, kind, about):
                    await self._outgoing.room()
                    if not self._outgoing.try_add(encode("Reply", id=id, reply=_reply(reply))):
                        self._outgoing.drop("reply", about)
                        self._outgoing.add(encode("Reply", id=id, reply=NO_ROOM))
        finally:
            self._state.gets.pop(id, None)
            self._outgoing.add(encode("QueryResponseFinal", id=id))

    # ------------------------------------------------------------------------------ answering

    async def _DeclareQueryable(self, message: RemoteMessage) -> None:
        body = message.body
        id = body["id"]
        self._state.check_new("queryable", id)
        key = key_from(body)
        self._user.demand(INGRESS, DECLARE_QUERYABLE, str(key))
        queryable = await self._session.declare_queryable(
            key, complete=body["complete"], allowed_origin=locality(body["origin"])
        )
        self._state.add("queryable", id, queryable, body["key"])
        self._state.ok(message)  # before the first query, which the client would not know otherwise
        self._state.start(self._asked(id, queryable))

    async def _asked(self, id: int, queryable: Any) -> None:
        async for query in queryable:
            if not self._user.may(EGRESS, QUERY, str(query.key_expr)):
                await query.drop()
                continue
            payload, encoding, attachment = query.payload, query.encoding, query.attachment
            number = self._next_query
            self._next_query = (number + 1) & 0xFFFFFFFF
            message = encode(
                "Query",
                id=id,
                query=number,
                key=str(query.key_expr),
                parameters=str(query.parameters),
                payload=None if payload is None else payload.to_bytes(),
                encoding=None if encoding is None else encoding_of(encoding),
                attachment=None if attachment is None else attachment.to_bytes(),
                accept=1 if query.accepts_replies() is ReplyKeyExpr.MATCHING_QUERY else 0,
            )
            if not self._outgoing.offer("query", message, str(query.key_expr)):
                await query.drop()
                continue
            self._state.queries[number] = query
            query = None
            while len(self._state.queries) > QUERIES:
                _, oldest = self._state.queries.popitem(last=False)
                self._outgoing.dropped["unanswered"] += 1
                await oldest.drop()

    def _query(self, body: dict[str, Any]) -> Query:
        query = self._state.queries.get(body["id"])
        if query is None:
            raise LocalError(f"there is no query {body['id']}")
        return query

    async def _ReplyOk(self, message: RemoteMessage) -> None:
        body = message.body
        key = key_from(body)
        self._user.demand(INGRESS, REPLY, str(key))
        await self._query(body).reply(
            key,
            body["payload"],
            encoding=encoding_from(body["encoding"]),
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
            express=Quality.read(body["qos"]).express,
        )
        self._state.ok(message)

    async def _ReplyDel(self, message: RemoteMessage) -> None:
        body = message.body
        key = key_from(body)
        self._user.demand(INGRESS, REPLY, str(key))
        await self._query(body).reply_del(
            key,
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
            express=Quality.read(body["qos"]).express,
        )
        self._state.ok(message)

    async def _ReplyErr(self, message: RemoteMessage) -> None:
        body = message.body
        query = self._query(body)
        self._user.demand(INGRESS, REPLY, str(query.key_expr))
        await query.reply_err(body["payload"], encoding=encoding_from(body["encoding"]))
        self._state.ok(message)

    async def _QueryResponseFinal(self, message: RemoteMessage) -> None:
        query = self._query(message.body)
        del self._state.queries[message.body["id"]]
        await query.drop()
        self._state.ok(message)


def _reply(reply: Reply) -> tuple[bool, Any]:
    sample = reply.ok
    if sample is not None:
        return True, sample_of(sample)
    error = reply.err
    assert error is not None
    return False, (error.payload.to_bytes(), encoding_of(error.encoding))
