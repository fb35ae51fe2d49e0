"""The graph of ROS 2, and what follows from it: whom to ask for types, which buffers to ask for.

Tokens come and go; time is an argument. What is to be done comes out of `due`:

    TypeQuestion        a type that no definition is known of, and the service of a node that has it
    WantedSubscription  a topic whose publisher sends only to subscriptions in the graph
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from zenlake.ros2.names import BUFFER_CPU
from zenlake.ros2.tokens import EntityKind, RosEntity, parse_token
from zenlake.ros2.type_service import SERVICE

__all__ = ["MOST_ENDPOINTS", "Ros2Graph", "TypeQuestion", "WantedSubscription"]

MOST_ENDPOINTS: Final = 50_000
MOST_UNKNOWN: Final = 1000
MOST_LISTENING: Final = 1000
AGAIN: Final = 60.0
"""Seconds until a node that did not answer is asked again."""


@dataclass(frozen=True, slots=True)
class TypeQuestion:
    """A question for a type."""

    type: str
    hash: str
    service: str
    """The key of the service."""


@dataclass(frozen=True, slots=True)
class WantedSubscription:
    """A topic that wants a subscription in the graph."""

    endpoint: RosEntity

    @property
    def key(self) -> str:
        """Where its data will be."""
        return f"{self.endpoint.data_key}/{BUFFER_CPU}"


@final
class Ros2Graph:
    """Nodes and endpoints that are there now."""

    def __init__(self, known: Callable[[str, str], bool]) -> None:
        """`known`: whether a type with a hash can be read already."""
        self._known = known
        self.endpoints: dict[str, RosEntity] = {}
        self.overflow = 0
        """Tokens that were not kept, because there are too many."""
        self._services: dict[tuple[str, str], str] = {}
        self._unknown: dict[str, RosEntity] = {}
        self._asked: dict[str, float] = {}
        self._listening: set[str] = set()

    def came(self, token: str) -> RosEntity | None:
        """A token is there; gives what it says."""
        entity = parse_token(token)
        if entity is None:
            return None
        if len(self.endpoints) >= MOST_ENDPOINTS and token not in self.endpoints:
            self.overflow += 1
            return None
        self.endpoints[token] = entity
        if entity.kind is EntityKind.SERVICE and entity.topic.endswith(f"/{SERVICE}"):
            self._services[entity.zid, entity.node] = entity.data_key
        elif entity.kind is EntityKind.PUBLISHER and entity.hash is not None:
            room = len(self._unknown) < MOST_UNKNOWN
            if room and not self._known(entity.type, entity.hash):
                self._unknown.setdefault(entity.hash, entity)
        return entity

    def went(self, token: str) -> None:
        """A token is gone."""
        entity = self.endpoints.pop(token, None)
        if entity is not None and self._services.get((entity.zid, entity.node)) == (
            entity.data_key if entity.type else None
        ):
            del self._services[entity.zid, entity.node]

    def due(self, now: float) -> list[TypeQuestion | WantedSubscription]:
        """What is to be done now; each is given once, and again when it failed long ago."""
        todo: list[TypeQuestion | WantedSubscription] = []
        for hash, entity in list(self._unknown.items()):
            if self._known(entity.type, hash):
                del self._unknown[hash]
                self._asked.pop(hash, None)
                continue
            service = self._services.get((entity.zid, entity.node))
            if service is not None and now >= self._asked.get(hash, now):
                self._asked[hash] = now + AGAIN
                todo.append(TypeQuestion(entity.type, hash, service))
        for entity in self.endpoints.values():
            wants = entity.kind is EntityKind.PUBLISHER and entity.backends
            if len(self._listening) >= MOST_LISTENING:
                break
            if wants and entity.data_key not in self._listening:
                self._listening.add(entity.data_key)
                todo.append(WantedSubscription(entity))
        return todo
