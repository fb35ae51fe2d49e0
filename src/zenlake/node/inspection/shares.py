"""How near each session is to its limits, and the node to its own: for operators.

Only reads; the caller holds the node's lock.
"""

from __future__ import annotations

from typing import NamedTuple

from zenlake.clock import ZenohId
from zenlake.node.inspection.view import links, sessions
from zenlake.node.node import Node
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.regions import ROLE_NAMES
from zenlake.transport.budget import MemoryPool


class Share(NamedTuple):
    """What is used of a limit, by the key of the configuration that sets it."""

    name: str
    used: int
    limit: int

    @property
    def part(self) -> float:
        """How near it is: 1 at the limit."""
        return self.used / self.limit if self.limit else 0.0

    def plain(self) -> dict[str, object]:
        """As JSON has it."""
        return {"used": self.used, "limit": self.limit, "part": round(self.part, 4)}


def shares_of(neighbour: Neighbour) -> list[Share]:
    """What a session has of each of its limits."""
    face = neighbour.face
    assert face is not None
    limits = face.limits
    times = face.times
    waiting = collecting = 0
    for link in links(neighbour):
        unicast = link.unicast
        if unicast is not None:
            waiting += unicast.outbox.held
            collecting = max(collecting, unicast.lanes.account.used)
    return [
        Share("declarations", face.entities, limits.declarations * times),
        Share("interests", len(face.interests_in), limits.interests * times),
        Share("memory", face.account.used, face.account.limit),
        Share("queries", len(face.asked), limits.queries * times),
        Share("questions", face.questions, limits.questions * times),
        Share("waiting", waiting, limits.waiting),
        Share("fragments", collecting, limits.fragments),
    ]


def node_shares(node: Node) -> list[Share]:
    """What all sessions have together."""

    def of(name: str, pool: MemoryPool) -> Share:
        return Share(name, pool.used, pool.limit)

    mapped = sum(
        len(router.links)
        for mesh in node.borders.meshes.values()
        for router in mesh.state.nodes.values()
    )
    return [
        Share("sessions", len(node.by_zid), node.settings.max_sessions),
        of("memory", node.memory),
        of("waiting", node.waiting),
        of("fragments", node.fragments),
        Share("links", mapped, node.settings.limits.links),
    ]


def shares(node: Node) -> dict[str, object]:
    """All sessions, the one that is nearest to a limit first; and the node."""
    rows: list[tuple[float, dict[str, object]]] = []
    for neighbour in sessions(node):
        face = neighbour.face
        assert face is not None
        all_of_it = shares_of(neighbour)
        nearest = max(all_of_it, key=lambda share: share.part)
        rows.append(
            (
                nearest.part,
                {
                    "peer": str(ZenohId(face.zid)),
                    "whatami": ROLE_NAMES[face.role],
                    "address": neighbour.dst,
                    "nearest": {"limit": nearest.name, "part": round(nearest.part, 4)},
                    "limits": {share.name: share.plain() for share in all_of_it},
                },
            )
        )
    rows.sort(key=lambda row: -row[0])
    return {
        "node": {share.name: share.plain() for share in node_shares(node)},
        "sessions": [row for _, row in rows],
    }
