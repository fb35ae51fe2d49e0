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
        found = parse_token(token)
        if found is None:
            return None
        if len(self.endpoints) >= MOST_ENDPOINTS and token not in self.endpoints:
            self.overflow += 1
            return None
        self.endpoints[token] = found
        if found.kind is EntityKind.SERVICE and found.topic.endswith(f"/{SERVICE}"):
            self._services[found.zid, found.node] = found.data_key
        elif found.kind is EntityKind.PUBLISHER and found.hash is not None:
            room = len(self._unknown) < MOST_UNKNOWN
            if room and not self._known(found.type, found.hash):
                self._unknown.setdefault(found.hash, found)
        return found

    def went(self, token: str) -> None:
        """A token is gone."""
        found = self.endpoints.pop(token, None)
        if found is not None and self._services.get((found.zid, found.node)) == (
            found.data_key if found.type else None
        ):
            del self._services[found.zid, found.node]

    def due(self, now: float) -> list[TypeQuestion | WantedSubscription]:
        """What is to be done now; each is given once, and again when it failed long ago."""
        todo: list[TypeQuestion | WantedSubscription] = []
        for hash, found in list(self._unknown.items()):
            if self._known(found.type, hash):
                del self._unknown[hash]
                self._asked.pop(hash, None)
                continue
            service = self._services.get((found.zid, found.node))
            if service is not None and now >= self._asked.get(hash, now):
                self._asked[hash] = now + AGAIN
                todo.append(TypeQuestion(found.type, hash, service))
        for found in self.endpoints.values():
            wants = found.kind is EntityKind.PUBLISHER and found.backends
            if len(self._listening) >= MOST_LISTENING:
                break
            if wants and found.data_key not in self._listening:
                self._listening.add(found.data_key)
                todo.append(WantedSubscription(found))
        return todo
