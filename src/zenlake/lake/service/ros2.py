"""ROS 2 on the bus, for a lake: learns types from nodes, and names who published.

While it runs it watches the graph (liveliness tokens below `@ros2_lv`). Types that no package
here describes it asks the nodes for; tables whose samples waited for them are decoded again.
Publishers that send only to subscriptions which they see (large arrays, in new distributions) are
shown one, so that what they say is recorded. Of topics behind a ros2dds bridge the graph alone
says the types.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import DecodeError, ZError
from zenlake.lake.decode.ros2_tables import LearntTypes
from zenlake.ros2.attachment import Attachment
from zenlake.ros2.bridge import parse_bridge_token
from zenlake.ros2.graph import MOST_ENDPOINTS, Ros2Graph, TypeQuestion, WantedSubscription
from zenlake.ros2.tokens import PREFIX, EntityKind, endpoint_token, gid_of
from zenlake.ros2.type_service import read_reply, write_request
from zenlake.values import QueryTarget, SampleKind

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

__all__ = ["Ros2Service"]

log = logging.getLogger("zenlake.lake")

NODE: Final = "/zenlake_lake"
LOOK: Final = 1.0
SAVE: Final = 30.0
PATIENCE: Final = 5.0
"""Seconds that a node has to describe a type."""


@final
class Ros2Service:
    """Watches the graph until it is closed."""

    def __init__(
        self, session: Session, types: LearntTypes, learnt: Callable[[str], None] | None = None
    ) -> None:
        """`learnt` is called, on a thread of its own, with each type that became known."""
        self._session = session
        self._types = types
        self._learnt = learnt
        self._lock = threading.Lock()
        self._graph = Ros2Graph(lambda type, hash: types.definitions.find(type, hash) is not None)
        self._asked = 0
        self._tokens: list[Any] = []
        self._over = threading.Event()
        self._woken = threading.Event()
        self._changed = False
        self._subscriber = session.liveliness().declare_subscriber(
            f"{PREFIX}/**", self._heard, history=True
        )
        self._thread = threading.Thread(target=self._follow, name="zenlake ros2", daemon=True)
        self._thread.start()

    @property
    def endpoints(self) -> int:
        """How many nodes and endpoints are there."""
        return len(self._graph.endpoints)

    def problems(self) -> tuple[str, ...]:
        """What is not seen of the graph, a sentence each."""
        left_out = self._graph.overflow
        if not left_out:
            return ()
        return (
            f"ROS 2: {left_out:,} tokens are beyond the {MOST_ENDPOINTS:,} endpoints that are "
            "kept; their types and nodes are not known",
        )

    def close(self) -> None:
        """Watch no more."""
        self._over.set()
        self._woken.set()
        self._thread.join(PATIENCE * 2)
        if not self._session.is_closed():
            self._subscriber.undeclare()
            for token in self._tokens:
                token.undeclare()
        if self._changed:
            self._types.save()

    def _heard(self, sample: Sample) -> None:
        token = str(sample.key_expr)
        bridged = parse_bridge_token(token)
        if bridged is not None:
            if sample.kind is SampleKind.PUT:
                self._types.bridge(bridged)
            return
        with self._lock:
            if sample.kind is SampleKind.DELETE:
                self._graph.went(token)
                return
            endpoint = self._graph.came(token)
            if endpoint is not None and endpoint.kind is EntityKind.PUBLISHER:
                self._types.name(gid_of(token).hex(), endpoint.node, str(endpoint.qos))
                self._changed = True
        self._woken.set()

    def _follow(self) -> None:
        saved = time.monotonic()
        while not self._over.is_set():
            self._woken.wait(LOOK)
            self._woken.clear()
            now = time.monotonic()
            with self._lock:
                todo = self._graph.due(now)
            for one in todo:
                if self._over.is_set():
                    return
                if isinstance(one, TypeQuestion):
                    self._ask(one)
                else:
                    self._listen(one)
            if self._changed and now - saved > SAVE:
                saved, self._changed = now, False
                self._types.save()

    def _ask(self, ask: TypeQuestion) -> None:
        self._asked += 1
        own = self._token("get_type_description", EntityKind.CLIENT)
        attached = bytes(Attachment(self._asked, time.time_ns(), gid_of(own)))
        try:
            replies = self._session.get(
                ask.service,
                payload=write_request(ask.type, ask.hash),
                attachment=attached,
                target=QueryTarget.ALL_COMPLETE,
                timeout=PATIENCE,
            )
            for reply in replies:
                if reply.ok is None:
                    continue
                if self._types.learn(read_reply(reply.ok.payload.to_bytes(), ask.hash)):
                    log.info("learnt %s from %s", ask.type, ask.service)
                    if self._learnt is not None:
                        self._learnt(ask.type)
                return
        except (ZError, DecodeError) as error:
            log.warning("%s could not be learnt from %s: %s", ask.type, ask.service, error)

    def _listen(self, listen: WantedSubscription) -> None:
        one = listen.endpoint
        token = endpoint_token(
            EntityKind.SUBSCRIPTION,
            one.domain,
            str(self._session.zid()),
            (0, len(self._tokens) + 1),
            NODE,
            one.topic,
            one.type,
            one.hash,
            backends="backends:cpu:",
        )
        try:
            self._tokens.append(self._session.liveliness().declare_token(token))
        except ZError as error:
            log.warning("%s cannot be asked for: %s", one.topic, error)

    def _token(self, name: str, kind: EntityKind) -> str:
        return f"{PREFIX}/0/{self._session.zid()}/0/0/{kind}/%/%/{NODE.strip('/')}/{name}"
