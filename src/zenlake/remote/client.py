"""One client of the remote API: what it declared, what it asked, and what it is told.

A task reads messages and answers each in turn. Each declaration that receives something has a task
that turns it into messages. When the socket ends, so does everything that was declared through it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from zenlake.engine.handlers import RingChannel
from zenlake.errors import LocalError, RemoteError, ZError
from zenlake.keys import KeyExpr, Selector
from zenlake.remote.fields import RemoteEncoding
from zenlake.remote.messages import FROM_CLIENT, RemoteMessage, UnreadableBody, decode, encode
from zenlake.remote.outgoing import Outgoing
from zenlake.remote.values import (
    Quality,
    QuerySettings,
    encoding_from,
    encoding_of,
    link_of,
    locality,
    sample_of,
    stamp_from,
    stamp_of,
    transport_of,
)
from zenlake.rest.users import Denied, User
from zenlake.routing.policy.messages import (
    DECLARE_LIVELINESS_SUBSCRIBER,
    DECLARE_QUERYABLE,
    DECLARE_SUBSCRIBER,
    DELETE,
    EGRESS,
    INGRESS,
    LIVELINESS_QUERY,
    LIVELINESS_TOKEN,
    PUT,
    QUERY,
    REPLY,
)
from zenlake.values import ReplyKeyExpr, SampleKind

if TYPE_CHECKING:
    from zenlake.aio.publish import Publisher
    from zenlake.aio.querier import Querier, Replies
    from zenlake.aio.query import Query
    from zenlake.aio.session import Session
    from zenlake.api.reply import Reply

__all__ = ["RemoteClient"]

log = logging.getLogger("zenlake.remote")

QUEUE: Final = 1024
"""Samples that wait between the bus and a client's own queue; then the oldest are dropped."""
QUERIES: Final = 1000
"""Queries that a client may leave unanswered; the oldest are ended, as Eclipse's plugin does."""


