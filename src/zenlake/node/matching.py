"""Whether anybody hears a publisher or answers a querier, and who is told when that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.keys.matching import includes, intersects
from zenlake.node.entities import REMOTE, SESSION_LOCAL, LocalQuerier, Publication, StatusSink
from zenlake.routing.resources import QUERYABLE

if TYPE_CHECKING:
    from zenlake.node.local import Local
    from zenlake.node.node import Node


class Matching:
    """Holds the publishers and queriers of our programs against all that is declared."""

    def __init__(self, local: Local) -> None:
        """Theirs are `local.publications` and `local.queriers`."""
        self.local: Local = local
        self.node: Node = local.node

    def of_publisher(self, publication: Publication) -> bool:
        """Whether anybody would hear it."""
        key = publication.key
        destination = publication.destination
        if destination != SESSION_LOCAL and self.node.matches(self.local.outside(key)):
            return True
        if destination != REMOTE:
            return bool(self.local.subscribers_of(key, True))
        return False

    def of_querier(self, querier: LocalQuerier) -> bool:
        """Whether anybody would answer.

        A neighbour's queryable counts only if it covers the whole of what is asked.
        """
        tables = self.node.tables
        if querier.destination != SESSION_LOCAL:
            key = self.local.outside(querier.key)
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
            return bool(self.local.asked(self.local.outside(querier.key), querier.target, True))
        return False

    def subscribers_changed(self, key: str) -> None:
        """Subscribers to a key came or went: tell the publishers who want to know."""
        for publication in list(self.local.publications.values()):
            if intersects(publication.key, key):
                _tell(publication, self.of_publisher(publication))

    def queryables_changed(self, key: str) -> None:
        """Queryables for a key came or went: tell the queriers who want to know."""
        for querier in list(self.local.queriers.values()):
            if intersects(querier.key, key):
                _tell(querier, self.of_querier(querier))

    def watch(self, entity: Publication | LocalQuerier, sink: StatusSink) -> None:
        """Be told when the matching status changes; told at once if somebody matches already."""
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
