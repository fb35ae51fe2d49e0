"""Matching status: whether a publisher has subscribers, a querier has queryables."""

from __future__ import annotations

from zenlake.keys.matching import includes, intersects
from zenlake.node.core import Core
from zenlake.node.entities import REMOTE, SESSION_LOCAL, LocalQuerier, Publication, StatusSink
from zenlake.node.events import NodeEvent
from zenlake.node.programs.declared import ProgramEntities
from zenlake.routing.resources import QUERYABLE


class MatchingChanged(NodeEvent):
    """The matching status of a publisher or querier has changed."""

    def __init__(self, entity: Publication | LocalQuerier, matching: bool) -> None:
        """`matching`: whether it has a matching subscriber or queryable now."""
        self.entity: Publication | LocalQuerier = entity
        self.matching: bool = matching

    def deliver(self) -> None:
        """Give the status to the listeners of the entity."""
        for sink in list(self.entity.status_sinks):
            sink.push(self.matching)

    def __repr__(self) -> str:
        """What happened, and to which key expression."""
        return f"MatchingChanged({self.entity.key!r}, {self.matching})"


class Matching:
    """Holds the publishers and queriers of our programs against all that is declared."""

    def __init__(self, node: Core, declared: ProgramEntities) -> None:
        """Theirs are `declared.publications` and `declared.queriers`."""
        self.node: Core = node
        self.declared: ProgramEntities = declared

    def of(self, entity: Publication | LocalQuerier) -> bool:
        """Return True if a publisher has a subscriber, or a querier a queryable."""
        if isinstance(entity, Publication):
            return self.of_publisher(entity)
        return self.of_querier(entity)

    def of_publisher(self, publication: Publication) -> bool:
        """Whether it has a subscriber."""
        key = publication.key
        destination = publication.destination
        if destination != SESSION_LOCAL and self.node.matches(self.declared.outside(key)):
            return True
        if destination != REMOTE:
            return bool(self.declared.subscribers_of(key, True))
        return False

    def of_querier(self, querier: LocalQuerier) -> bool:
        """Whether a queryable would reply.

        A neighbour's queryable counts only if it covers the whole of what is asked.
        """
        tables = self.node.tables
        if querier.destination != SESSION_LOCAL:
            key = self.declared.outside(querier.key)
            for entry in tables.tree.intersecting(key):
                resource = entry.value
                if not includes(resource.key, key):
                    continue
                for face, infos in resource.holders[QUERYABLE].items():
                    if face is self.node.face:
                        continue
                    if querier.target != 2 or any(info & 1 for info in infos.values()):
                        return True
        if querier.destination != REMOTE:
            return bool(
                self.declared.queryables_of(
                    self.declared.outside(querier.key), querier.target, True
                )
            )
        return False

    def subscribers_changed(self, key: str) -> None:
        """Subscribers to a key came or went: find the status of its publishers anew."""
        for publication in list(self.declared.publications.values()):
            if intersects(publication.key, key):
                self._set(publication, self.of_publisher(publication))

    def queryables_changed(self, key: str) -> None:
        """Queryables for a key came or went: find the status of its queriers anew."""
        for querier in list(self.declared.queriers.values()):
            if intersects(querier.key, key):
                self._set(querier, self.of_querier(querier))

    def _set(self, entity: Publication | LocalQuerier, matching: bool) -> None:
        if matching != entity.matching:
            entity.matching = matching
            self.node.happened.add(MatchingChanged(entity, matching))

    def watch(self, entity: Publication | LocalQuerier, sink: StatusSink) -> None:
        """Be told when the matching status changes; told at once if it is true already."""
        entity.status_sinks.append(sink)
        if entity.matching:
            sink.push(True)

    def unwatch(self, entity: Publication | LocalQuerier, sink: StatusSink) -> None:
        """Be told no more."""
        if sink in entity.status_sinks:
            entity.status_sinks.remove(sink)
            sink.end()