class RemoteClient:
    """One client."""

    def __init__(
        self,
        session: Session,
        user: User,
        uuid: str,
        address: str,
        queue_bytes: int,
        max_declarations: int,
    ) -> None:
        """`address`: where it comes from, for people."""
        self._session = session
        self._user = user
        self.uuid = uuid
        self.address = address
        self.outgoing = Outgoing(queue_bytes)
        self._most = max_declarations
        #: Declarations by kind and id: what ends each, and its key.
        self._declared: dict[str, dict[int, tuple[Any, str]]] = {
            kind: {}
            for kind in ("publisher", "subscriber", "queryable", "querier", "token", "listener")
        }
        self._gets: dict[int, Replies] = {}
        self._queries: OrderedDict[int, Query] = OrderedDict()
        self._next_query = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.received = 0
        #: Messages of the client that were refused.
        self.refused = 0

    # ------------------------------------------------------------------------------ messages

    async def hear(self, data: bytes) -> None:
        """Do what a message says, and answer it if an answer is wanted."""
        self.received += 1
        await self.outgoing.room()
        sequence: int | None = None
        try:
            message = decode(data, FROM_CLIENT)
            sequence = message.sequence
            handler: Callable[[RemoteMessage], Coroutine[Any, Any, None]]
            handler = getattr(self, f"_{message.kind.name}")
            await handler(message)
            return
        except UnreadableBody as error:
            sequence, why = error.sequence, str(error)
        except (ZError, RemoteError, Denied, ValueError) as error:
            why = str(error)
        self.refused += 1
        if sequence is not None:
            self._answer(sequence, "Error", why=why)
        else:
            log.debug("client %s: %s", self.uuid, why)

    def _answer(self, sequence: int, name: str, **body: Any) -> None:
        self.outgoing.add(encode(name, sequence, **body))

    def _ok(self, message: RemoteMessage) -> None:
        if message.sequence is not None:
            self._answer(message.sequence, "Ok", number=message.kind.number)

    def _tell(self, name: str, message: RemoteMessage, **body: Any) -> None:
        if message.sequence is not None:
            self._answer(message.sequence, name, **body)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -------------------------------------------------------------------------- declarations

    def _check_new(self, kind: str, id: int) -> None:
        if id in self._declared[kind]:
            raise LocalError(f"{kind} {id} is declared already")
        total = sum(len(one) for one in self._declared.values()) + len(self._gets)
        if total >= self._most:
            raise LocalError(f"{total} declarations and queries: plugins/remote_api allows no more")

    def _entity(self, kind: str, id: int) -> Any:
        declared = self._declared[kind].get(id)
        if declared is None:
            raise LocalError(f"there is no {kind} {id}")
        return declared[0]

    async def _undeclare(self, kind: str, message: RemoteMessage) -> None:
        id = message.body["id"]
        entity = self._entity(kind, id)
        del self._declared[kind][id]
        await entity.undeclare()
        self._ok(message)

    async def _DeclarePublisher(self, message: RemoteMessage) -> None:
        body = message.body
        self._check_new("publisher", body["id"])
        quality = Quality.read(body["qos"])
        publisher = await self._session.declare_publisher(
            _key(body),
            encoding=encoding_from(body["encoding"]),
            congestion_control=quality.congestion_control,
            priority=quality.priority,
            express=quality.express,
            reliability=quality.reliability,
            allowed_destination=quality.locality,
        )
        self._declared["publisher"][body["id"]] = (publisher, body["key"])
        self._ok(message)

    async def _UndeclarePublisher(self, message: RemoteMessage) -> None:
        await self._undeclare("publisher", message)

    async def _DeclareSubscriber(self, message: RemoteMessage) -> None:
        body = message.body
        id = body["id"]
        self._check_new("subscriber", id)
        key = _key(body)
        self._user.demand(INGRESS, DECLARE_SUBSCRIBER, str(key))
        subscriber = await self._session.declare_subscriber(
            key, RingChannel(QUEUE), allowed_origin=locality(body["origin"])
        )
        self._declared["subscriber"][id] = (subscriber, body["key"])
        self._ok(message)
        self._start(self._samples(id, subscriber))

    async def _UndeclareSubscriber(self, message: RemoteMessage) -> None:
        await self._undeclare("subscriber", message)

    async def _samples(self, id: int, subscriber: Any) -> None:
        missed = 0
        async for sample in subscriber:
            kind = DELETE if sample.kind is SampleKind.DELETE else PUT
            if self._user.may(EGRESS, kind, str(sample.key_expr)):
                self.outgoing.offer("sample", encode("Sample", id=id, sample=sample_of(sample)))
            dropped = sum(subscriber.stats.dropped.values())
            if dropped != missed:
                self.outgoing.dropped["sample"] += dropped - missed
                missed = dropped

    async def _DeclareQueryable(self, message: RemoteMessage) -> None:
        body = message.body
        id = body["id"]
        self._check_new("queryable", id)
        key = _key(body)
        self._user.demand(INGRESS, DECLARE_QUERYABLE, str(key))
        queryable = await self._session.declare_queryable(
            key, complete=body["complete"], allowed_origin=locality(body["origin"])
        )
        self._declared["queryable"][id] = (queryable, body["key"])
        self._ok(message)  # before the first query, which the client would not know otherwise
        self._start(self._asked(id, queryable))

    async def _UndeclareQueryable(self, message: RemoteMessage) -> None:
        await self._undeclare("queryable", message)

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
            if not self.outgoing.offer("query", message):
                await query.drop()
                continue
            self._queries[number] = query
            query = None
            while len(self._queries) > QUERIES:
                _, oldest = self._queries.popitem(last=False)
                self.outgoing.dropped["unanswered"] += 1
                await oldest.drop()

    async def _DeclareQuerier(self, message: RemoteMessage) -> None:
        body = message.body
        self._check_new("querier", body["id"])
        key = _key(body)
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
        self._declared["querier"][body["id"]] = (querier, body["key"])
        self._ok(message)

    async def _UndeclareQuerier(self, message: RemoteMessage) -> None:
        await self._undeclare("querier", message)

    async def _DeclareLivelinessToken(self, message: RemoteMessage) -> None:
        body = message.body
        self._check_new("token", body["id"])
        key = _key(body)
        self._user.demand(INGRESS, LIVELINESS_TOKEN, str(key))
        token = await self._session.liveliness().declare_token(key)
        self._declared["token"][body["id"]] = (token, body["key"])
        self._ok(message)

    async def _UndeclareLivelinessToken(self, message: RemoteMessage) -> None:
        await self._undeclare("token", message)

    async def _DeclareLivelinessSubscriber(self, message: RemoteMessage) -> None:
        body = message.body
        id = body["id"]
        self._check_new("subscriber", id)
        key = _key(body)
        self._user.demand(INGRESS, DECLARE_LIVELINESS_SUBSCRIBER, str(key))
        subscriber = await self._session.liveliness().declare_subscriber(
            key, RingChannel(QUEUE), history=body["history"]
        )
        self._declared["subscriber"][id] = (subscriber, body["key"])
        self._ok(message)
        self._start(self._samples(id, subscriber))

    async def _UndeclareLivelinessSubscriber(self, message: RemoteMessage) -> None:
        await self._undeclare("subscriber", message)

    # ----------------------------------------------------------------------------- publishing

    async def _Put(self, message: RemoteMessage) -> None:
        body = message.body
        key = _key(body)
        self._user.demand(INGRESS, PUT, str(key))
        quality = Quality.read(body["qos"])
        await self._session.put(
            key,
            body["payload"],
            encoding=encoding_from(body["encoding"]),
            congestion_control=quality.congestion_control,
            priority=quality.priority,
            express=quality.express,
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
            allowed_destination=quality.locality,
        )
        self._ok(message)

    async def _Delete(self, message: RemoteMessage) -> None:
        body = message.body
        key = _key(body)
        self._user.demand(INGRESS, DELETE, str(key))
        quality = Quality.read(body["qos"])
        await self._session.delete(
            key,
            congestion_control=quality.congestion_control,
            priority=quality.priority,
            express=quality.express,
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
            allowed_destination=quality.locality,
        )
        self._ok(message)

    async def _PublisherPut(self, message: RemoteMessage) -> None:
        body = message.body
        publisher: Publisher = self._entity("publisher", body["id"])
        self._user.demand(INGRESS, PUT, str(publisher.key_expr))
        encoding: RemoteEncoding | None = body["encoding"]
        await publisher.put(
            body["payload"],
            encoding=None if encoding is None else encoding_from(encoding),
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
        )
        self._ok(message)

    async def _PublisherDelete(self, message: RemoteMessage) -> None:
        body = message.body
        publisher: Publisher = self._entity("publisher", body["id"])
        self._user.demand(INGRESS, DELETE, str(publisher.key_expr))
        await publisher.delete(
            attachment=body["attachment"], timestamp=stamp_from(body["timestamp"])
        )
        self._ok(message)

    # --------------------------------------------------------------------------------- asking

    async def _Get(self, message: RemoteMessage) -> None:
        await self._ask(message, self._get)

    def _get(self, body: dict[str, Any]) -> Replies:
        key = _key(body)
        self._user.demand(INGRESS, QUERY, str(key))
        quality, asking = Quality.read(body["qos"]), QuerySettings.read(body["settings"])
        encoding: RemoteEncoding | None = body["encoding"]
        return self._session.get(
            Selector(key, body["parameters"]),
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
        await self._ask(message, self._querier_get)

    def _querier_get(self, body: dict[str, Any]) -> Replies:
        querier: Querier = self._entity("querier", body["querier"])
        encoding: RemoteEncoding | None = body["encoding"]
        return querier.get(
            parameters=body["parameters"],
            payload=body["payload"],
            encoding=None if encoding is None else encoding_from(encoding),
            attachment=body["attachment"],
        )

    async def _LivelinessGet(self, message: RemoteMessage) -> None:
        await self._ask(message, self._liveliness_get)

    def _liveliness_get(self, body: dict[str, Any]) -> Replies:
        key = _key(body)
        self._user.demand(INGRESS, LIVELINESS_QUERY, str(key))
        return self._session.liveliness().get(key, timeout=body["timeout"] / 1000)

    async def _ask(self, message: RemoteMessage, get: Callable[[dict[str, Any]], Replies]) -> None:
        id = message.body["id"]
        try:
            if id in self._gets:
                raise LocalError(f"get {id} is under way")
            self._check_new("listener", -1)
            replies = self._gets[id] = get(message.body)
        except (ZError, Denied, ValueError):
            # The client waits for an end, whatever became of its query.
            self.outgoing.add(encode("QueryResponseFinal", id=id))
            raise
        self._ok(message)
        self._start(self._replies(id, replies))

    async def _replies(self, id: int, replies: Replies) -> None:
        try:
            async for reply in replies:
                if self._passes(reply):
                    await self.outgoing.room()
                    self.outgoing.add(encode("Reply", id=id, reply=_reply(reply)))
        finally:
            self._gets.pop(id, None)
            self.outgoing.add(encode("QueryResponseFinal", id=id))

    def _passes(self, reply: Reply) -> bool:
        sample = reply.ok
        return sample is None or self._user.may(EGRESS, REPLY, str(sample.key_expr))

    # ------------------------------------------------------------------------------ answering

    def _query(self, body: dict[str, Any]) -> Query:
        query = self._queries.get(body["id"])
        if query is None:
            raise LocalError(f"there is no query {body['id']}")
        return query

    async def _ReplyOk(self, message: RemoteMessage) -> None:
        body = message.body
        key = _key(body)
        self._user.demand(INGRESS, REPLY, str(key))
        await self._query(body).reply(
            key,
            body["payload"],
            encoding=encoding_from(body["encoding"]),
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
            express=Quality.read(body["qos"]).express,
        )
        self._ok(message)

    async def _ReplyDel(self, message: RemoteMessage) -> None:
        body = message.body
        key = _key(body)
        self._user.demand(INGRESS, REPLY, str(key))
        await self._query(body).reply_del(
            key,
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
            express=Quality.read(body["qos"]).express,
        )
        self._ok(message)

    async def _ReplyErr(self, message: RemoteMessage) -> None:
        body = message.body
        await self._query(body).reply_err(body["payload"], encoding=encoding_from(body["encoding"]))
        self._ok(message)

    async def _QueryResponseFinal(self, message: RemoteMessage) -> None:
        query = self._query(message.body)
        del self._queries[message.body["id"]]
        await query.drop()
        self._ok(message)

    # ------------------------------------------------------------------------------- matching

    async def _listen(self, message: RemoteMessage, of: Publisher | Querier) -> None:
        id = message.body["id"]
        self._check_new("listener", id)
        listener = await of.declare_matching_listener()
        self._declared["listener"][id] = (listener, str(of.key_expr))
        self._ok(message)
        self._start(
            self._events(
                listener, lambda status: encode(
                    "MatchingStatusUpdate", id=id, matching=status.matching
                )
            )
        )  # fmt: skip

    async def _events(self, listener: AsyncIterable[Any], encoded: Callable[[Any], bytes]) -> None:
        async for event in listener:
            await self.outgoing.room()
            self.outgoing.add(encoded(event))

    async def _PublisherDeclareMatchingListener(self, message: RemoteMessage) -> None:
        await self._listen(message, self._entity("publisher", message.body["publisher"]))

    async def _QuerierDeclareMatchingListener(self, message: RemoteMessage) -> None:
        await self._listen(message, self._entity("querier", message.body["querier"]))

    async def _UndeclareMatchingListener(self, message: RemoteMessage) -> None:
        await self._undeclare("listener", message)

    async def _PublisherGetMatchingStatus(self, message: RemoteMessage) -> None:
        status = self._entity("publisher", message.body["id"]).matching_status
        self._tell("MatchingStatus", message, matching=status.matching)

    async def _QuerierGetMatchingStatus(self, message: RemoteMessage) -> None:
        status = self._entity("querier", message.body["id"]).matching_status
        self._tell("MatchingStatus", message, matching=status.matching)

    # ------------------------------------------------------------------------------- the node

    async def _Ping(self, message: RemoteMessage) -> None:
        self._tell("PingAck", message, uuid=self.uuid)

    async def _GetSessionInfo(self, message: RemoteMessage) -> None:
        info = self._session.info
        self._tell(
            "ResponseSessionInfo",
            message,
            zid=bytes(info.zid()),
            routers=[bytes(zid) for zid in info.routers_zid()],
            peers=[bytes(zid) for zid in info.peers_zid()],
        )

    async def _GetTimestamp(self, message: RemoteMessage) -> None:
        stamp = stamp_of(self._session.new_timestamp())
        self._tell("ResponseTimestamp", message, timestamp=stamp)

    async def _GetTransports(self, message: RemoteMessage) -> None:
        transports = [transport_of(one) for one in self._session.info.transports()]
        self._tell("ResponseTransports", message, transports=transports)

    async def _GetLinks(self, message: RemoteMessage) -> None:
        links = [link_of(one) for one in self._session.info.links()]
        self._tell("ResponseLinks", message, links=links)

    async def _DeclareTransportEventsListener(self, message: RemoteMessage) -> None:
        id = message.body["id"]
        self._check_new("listener", id)
        listener = await self._session.info.declare_transport_events_listener(
            history=message.body["history"]
        )
        self._declared["listener"][id] = (listener, "transports")
        self._ok(message)
        self._start(
            self._events(
                listener, lambda event: encode(
                    "TransportEventUpdate",
                    id=id,
                    kind=1 if event.kind is SampleKind.DELETE else 0,
                    transport=transport_of(event.transport),
                )
            )
        )  # fmt: skip

    async def _UndeclareTransportEventsListener(self, message: RemoteMessage) -> None:
        await self._undeclare("listener", message)

    async def _DeclareLinkEventsListener(self, message: RemoteMessage) -> None:
        id = message.body["id"]
        self._check_new("listener", id)
        listener = await self._session.info.declare_link_events_listener(
            history=message.body["history"]
        )
        self._declared["listener"][id] = (listener, "links")
        self._ok(message)
        self._start(
            self._events(
                listener, lambda event: encode(
                    "LinkEventUpdate",
                    id=id,
                    kind=1 if event.kind is SampleKind.DELETE else 0,
                    link=link_of(event.link),
                )
            )
        )  # fmt: skip

    async def _UndeclareLinkEventsListener(self, message: RemoteMessage) -> None:
        await self._undeclare("listener", message)

    # --------------------------------------------------------------------------------- ending

    def shown(self) -> dict[str, object]:
        """The client, for the admin space."""
        names = {
            "publishers": "publisher",
            "subscribers": "subscriber",
            "queryables": "queryable",
            "queriers": "querier",
            "liveliness_tokens": "token",
        }
        return {
            "uuid": self.uuid,
            "remote_address": self.address,
            **{
                shown: {str(id): key for id, (_, key) in list(self._declared[kind].items())}
                for shown, kind in names.items()
            },
            "user": self._user.name,
            "received": self.received,
            "refused": self.refused,
            "sent": self.outgoing.sent,
            "waiting_bytes": self.outgoing.size,
            "dropped": dict(self.outgoing.dropped),
        }

    async def close(self) -> None:
        """End all that it declared."""
        self.outgoing.close()
        for declared in self._declared.values():
            for entity, _ in list(declared.values()):
                with contextlib.suppress(ZError):
                    await entity.undeclare()
            declared.clear()
        for query in list(self._queries.values()):
            with contextlib.suppress(ZError):
                await query.drop()
        self._queries.clear()
        self._gets.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _key(body: dict[str, Any]) -> KeyExpr:
    return KeyExpr(body["key"])


def _reply(reply: Reply) -> tuple[bool, Any]:
    sample = reply.ok
    if sample is not None:
        return True, sample_of(sample)
    error = reply.err
    assert error is not None
    return False, (error.payload.to_bytes(), encoding_of(error.encoding))
