"""Where a sample goes: the faces that need to hear it, each once, never the one that said it."""

from __future__ import annotations

from zenlake.routing.face import Face
from zenlake.routing.regions import LOCAL, PEER
from zenlake.routing.resources import SUBSCRIBER
from zenlake.routing.tables import Tables


def destinations(tables: Tables, source: Face, key: str) -> list[Face]:
    """The neighbours to send a sample to; `source` is who it came from.

    A neighbour that tells us things only when asked is sent everything until it has answered an
    interest of ours that covers the key; a peer until it has told all that it had at the start.
    """
    matching: dict[Face, bool] = {}
    for entry in tables.tree.intersecting(key):
        for face in entry.value.holders[SUBSCRIBER]:
            matching[face] = True
    found: list[Face] = []
    for face in tables.faces.values():
        if face.role == LOCAL or face.outbox is None or not tables.flows(source, face):
            continue
        if face in matching:
            found.append(face)
        elif tables.asks(face):
            if not face.knows_all(SUBSCRIBER, key):
                found.append(face)
        elif face.role == PEER and not face.settled:
            found.append(face)
    return found
