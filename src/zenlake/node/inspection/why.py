"""What one node knows about the route of a sample: publishers, subscribers, policy.

`zenlake why` asks all nodes for this page and follows the route from one to the next.
"""

from __future__ import annotations

from zenlake.keys.matching import intersects
from zenlake.node.inspection.drops import rows_of, session_log
from zenlake.node.inspection.view import (
    ENTITIES,
    Entity,
    Plain,
    entities,
    sessions,
    traffic,
    whatami,
    zid_text,
)
from zenlake.node.node import Node
from zenlake.node.sessions.counts import counts_of
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.face import Face
from zenlake.routing.policy import KINDS
from zenlake.routing.policy.gate import PolicyGate
from zenlake.routing.pubsub import destinations
from zenlake.routing.regions import ROLE_NAMES, region_name

#: What is told of the gates: the kinds of messages that a sample needs.
EXPLAINED = ("put", "declare_subscriber")
#: How many rows of traffic are told.
ROWS = 100


def why(node: Node, key: str) -> Plain:
    """All that the node knows about samples on a key."""

    def met(other: str) -> bool:
        return intersects(other, key)

    heard = traffic(node, met, ROWS)
    return {
        "key": key,
        "zid": zid_text(node.zid),
        "whatami": whatami(node),
        "publishers": _holders(node, ENTITIES[1], key),
        "subscribers": _holders(node, ENTITIES[0], key),
        "heard": heard["keys"],
        "own_goes_to": _names(destinations(node.tables, node.borders, node.face, key, node.zid)),
        "neighbours": [_neighbour(node, neighbour, key) for neighbour in sessions(node)],
    }


def _holders(node: Node, kind: str, key: str) -> list[Plain]:
    holders: list[Plain] = []
    for entity in entities(node, kind, lambda other: intersects(other, key)):
        for role, zids in _by_kind(entity):
            holders.extend({"zid": zid, "whatami": role, "key": entity.key} for zid in zids)
    return holders


def _by_kind(entity: Entity) -> tuple[tuple[str, list[str]], ...]:
    return ("router", entity.routers), ("peer", entity.peers), ("client", entity.clients)


def _neighbour(node: Node, neighbour: Neighbour, key: str) -> Plain:
    face = neighbour.face
    assert face is not None
    log = session_log(neighbour)
    neighbour_page: Plain = {
        "zid": zid_text(face.zid),
        "whatami": ROLE_NAMES[face.role],
        "region": region_name(face.region),
        "link": neighbour.dst,
        "carried": face.carried,
        # The nodes that it has sessions with, as far as it has announced them.
        "links": sorted(map(zid_text, node.topology.links_of(face))),
        # What comes from it: by itself, not from beyond it.
        "goes_to": _names(
            destinations(node.tables, node.borders, face, key, node.borders.root_of(face, 0))
        ),
        "dropped": counts_of(neighbour).dropped(),
        # Of what it could not be sent: what was on this key.
        "dropped_here": [] if log is None else rows_of(log, lambda other: intersects(other, key)),
    }
    for flow, gate in (("ingress", neighbour.ingress), ("egress", face.egress)):
        neighbour_page[flow] = (
            {} if gate is None else {kind: _account(gate, kind, key) for kind in EXPLAINED}
        )
    return neighbour_page


def _account(gate: PolicyGate, kind: str, key: str) -> Plain:
    """What a gate does with messages of a kind on a key, and by which rule."""
    account = gate.explain(KINDS.index(kind), key)
    access = account.access
    limit = account.limit
    return {
        "allowed": access is None or access.allowed,
        "access": None if access is None else access.sentence(),
        "limit": None if limit is None else limit.sentence(),
        "downsampling": [timer.sentence() for timer in account.timers],
    }


def _names(faces: list[Face]) -> list[str]:
    return [zid_text(face.zid) for face in faces]
