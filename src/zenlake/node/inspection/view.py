"""What a node knows, as an operator may see it: the contents of its admin space.

Only reads; the caller holds the node's lock. Everything is plain
(`dict`, `list`, `str`), with the names and in the order that Eclipse's nodes use, so that their
tools read it. `zenlake.admin` gives it keys and writes it as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from zenlake.clock import ZenohId
from zenlake.keys.matching import intersects
from zenlake.node.node import Node
from zenlake.node.sessions.counts import SessionCounts, counts_of
from zenlake.node.sessions.multicast import GroupMember
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.face import Face
from zenlake.routing.mesh import Mesh
from zenlake.routing.regions import (
    CLIENT,
    LOCAL,
    NORTH,
    PEER,
    ROLE_NAMES,
    ROUTER,
    region_name,
    south,
)
from zenlake.routing.resources import QUERYABLE, SUBSCRIBER, TOKEN
from zenlake.routing.trees import DEFAULT_WEIGHT, effective_weight
from zenlake.values.loopback import stays_within

#: What is declared, by the word for it; and what is shown to exist by interests.
DECLARED = {"subscriber": SUBSCRIBER, "queryable": QUERYABLE, "token": TOKEN}
INTERESTED = {"publisher": 1, "querier": 2}
ENTITIES = ("subscriber", "publisher", "queryable", "querier", "token")

Plain = dict[str, object]


def zid_text(zid: bytes) -> str:
    """A node's id as it is written."""
    return str(ZenohId(zid))


def whatami(node: Node) -> str:
    """What kind of node it is."""
    return ROLE_NAMES[node.mode]


def root(node: Node) -> str:
    """The key above all that a node shows of itself."""
    return f"@/{zid_text(node.zid)}/{whatami(node)}"


# ------------------------------------------------------------------------------- the node itself


def summary(
    node: Node,
    version: str,
    metadata: object,
    stats: bool = False,
    plugins: dict[str, object] | None = None,
) -> Plain:
    """The node, where it listens, and its sessions.

    Args:
        node: nothing changes it meanwhile.
        version: of the program.
        metadata: what the configuration says of the node.
        stats: with what was counted.
        plugins: what runs beside it, by id.
    """
    page: Plain = {
        "locators": list(node.settings.locators),
        "metadata": metadata,
        "plugins": plugins,
        "sessions": [
            *(session(node, neighbour, stats) for neighbour in sessions(node)),
            *(
                member_of(member)
                for multicast in node.sessions.multicasts
                for member in multicast.members
            ),
        ],
        "version": version,
        "zid": zid_text(node.zid),
    }
    if stats:
        page["stats"] = counted(totals(node))
    return dict(sorted(page.items()))


def sessions(node: Node) -> list[Neighbour]:
    """The neighbours with an open session: of several links of one, the first."""
    return [
        neighbour
        for neighbour in node.neighbours
        if neighbour.face is not None and (not neighbour.links or neighbour.links[0] is neighbour)
    ]


def links(neighbour: Neighbour) -> list[Neighbour]:
    """All links of a session, each a neighbour by itself."""
    return neighbour.links or [neighbour]


def is_within(node: Node, zid: bytes) -> bool:
    """Whether a neighbour is connected over links within this machine alone."""
    neighbour = node.by_zid.get(zid)
    # Of a session with several links it is not known which one a question took.
    return neighbour is not None and all(
        stays_within(link.src, link.dst) for link in links(neighbour)
    )


def session(node: Node, neighbour: Neighbour, stats: bool = False) -> Plain:
    """One session."""
    face = neighbour.face
    assert face is not None
    page: Plain = {
        "links": [{"dst": link.dst, "src": link.src} for link in links(neighbour)],
        "peer": zid_text(face.zid),
        "region": region_name(face.region),
        "shm": False,
        "weight": _weight(node, face),
        "whatami": ROLE_NAMES[face.role],
    }
    if stats:
        total = SessionCounts()
        for link in links(neighbour):
            total.add(counts_of(link))
        page["stats"] = counted(total)
    return dict(sorted(page.items()))


