"""One client of the remote API: what it declared, what it asked, and what it is told.

A task reads messages and answers each in turn. Each declaration that receives something has a task
that turns it into messages. When the socket ends, so does everything that was declared through it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from zenlake.engine.handlers import RingChannel
from zenlake.errors import LocalError, RemoteError, ZError
from zenlake.http.users import Denied, User
from zenlake.keys import KeyExpr, Selector
from zenlake.remote.fields import RemoteEncoding
from zenlake.remote.messages import (
    FROM_CLIENT,
    CutSample,
    RemoteMessage,
    UnreadableBody,
    decode,
    encode,
)
from zenlake.remote.node_requests import NodeRequests
from zenlake.remote.state import ClientState
from zenlake.remote.values import (
    Quality,
    QuerySettings,
    cut_sample_of,
    encoding_from,
    encoding_of,
    locality,
    sample_of,
    stamp_from,
)
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
    from zenlake.aio.subscribe import Subscriber
    from zenlake.api.reply import Reply
    from zenlake.node.sample import Sample

__all__ = ["RemoteClient"]

log = logging.getLogger("zenlake.remote")

QUEUE: Final = 1024
"""Samples that wait between the bus and a client's own queue; then the oldest are dropped."""
BATCH: Final = 256
BATCH_BYTES: Final = 1 << 16
"""Samples and bytes of their payloads in one message of a subscriber that takes many."""
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
        self._state = ClientState(queue_bytes, max_declarations)
        self.outgoing = self._state.outgoing
        self._node_requests = NodeRequests(session, uuid, self._state)
        self._next_query = 0
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
            name = f"_{message.kind.name}"
            handler = getattr(self, name, None) or getattr(self._node_requests, name)
            await handler(message)
            return
        except UnreadableBody as error:
            sequence, why = error.sequence, str(error)
        except (ZError, RemoteError, Denied, ValueError) as error:
            why = str(error)
        self.refused += 1
        if sequence is not None:
            self._state.answer(sequence, "Error", why=why)
        else:
            log.debug("client %s: %s", self.uuid, why)

    # -------------------------------------------------------------------------- declarations

    async def _DeclarePublisher(self, message: RemoteMessage) -> None:
        body = message.body
        self._state.check_new("publisher", body["id"])
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
        self._state.add("publisher", body["id"], publisher, body["key"])
        self._state.ok(message)

    async def _UndeclarePublisher(self, message: RemoteMessage) -> None:
        await self._state.undeclare("publisher", message)

    async def _DeclareSubscriber(self, message: RemoteMessage) -> None:
        subscriber = await self._subscribe(message)
        self._state.start(self._samples(message.body["id"], subscriber))

    async def _DeclareCutSubscriber(self, message: RemoteMessage) -> None:
        subscriber = await self._subscribe(message)
        body = message.body
        self._state.start(self._cut_samples(body["id"], subscriber, body["cut"]))

    async def _subscribe(self, message: RemoteMessage) -> Subscriber:
        body = message.body
        self._state.check_new("subscriber", body["id"])
        key = _key(body)
        self._user.demand(INGRESS, DECLARE_SUBSCRIBER, str(key))
        subscriber = await self._session.declare_subscriber(
            key, RingChannel(QUEUE), allowed_origin=locality(body["origin"])
        )
        self._state.add("subscriber", body["id"], subscriber, body["key"])
        self._state.ok(message)
        return subscriber

    async def _UndeclareSubscriber(self, message: RemoteMessage) -> None:
        await self._state.undeclare("subscriber", message)

    async def _samples(self, id: int, subscriber: Any) -> None:
        missed = 0
        async for sample in subscriber:
            if self._hears(sample):
                self.outgoing.offer("sample", encode("Sample", id=id, sample=sample_of(sample)))
            dropped = sum(subscriber.stats.dropped.values())
            if dropped != missed:
                self.outgoing.dropped["sample"] += dropped - missed
                missed = dropped

    def _hears(self, sample: Sample) -> bool:
        kind = DELETE if sample.kind is SampleKind.DELETE else PUT
        return self._user.may(EGRESS, kind, str(sample.key_expr))

    async def _cut_samples(self, id: int, subscriber: Subscriber, most: int) -> None:
        """Many samples in a message; while there is no room, the oldest are missed and counted."""
        counted = 0
        async for first in subscriber:
            await self.outgoing.room()
            samples: list[CutSample] = []
            size = 0
            sample: Sample | None = first
            while sample is not None:
                if self._hears(sample):
                    one = cut_sample_of(sample, most)
                    samples.append(one)
                    size += len(one.sample.payload)
                full = len(samples) >= BATCH or size >= BATCH_BYTES
                sample = None if full else subscriber.try_recv()
            dropped = sum(subscriber.stats.dropped.values())
            missed, counted = dropped - counted, dropped
            if samples or missed:
                self.outgoing.dropped["sample"] += missed
                self.outgoing.add(encode("Samples", id=id, missed=missed, samples=samples))

    async def _DeclareQueryable(self, message: RemoteMessage) -> None:
        body = message.body
        id = body["id"]
        self._state.check_new("queryable", id)
        key = _key(body)
        self._user.demand(INGRESS, DECLARE_QUERYABLE, str(key))
        queryable = await self._session.declare_queryable(
            key, complete=body["complete"], allowed_origin=locality(body["origin"])
        )
        self._state.add("queryable", id, queryable, body["key"])
        self._state.ok(message)  # before the first query, which the client would not know otherwise
        self._state.start(self._asked(id, queryable))

    async def _UndeclareQueryable(self, message: RemoteMessage) -> None:
        await self._state.undeclare("queryable", message)

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
            self._state.queries[number] = query
            query = None
            while len(self._state.queries) > QUERIES:
                _, oldest = self._state.queries.popitem(last=False)
                self.outgoing.dropped["unanswered"] += 1
                await oldest.drop()

    async def _DeclareQuerier(self, message: RemoteMessage) -> None:
        body = message.body
        self._state.check_new("querier", body["id"])
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
        self._state.add("querier", body["id"], querier, body["key"])
        self._state.ok(message)

    async def _UndeclareQuerier(self, message: RemoteMessage) -> None:
        await self._state.undeclare("querier", message)

    async def _DeclareLivelinessToken(self, message: RemoteMessage) -> None:
        body = message.body
        self._state.check_new("token", body["id"])
        key = _key(body)
        self._user.demand(INGRESS, LIVELINESS_TOKEN, str(key))
        token = await self._session.liveliness().declare_token(key)
        self._state.add("token", body["id"], token, body["key"])
        self._state.ok(message)

    async def _UndeclareLivelinessToken(self, message: RemoteMessage) -> None:
        await self._state.undeclare("token", message)

    async def _DeclareLivelinessSubscriber(self, message: RemoteMessage) -> None:
        body = message.body
        id = body["id"]
        self._state.check_new("subscriber", id)
        key = _key(body)
        self._user.demand(INGRESS, DECLARE_LIVELINESS_SUBSCRIBER, str(key))
        subscriber = await self._session.liveliness().declare_subscriber(
            key, RingChannel(QUEUE), history=body["history"]
        )
        self._state.add("subscriber", id, subscriber, body["key"])
        self._state.ok(message)
        self._state.start(self._samples(id, subscriber))

    async def _UndeclareLivelinessSubscriber(self, message: RemoteMessage) -> None:
        await self._state.undeclare("subscriber", message)

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
        self._state.ok(message)

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
        self._state.ok(message)

    async def _PublisherPut(self, message: RemoteMessage) -> None:
        body = message.body
        publisher: Publisher = self._state.entity("publisher", body["id"])
        self._user.demand(INGRESS, PUT, str(publisher.key_expr))
        encoding: RemoteEncoding | None = body["encoding"]
        await publisher.put(
            body["payload"],
            encoding=None if encoding is None else encoding_from(encoding),
            attachment=body["attachment"],
            timestamp=stamp_from(body["timestamp"]),
        )
        self._state.ok(message)

    async def _PublisherDelete(self, message: RemoteMessage) -> None:
        body = message.body
        publisher: Publisher = self._state.entity("publisher", body["id"])
        self._user.demand(INGRESS, DELETE, str(publisher.key_expr))
        await publisher.delete(
            attachment=body["attachment"], timestamp=stamp_from(body["timestamp"])
        )
        self._state.ok(message)

    # --------------------------------------------------------------------------------- asking

    async def _Get(self, message: RemoteMessage) -> None:
        await self._ask(message, self._get)

    def _get(self, body: dict[str, Any]) -> Replies:
        key = _key(body)
        self._user.demand(INGRESS, QUERY, str(key))
        quality, asking = Quality.read(body["qos"]), QuerySettings.read(body["settings"])
        encoding: RemoteEncoding | None = body["encoding"]
        return self._session.get(
            Selector(key, self._user.restricted(str(key), body["parameters"] or "")),
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
        querier: Querier = self._state.entity("querier", body["querier"])
        encoding: RemoteEncoding | None = body["encoding"]
        key = str(querier.key_expr)
        return querier.get(
            parameters=self._user.restricted(key, body["parameters"] or ""),
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
            if id in self._state.gets:
                raise LocalError(f"get {id} is under way")
            self._state.check_new("listener", -1)
            replies = self._state.gets[id] = get(message.body)
        except (ZError, Denied, ValueError):
            # The client waits for an end, whatever became of its query.
            self.outgoing.add(encode("QueryResponseFinal", id=id))
            raise
        self._state.ok(message)
        self._state.start(self._replies(id, replies))

    async def _replies(self, id: int, replies: Replies) -> None:
        try:
            async for reply in replies:
                if self._passes(reply):
                    await self.outgoing.room()
                    self.outgoing.add(encode("Reply", id=id, reply=_reply(reply)))
        finally:
            self._state.gets.pop(id, None)
            self.outgoing.add(encode("QueryResponseFinal", id=id))

    def _passes(self, reply: Reply) -> bool:
        sample = reply.ok
        return sample is None or self._user.may(EGRESS, REPLY, str(sample.key_expr))

    # ------------------------------------------------------------------------------ answering

    def _query(self, body: dict[str, Any]) -> Query:
        query = self._state.queries.get(body["id"])
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
        self._state.ok(message)

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
        self._state.ok(message)

    async def _ReplyErr(self, message: RemoteMessage) -> None:
        body = message.body
        await self._query(body).reply_err(body["payload"], encoding=encoding_from(body["encoding"]))
        self._state.ok(message)

    async def _QueryResponseFinal(self, message: RemoteMessage) -> None:
        query = self._query(message.body)
        del self._state.queries[message.body["id"]]
        await query.drop()
        self._state.ok(message)

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
            **{shown: self._state.keys(kind) for shown, kind in names.items()},
            "user": self._user.name,
            "received": self.received,
            "refused": self.refused,
            "sent": self.outgoing.sent,
            "waiting_bytes": self.outgoing.size,
            "dropped": dict(self.outgoing.dropped),
        }

    async def close(self) -> None:
        """End all that it declared."""
        await self._state.close()


def _key(body: dict[str, Any]) -> KeyExpr:
    return KeyExpr(body["key"])


def _reply(reply: Reply) -> tuple[bool, Any]:
    sample = reply.ok
    if sample is not None:
        return True, sample_of(sample)
    error = reply.err
    assert error is not None
    return False, (error.payload.to_bytes(), encoding_of(error.encoding))
