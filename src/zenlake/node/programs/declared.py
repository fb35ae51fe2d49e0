"""What the programs of a node have declared, and which of it meets a key.

In a namespace, programs call keys by what follows its prefix, and so does everything here; the
tables and neighbours know whole keys. `outside` and `inside` translate.
"""

from __future__ import annotations

from zenlake.keys.matching import includes, intersects
from zenlake.keys.tree import KeyTree
from zenlake.node.entities import (
    REMOTE,
    SESSION_LOCAL,
    LocalQuerier,
    LocalQueryable,
    LocalSubscriber,
    Publication,
    Replying,
)
from zenlake.routing.policy.namespace import Namespace


class ProgramEntities(Replying):
    """The subscribers, queryables, publishers and queriers of this node's programs."""

    def __init__(self, zid: bytes, namespace: Namespace | None) -> None:
        """Nothing yet."""
        super().__init__(zid, namespace)
        self.next_eid: int = 1
        self.subscribers: dict[int, LocalSubscriber] = {}
        self._subscribers: KeyTree[list[LocalSubscriber]] = KeyTree()
        #: Subscribers of the node itself, in no namespace; only if the programs are in one.
        self._without_namespace: list[LocalSubscriber] = []
        self.queryables: dict[int, LocalQueryable] = {}
        self.publications: dict[int, Publication] = {}
        self.queriers: dict[int, LocalQuerier] = {}

    def eid(self) -> int:
        """A number for a new entity."""
        self.next_eid += 1
        return self.next_eid

    def outside(self, key: str) -> str:
        """A key of our programs as it is on the network: with the namespace."""
        namespace = self.namespace
        return key if namespace is None else namespace.outside(key)

    def inside(self, key: str) -> str | None:
        """What our programs call a key; None if they have no word for it."""
        namespace = self.namespace
        return key if namespace is None else namespace.inside(key)

    def subscribers_of(self, key: str, local: bool) -> list[LocalSubscriber]:
        """The subscribers that hear a sample, by whether it comes from this very node."""
        unwanted = REMOTE if local else SESSION_LOCAL
        subscribers: list[LocalSubscriber] = []
        for entry in self._subscribers.intersecting(key):
            for subscriber in entry.value:
                if subscriber.origin != unwanted:
                    subscribers.append(subscriber)
        return subscribers

    def heard_by(self, key: str) -> list[LocalSubscriber]:
        """The subscribers that hear what others say under a whole key."""
        name = self.inside(key)
        subscribers = [] if name is None else self.subscribers_of(name, False)
        for subscriber in self._without_namespace:
            if intersects(subscriber.key, key):
                subscribers.append(subscriber)
        return subscribers

    def queryables_of(self, full_key: str, target: int, local: bool) -> list[LocalQueryable]:
        """The queryables that are asked about a whole key."""
        unwanted = REMOTE if local else SESSION_LOCAL
        name = self.inside(full_key)
        matching: list[LocalQueryable] = []
        for queryable in self.queryables.values():
            key = full_key if queryable.no_namespace else name
            if key is None or queryable.origin == unwanted:
                continue
            if target == 2 and not (queryable.complete and includes(queryable.key, key)):
                continue
            if intersects(queryable.key, key):
                matching.append(queryable)
        return matching