def member_of(member: GroupMember) -> Plain:
    """A node in the same multicast group."""
    return {
        "group": member.multicast.place,
        "links": [{"dst": member.dst, "src": member.src}],
        "peer": str(member.zid),
        "whatami": str(member.whatami),
    }


def _weight(node: Node, face: Face) -> Plain | None:
    """What the link to another router weighs: what this end says, the other, and both together."""
    mesh = node.borders.meshes.get(face.region)
    if mesh is None:
        return None
    mine = mesh.state.weights.get(face.zid, 0)
    other = mesh.state.nodes.get(face.zid)
    theirs = 0 if other is None else other.links.get(mesh.me, 0)
    return {
        "actual_weight": max(mine, theirs) or DEFAULT_WEIGHT,
        "dst_weight": theirs or None,
        "src_weight": mine or None,
    }


def totals(node: Node) -> SessionCounts:
    """All sessions together, those that are over too."""
    total = SessionCounts()
    total.add(node.sessions.past.total)
    for neighbour in node.neighbours:
        total.add(counts_of(neighbour))
    return total


def counted(counts: SessionCounts) -> Plain:
    """What was counted, in a few numbers."""
    return {
        "rx_bytes": counts.rx_bytes,
        "rx_batches": counts.rx_batches,
        "rx_messages": sum(counts.rx_messages),
        "tx_bytes": counts.tx_bytes,
        "tx_batches": counts.tx_batches,
        "tx_messages": sum(counts.tx_messages),
        "dropped": counts.dropped(),
    }


# --------------------------------------------------------------------------- what was declared


class Entity(NamedTuple):
    """A key, and the kinds of nodes that declared something there."""

    key: str
    routers: list[str]
    peers: list[str]
    clients: list[str]

    def sources(self) -> Plain:
        """Who declared it."""
        return {"routers": self.routers, "peers": self.peers, "clients": self.clients}


def entities(node: Node, kind: str, wanted: Callable[[str], bool]) -> Iterator[Entity]:
    """The keys with entities of a kind (one of `ENTITIES`) that are `wanted`."""
    if kind in DECLARED:
        yield from _declared(node, DECLARED[kind], wanted)
    else:
        yield from _interested(node, INTERESTED[kind], wanted)


def _declared(node: Node, kind: int, wanted: Callable[[str], bool]) -> Iterator[Entity]:
    own = zid_text(node.zid)
    for entry in node.tables.tree.entries():
        resource = entry.value
        holders = resource.holders[kind]
        if not holders or not wanted(resource.key):
            continue
        entity = Entity(resource.key, [], [], [])
        below = any(face.south and face.carried for face in holders)
        # A router or peer declares to its own kind what lies south of it.
        if below and node.mode == ROUTER:
            entity.routers.append(own)
        elif below and node.mode == PEER:
            entity.peers.append(own)
        for face in holders:
            _place(entity, face)
        yield entity


def _interested(node: Node, flag: int, wanted: Callable[[str], bool]) -> Iterator[Entity]:
    entities: dict[str, Entity] = {}
    for face in node.tables.faces.values():
        for interest in face.interests_in.values():
            if interest.kinds & flag and interest.key and wanted(interest.key):
                entity = entities.setdefault(interest.key, Entity(interest.key, [], [], []))
                _place(entity, face)
    for key in _own_interests(node, flag):
        if wanted(key):
            _place(entities.setdefault(key, Entity(key, [], [], [])), node.face)
    yield from entities.values()


def _own_interests(node: Node, flag: int) -> list[str]:
    if flag == INTERESTED["publisher"]:
        return [publication.key for publication in node.local.publications.values()]
    return [querier.key for querier in node.local.queriers.values()]


def _place(entity: Entity, face: Face) -> None:
    """Note who declared it: by its kind, but to a peer all in the north are peers."""
    zid = zid_text(face.zid)
    kind = face.role if face.kind == CLIENT else face.kind
    if kind in (LOCAL, CLIENT):
        among = entity.clients
    elif kind == PEER:
        among = entity.peers
    else:
        among = entity.routers
    if zid not in among:
        among.append(zid)


# ------------------------------------------------------------------------------- the network


