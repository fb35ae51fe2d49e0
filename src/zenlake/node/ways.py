"""Where samples go: found once for each key, and anew when the tables have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.entities import Publication, Remote
from zenlake.node.forward import Inbound
from zenlake.node.sink import FrameSink
from zenlake.routing.policy.messages import PUT
from zenlake.routing.pubsub import destinations
from zenlake.routing.regions import CLIENT
from zenlake.wire.codec_network import push_head
from zenlake.wire.codec_zenoh import put_head

if TYPE_CHECKING:
    from zenlake.node.neighbour import Neighbour
    from zenlake.node.node import Node


def find_publication_way(node: Node, publication: Publication) -> None:
    """Find out where a publication goes, alone with the tables."""
    tables = node.tables
    version = tables.version
    key = node.local.outside(publication.key)
    remotes: list[Remote] = []
    if publication.destination != 0:
        for face in destinations(tables, node.borders, node.face, key, node.zid):
            outbox = face.way(publication.priority, publication.reliable)
            if outbox is not None:
                remote = Remote(face, outbox, key)
                remote.put_head = publication_head(publication, remote)
                remotes.append(remote)
        for crowd in node.crowds:
            remote = Remote(crowd.face, crowd.group.outbox, key)
            remote.put_head = publication_head(publication, remote)
            remotes.append(remote)
    publication.remotes = remotes
    publication.guarded = any(
        remote.face.egress is not None and not remote.face.egress.is_free(PUT, key)
        for remote in remotes
    )
    publication.locals = (
        node.local.subscribers_of(publication.key, True) if publication.destination != 1 else []
    )
    publication.tally = node.traffic.tally(key)
    if node.traffic.folded:
        node.traffic.folded = False
        tables.version += 1  # all who publish find their way, and their tally, anew
    publication.version = version


def find_way(node: Node, neighbour: Neighbour, inbound: Inbound) -> None:
    """Find out anew who hears what a neighbour says under a key."""
    face = neighbour.face
    ingress = neighbour.ingress
    inbound.free = ingress is None or ingress.is_free(PUT, inbound.key)
    inbound.version = node.tables.version
    inbound.subscribers = []
    inbound.frames = []
    name = node.local.inside(inbound.key)
    if name is not None and name != inbound.name:
        inbound.name = name
        inbound.key_expr = KeyExpr.trusted(name)
    for subscriber in node.local.heard_by(inbound.key):
        sink = subscriber.sink
        if isinstance(sink, FrameSink):
            inbound.frames.append(sink)
        else:
            inbound.subscribers.append(subscriber)
    root = b""
    if face is not None:
        root = node.borders.root_of(face, inbound.node_id)
        inbound.region = face.region
        inbound.number = node.borders.number_of(face, root)
        if not face.carried or (face.meshed and root == node.zid):
            # Another gateway carries it, or it is our own that came back.
            inbound.subscribers = []
            inbound.frames = []
            inbound.faces = []
            return
        if face.meshed and not node.borders.crosses(face, root, node.face):
            # It goes on within its region; we hear it from the gateway that carries it.
            inbound.subscribers = []
            inbound.frames = []
    inbound.faces = (
        [] if face is None else destinations(node.tables, node.borders, face, inbound.key, root)
    )
    if face is not None and face.role == CLIENT:
        # What clients say reaches a group through us.
        inbound.faces += [crowd.face for crowd in node.crowds]
    inbound.guarded = any(
        face.egress is not None and not face.egress.is_free(PUT, inbound.key)
        for face in inbound.faces
    )


def publication_head(publication: Publication, remote: Remote) -> bytes:
    """All of a put up to the length of its payload: it is the same for every sample."""
    head = push_head(
        scope=remote.scope,
        suffix=remote.suffix,
        sender_mapping=remote.mine,
        qos=publication.qos,
    )
    return head + put_head(encoding=publication.encoding, schema=publication.schema)
