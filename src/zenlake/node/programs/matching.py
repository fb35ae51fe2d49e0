"""Matching status: whether a publisher has subscribers, a querier has queryables."""

from __future__ import annotations

from zenlake.keys.matching import includes, intersects
from zenlake.node.core import Core
from zenlake.node.entities import REMOTE, SESSION_LOCAL, LocalQuerier, Publication, StatusSink
from zenlake.node.programs.declared import ProgramEntities
from zenlake.routing.resources import QUERYABLE


class Matching:
    """Holds the publishers and queriers of our programs against all that is declared."""

    def __init__(self, node: Core, declared: ProgramEntities) -> None:
        """Theirs are `declared.publications` and `declared.queriers`."""
        self.node: Core = node
        self.declared: ProgramEntities = declared

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
        """Subscribers to a key came or went: tell the publishers who want to know."""
        for publication in list(self.declared.publications.values()):
            if intersects(publication.key, key):
                _tell(publication, self.of_publisher(publication))

    def queryables_changed(self, key: str) -> None:
        """Queryables for a key came or went: tell the queriers who want to know."""
        for querier in list(self.declared.queriers.values()):
            if intersects(querier.key, key):
                _tell(querier, self.of_querier(querier))

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


def _tell(entity: Publication | LocalQuerier, matching: bool) -> None:
    if matching != entity.matching:
        entity.matching = matching
        for sink in list(entity.status_sinks):
            sink.push(matching)