def graphs(node: Node) -> dict[str, str]:
    """The networks that it is part of, by region, as Graphviz draws them."""
    topology = node.topology
    pages: dict[str, str] = {}
    if node.mode == PEER:
        pages[region_name(NORTH)] = dot([(0, node.zid), *topology.gossip.known()], [])
    for region, mesh in topology.meshes.items():
        pages[region_name(region)] = _map(mesh)
    for index in range(len(node.settings.south or ()) if node.mode == ROUTER else 0):
        pages.setdefault(region_name(south(index, ROUTER)), dot([(0, node.zid)], []))
    for region, introductions in topology.introductions.items():
        pages[region_name(region)] = dot([(0, node.zid), *introductions.known()], [])
    return pages


def _map(mesh: Mesh) -> str:
    """All routers of a region, and the links between them."""
    state = mesh.state
    numbered = {zid: router.psid for zid, router in state.nodes.items()}
    links = state.graph()
    edges = [
        (numbered[one], numbered[other], effective_weight(one, other, weight, links[other][one]))
        for one, listed in links.items()
        for other, weight in listed.items()
        if one in links.get(other, ()) and numbered[one] > numbered[other]
    ]
    return dot([(psid, zid) for zid, psid in numbered.items()], edges)


def dot(nodes: list[tuple[int, bytes]], edges: list[tuple[int, int, float]]) -> str:
    """A graph in the language of Graphviz."""
    lines = [f'    {number} [ label = "{zid_text(zid)}" ]' for number, zid in sorted(nodes)]
    lines += [
        f'    {one} -- {other} [ label = "{repr(weight).removesuffix(".0")}" ]'
        for one, other, weight in sorted(edges)
    ]
    return "graph {\n" + "".join(f"{line}\n" for line in lines) + "}\n"


def successors(node: Node) -> Iterator[tuple[str, str, str]]:
    """For each router and each other: who is next from here, on the tree of the first."""
    for mesh in node.borders.meshes.values():
        for source in mesh.state.nodes:
            for destination in mesh.state.nodes:
                hop = _next(mesh, source, destination)
                if hop:
                    yield zid_text(source), zid_text(destination), hop


def successor(node: Node, source: bytes, destination: bytes) -> str:
    """The next hop to `destination`, on the tree of `source`; empty if there is none."""
    for mesh in node.borders.meshes.values():
        hop = _next(mesh, source, destination)
        if hop:
            return hop
    return ""


def _next(mesh: Mesh, source: bytes, destination: bytes) -> str:
    if destination == mesh.me or source not in mesh.state.nodes:
        return ""
    hop = mesh.trees.direction(source, destination)
    return zid_text(hop) if hop else ""


# ----------------------------------------------------------------------------------- traffic


def traffic(node: Node, wanted: Callable[[str], bool], limit: int) -> Plain:
    """What passed on each key, the most first; `limit` bounds the rows."""
    rows: list[tuple[int, str, str, str, int]] = []
    speakers = [neighbour for neighbour in node.neighbours if neighbour.face is not None]
    for multicast in node.sessions.multicasts:
        speakers.extend(multicast.members)
    for neighbour in speakers:
        face = neighbour.face
        assert face is not None
        for inbound in neighbour.pushes.inbounds.all():
            if inbound.samples and wanted(inbound.key):
                zid = zid_text(face.zid)
                rows.append(
                    (inbound.samples, inbound.key, zid, ROLE_NAMES[face.role], inbound.size)
                )
    own = zid_text(node.zid)
    for key, tally in node.traffic.own.items():
        if tally.samples and wanted(key):
            rows.append((tally.samples, key, own, "local", tally.size))
    rows.sort(key=lambda row: (-row[0], row[1], row[2]))
    return {
        "zid": own,
        "whatami": whatami(node),
        "now": node.now,
        "keys": [
            {"key": key, "from": zid, "whatami": kind, "samples": samples, "bytes": size}
            for samples, key, zid, kind, size in rows[:limit]
        ],
        "left_out": max(0, len(rows) - limit),
    }


def meets(selector: str, above: str) -> Callable[[str], bool]:
    """Whether the key of something, put below `above`, is among what was asked for."""
    return lambda key: intersects(selector, f"{above}/{key}")
