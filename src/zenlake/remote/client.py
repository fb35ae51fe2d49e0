"""One client of the remote API: what it publishes and subscribes to, and what it is told.

A task reads messages and answers each in turn. Each declaration that receives something has a task
that turns it into messages. When the socket ends, so does everything that was declared through it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from zenlake.engine.handlers import RingChannel
from zenlake.errors import RemoteError, ZError
from zenlake.http.shares import Holding
from zenlake.http.users import Denied, User
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
from zenlake.remote.query_requests import QueryRequests
from zenlake.remote.state import ClientState
from zenlake.remote.values import (
    Quality,
    cut_sample_of,
    encoding_from,
    key_from,
    locality,
    sample_of,
    stamp_from,
)
from zenlake.routing.policy.messages import (
    DECLARE_LIVELINESS_SUBSCRIBER,
    DECLARE_SUBSCRIBER,
    DELETE,
    EGRESS,
    INGRESS,
    LIVELINESS_TOKEN,
    PUT,
)
from zenlake.transport.drops import DropLog
from zenlake.values import SampleKind

if TYPE_CHECKING:
    from zenlake.aio.publish import Publisher
    from zenlake.aio.session import Session
    from zenlake.aio.subscribe import Subscriber
    from zenlake.node.sample import Sample

__all__ = ["RemoteClient"]

log = logging.getLogger("zenlake.remote")

QUEUE: Final = 1024
"""Samples that wait between the bus and a client's own queue; then the oldest are dropped."""
BATCH: Final = 256
BATCH_BYTES: Final = 1 << 16
"""Samples and bytes of their payloads in one message of a subscriber that takes many."""


UNDECLARES: Final = {
    "UndeclarePublisher": "publisher",
    "UndeclareSubscriber": "subscriber",
    "UndeclareQuerier": "querier",
    "UndeclareQueryable": "queryable",
    "UndeclareLivelinessToken": "token",
    "UndeclareLivelinessSubscriber": "subscriber",
    "UndeclareMatchingListener": "listener",
    "UndeclareTransportEventsListener": "listener",
    "UndeclareLinkEventsListener": "listener",
}
"""Messages that end a declaration, and the kind of it."""


class RemoteClient:
    """One client."""

    def __init__(
        self,
        session: Session,
        user: User,
        uuid: str,
        host: str,
        port: int,
        queue_bytes: int,
        max_declarations: int,
        held: Holding,
    ) -> None:
        """`host`, `port`: where it comes from; `held`: its part in what waits for all."""
        self._session = session
        self._user = user
        self.uuid = uuid
        self.address = f"{host}:{port}"
        self._state = ClientState(
            queue_bytes, max_declarations, DropLog(session.runtime.node.drops), held
        )
        self.outgoing = self._state.outgoing
        self._others = (
            QueryRequests(session, user, host, self._state),
            NodeRequests(session, user, uuid, self._state),
        )
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
            ended = UNDECLARES.get(message.kind.name)
            if ended is not None:
                await self._state.undeclare(ended, message)
                return
            handler: Callable[[RemoteMessage], Coroutine[Any, Any, None]]
            name = f"_{message.kind.name}"
            where = next(one for one in (self, *self._others) if hasattr(one, name))
            handler = getattr(where, name)
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
            key_from(body),
            encoding=encoding_from(body["encoding"]),
            congestion_control=quality.congestion_control,
            priority=quality.priority,
            express=quality.express,
            reliability=quality.reliability,
            allowed_destination=quality.locality,
        )
        self._state.add("publisher", body["id"], publisher, body["key"])
        self._state.ok(message)

    async def _DeclareSubscriber(self, message: RemoteMessage) -> None:
        subscriber = await self._subscribe(message)
        self._state.start(self._samples(message.body["id"], subscriber, self._hears))

    async def _DeclareCutSubscriber(self, message: RemoteMessage) -> None:
        subscriber = await self._subscribe(message)
        body = message.body
        self._state.start(self._cut_samples(body["id"], subscriber, body["cut"]))

    async def _subscribe(self, message: RemoteMessage) -> Subscriber:
        body = message.body
        self._state.check_new("subscriber", body["id"])
        key = key_from(body)
        self._user.demand(INGRESS, DECLARE_SUBSCRIBER, str(key))
        subscriber = await self._session.declare_subscriber(
            key, RingChannel(QUEUE), allowed_origin=locality(body["origin"])
        )
        self._state.add("subscriber", body["id"], subscriber, body["key"])
        self._state.ok(message)
        return subscriber

    async def _samples(self, id: int, subscriber: Any, hears: Callable[[Sample], bool]) -> None:
        missed = 0
        async for sample in subscriber:
            if hears(sample):
                message = encode("Sample", id=id, sample=sample_of(sample))
                self.outgoing.offer("sample", message, str(sample.key_expr))
            dropped = sum(subscriber.stats.dropped.values())
            if dropped != missed:
                self.outgoing.dropped["sample"] += dropped - missed
                missed = dropped

    def _hears(self, sample: Sample) -> bool:
        kind = DELETE if sample.kind is SampleKind.DELETE else PUT
        return self._user.may(EGRESS, kind, str(sample.key_expr))

    def _hears_token(self, sample: Sample) -> bool:
        return self._user.may(EGRESS, LIVELINESS_TOKEN, str(sample.key_expr))

    async def _cut_samples(self, id: int, subscriber: Subscriber, most: int) -> None:
        """Many samples in a message; while there is no room, the oldest are missed and counted."""
        counted = untold = 0
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
            self.outgoing.dropped["sample"] += dropped - counted
            missed, counted = dropped - counted + untold, dropped
            if not samples and not missed:
                continue
            untold = 0
            message = encode("Samples", id=id, missed=missed, samples=samples)
            if not self.outgoing.try_add(message):
                untold = missed + len(samples)
                for one in samples:
                    self.outgoing.drop("sample", one.sample.key)

    async def _DeclareLivelinessToken(self, message: RemoteMessage) -> None:
        body = message.body
        self._state.check_new("token", body["id"])
        key = key_from(body)
        self._user.demand(INGRESS, LIVELINESS_TOKEN, str(key))
        token = await self._session.liveliness().declare_token(key)
        self._state.add("token", body["id"], token, body["key"])
        self._state.ok(message)

    async def _DeclareLivelinessSubscriber(self, message: RemoteMessage) -> None:
        body = message.body
        id = body["id"]
        self._state.check_new("subscriber", id)
        key = key_from(body)
        self._user.demand(INGRESS, DECLARE_LIVELINESS_SUBSCRIBER, str(key))
        subscriber = await self._session.liveliness().declare_subscriber(
            key, RingChannel(QUEUE), history=body["history"]
        )
        self._state.add("subscriber", id, subscriber, body["key"])
        self._state.ok(message)
        self._state.start(self._samples(id, subscriber, self._hears_token))

    # ----------------------------------------------------------------------------- publishing

    async def _Put(self, message: RemoteMessage) -> None:
        body = message.body
        key = key_from(body)
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
        key = key_from(body)
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
