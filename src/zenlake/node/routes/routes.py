"""Where samples go: found once for each key, and anew when the tables have changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.core import Core
from zenlake.node.entities import Publication, PublicationRoutes, Remote
from zenlake.node.programs.declared import ProgramEntities
from zenlake.node.routes.forward import FrameSink, Inbound, Relay
from zenlake.routing.face import Face
from zenlake.routing.filters import fields_of
from zenlake.routing.policy.gate import PolicyGate
from zenlake.routing.policy.messages import PUT
from zenlake.routing.pubsub import destinations, filters_of
from zenlake.routing.regions import CLIENT
from zenlake.values.encoding import Encoding
from zenlake.values.qos import QOS_PRIORITY
from zenlake.wire.codec_network import Push, push_head
from zenlake.wire.codec_zenoh import Put, put_head
from zenlake.wire.cursor import Writer

if TYPE_CHECKING:
    from zenlake.expr.closure import SampleFields


class Routes(PublicationRoutes):
    """The routes of a node: of what its programs publish, and of what its neighbours send."""

    def __init__(self, node: Core, declared: ProgramEntities) -> None:
        """`declared`: what the programs of the node subscribe to."""
        self.node: Core = node
        self.declared: ProgramEntities = declared
        #: Calls `find_publication` under the lock of an edge that has threads; None: no threads.
        self.guard: Callable[[Publication], None] | None = None

    def renew(self, publication: Publication) -> None:
        """Find out anew where a publication goes; the edge sees that nobody else is in the tables.

        Publications come here from any thread, when the tables have changed.
        """
        guard = self.guard
        if guard is None:
            self.find_publication(publication)
        else:
            guard(publication)

    def find_publication(self, publication: Publication) -> None:
        """Find out where a publication goes, alone with the tables."""
        node = self.node
        tables = node.tables
        version = tables.version
        key = self.declared.outside(publication.key)
        remotes: list[Remote] = []
        if publication.destination != 0:
            for face in destinations(tables, node.borders, node.face, key, node.zid):
                outbox = face.outbox_for(publication.priority, publication.reliable)
                if outbox is not None:
                    remote = Remote(face, outbox, key)
                    remote.put_head = publication_head(publication, remote)
                    remotes.append(remote)
            for group in node.group_faces:
                if group.outbox is not None:
                    remote = Remote(group, group.outbox, key)
                    remote.put_head = publication_head(publication, remote)
                    remotes.append(remote)
        publication.remotes = remotes
        publication.guarded = any(
            remote.face.egress is not None and not remote.face.egress.is_free(PUT, key)
            for remote in remotes
        )
        publication.locals = (
            self.declared.subscribers_of(publication.key, True)
            if publication.destination != 1
            else []
        )
        publication.tally = node.traffic.tally(key)
        if node.traffic.folded:
            node.traffic.folded = False
            tables.version += 1  # all publications find their route, and their tally, anew
        publication.version = version

    def find(self, face: Face | None, ingress: PolicyGate | None, inbound: Inbound) -> None:
        """Find out anew where the samples go that a neighbour sends under a key.

        `ingress`: what the policy says about what comes from it.
        """
        node = self.node
        inbound.free = ingress is None or ingress.is_free(PUT, inbound.key)
        inbound.version = node.tables.version
        inbound.subscribers = []
        inbound.frames = []
        inbound.filters = {}
        name = self.declared.inside(inbound.key)
        if name is not None and name != inbound.name:
            inbound.name = name
            inbound.key_expr = KeyExpr.trusted(name)
        for subscriber in self.declared.heard_by(inbound.key):
            sink = subscriber.sink
            if isinstance(sink, FrameSink):
                inbound.frames.append(sink)
            elif face is None or sink.hears(face.zid):
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
        inbound.faces = []
        if face is not None:
            inbound.faces = destinations(node.tables, node.borders, face, inbound.key, root)
            inbound.filters = filters_of(node.tables, inbound.key, inbound.faces)
        if face is not None and face.role == CLIENT:
            # What clients say reaches a group through us.
            inbound.faces += node.group_faces
        inbound.guarded = any(
            face.egress is not None and not face.egress.is_free(PUT, inbound.key)
            for face in inbound.faces
        )

    def forward(self, push: Push, inbound: Inbound, reliable: bool, relay: Relay) -> None:
        """Pass a sample on to other neighbours, written anew for each."""
        unwanted = self._unwanted(push, inbound) if inbound.filters else None
        for face in inbound.faces:
            outbox = face.outbox_for(push.qos & QOS_PRIORITY, reliable)
            if outbox is None or face.closed or (unwanted is not None and face.id in unwanted):
                continue
            scope, mine, suffix = face.wire_key(inbound.key, False)
            copy = Push(
                scope=scope,
                suffix=suffix,
                sender_mapping=mine,
                qos=push.qos,
                node_id=inbound.number if face.region == inbound.region else 0,
                timestamp_stack=push.timestamp_stack,
                body=push.body,
            )
            if face.may_have(copy, inbound.key, reliable, self.node.now):
                w = Writer()
                copy.write(w)
                relay.one(outbox, b"".join(w.parts), copy.qos, reliable)

    def _unwanted(self, push: Push, inbound: Inbound) -> list[int] | None:
        """The faces none of whose subscribers wants a sample, by their filters; None: no face."""
        node = self.node
        body = push.body
        unwanted: list[int] | None = None
        fields: SampleFields | None = None
        payload = b""
        encoding = Encoding.ZENOH_BYTES
        name = ""
        if isinstance(body, Put):
            if body.slices:
                return None  # it lies in shared memory
            payload = body.payload
            if body.encoding or body.schema:
                encoding = Encoding.from_wire(body.encoding, body.schema or None)
        for id, filters in inbound.filters.items():
            if not name:
                name = str(encoding)
            if not node.filters.affords(filters, len(payload), node.now, name):
                continue
            if fields is None:
                fields = fields_of(inbound.key, isinstance(body, Put), payload, name)
            if not node.filters.lets(filters, fields):
                if unwanted is None:
                    unwanted = []
                unwanted.append(id)
        return unwanted


def publication_head(publication: Publication, remote: Remote) -> bytes:
    """All of a put up to the length of its payload: it is the same for every sample."""
    head = push_head(
        scope=remote.scope,
        suffix=remote.suffix,
        sender_mapping=remote.mine,
        qos=publication.qos,
    )
    return head + put_head(encoding=publication.encoding, schema=publication.schema)
