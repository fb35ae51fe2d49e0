"""Where a sample goes: the faces that need to hear it, each once, never the one that said it."""

from __future__ import annotations

from zenlake.routing.borders import Borders
from zenlake.routing.face import Face
from zenlake.routing.filters import SubscriberFilter
from zenlake.routing.regions import LOCAL, PEER
from zenlake.routing.resources import SUBSCRIBER
from zenlake.routing.tables import Tables


def destinations(
    tables: Tables, borders: Borders, source: Face, key: str, root: bytes = b""
) -> list[Face]:
    """The neighbours to send a sample to; `source` is who it came from.

    Among routers it goes down the tree of `root`, the router where it came from.

    A neighbour that tells us things only when asked is sent everything until it has answered an
    interest of ours that covers the key; a peer until it has told all that it had at the start.
    """
    matching: dict[Face, bool] = {}
    routers: list[Face] = []
    for entry in tables.tree.intersecting(key):
        for face in entry.value.holders[SUBSCRIBER]:
            if face.meshed:
                routers.append(face)
            else:
                matching[face] = True
    faces: list[Face] = borders.hops(source, root, routers) if routers else []
    for face in tables.faces.values():
        if face.role == LOCAL or face.outbox is None or not tables.flows(source, face):
            continue
        if face in matching:
            if borders.crosses(source, root, face):
                faces.append(face)
        elif tables.needs_interest(face):
            if not face.knows_all(SUBSCRIBER, key):
                faces.append(face)
        elif face.role == PEER and not face.settled:
            faces.append(face)
    return faces


def filters_of(tables: Tables, key: str, faces: list[Face]) -> dict[int, list[SubscriberFilter]]:
    """What is asked of samples of a key before they are sent to some of these, by face.

    Only of those all of whose subscribers to the key have a filter; they hear what one is true of.
    """
    filters: dict[int, list[SubscriberFilter]] = {}
    if not tables.filters:
        return filters
    asking = [face for face in faces if face.filters and face.role != LOCAL]
    if not asking:
        return filters
    unfiltered: set[int] = set()
    for entry in tables.tree.intersecting(key):
        holders = entry.value.holders[SUBSCRIBER]
        for face in asking:
            for id in holders.get(face, {}):
                filter = face.filters.get(id)
                if filter is None:
                    unfiltered.add(face.id)
                else:
                    filters.setdefault(face.id, []).append(filter)
    for id in unfiltered:
        filters.pop(id, None)
    return filters
