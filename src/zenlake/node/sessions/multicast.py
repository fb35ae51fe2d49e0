"""A node in a multicast group: what it publishes goes to all members at once.

Only publications cross a group. Its members are heard, each through a face of its own that stands
in no table; what is told to them is told to the group, through one face for all.
"""

from __future__ import annotations

from zenlake.clock import ZenohId
from zenlake.node.core import Core
from zenlake.node.routes.routes import Routes
from zenlake.node.sessions.neighbour import Neighbour, SessionOwner, drop_log
from zenlake.routing.face import Face
from zenlake.routing.policy.subject import Subject
from zenlake.routing.regions import CLIENT, PEER
from zenlake.transport.handshake import Terms
from zenlake.transport.listener import Listener
from zenlake.transport.multicast import MulticastTransport
from zenlake.transport.multicast_terms import MulticastTerms
from zenlake.transport.outbox import Outbox
from zenlake.values.whatami import WhatAmI
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Put
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message


class GroupMember(Neighbour):
    """A node in a group: only its publications mean anything."""

    def __init__(self, multicast: MulticastSession, zid: bytes, whatami: int, source: str) -> None:
        """`source`: where its datagrams come from."""
        super().__init__(
            multicast.node,
            multicast.routes,
            multicast.owner,
            multicast.place,
            f"udp/{source}",
            False,
            0,
            0,
            patient=False,  # a group cannot be asked to wait
        )
        self.multicast: MulticastSession = multicast
        self.zid: ZenohId = ZenohId(zid)
        self.whatami: WhatAmI = WhatAmI(1 << whatami)
        self.terms: Terms | None = None
        # Routers tell each other everything by sessions: in a group one is a peer like others.
        face = Face(multicast.node.fresh_face(), zid, CLIENT if whatami == CLIENT else PEER, None)
        self.enter(face)
        multicast.node.tables.situate(face)

    def opened(self, terms: Terms, now: float) -> None:
        """It joined."""
        self.terms = terms
        self.obey(terms)
        self.multicast.members.append(self)
        self.owner.member_changed(self, True)

    def closed(self, error: Exception | None, now: float) -> None:
        """It left."""
        self.error = error
        face = self.face
        if face is not None:
            face.closed = True
        self.pushes.clear()
        self.multicast.members.remove(self)
        self.owner.member_changed(self, False)

    @property
    def qos(self) -> bool:
        """Whether it keeps priorities apart."""
        return self.terms is not None and self.terms.qos

    def is_open(self) -> bool:
        """It is, as long as it is heard of."""
        return self.face is not None and not self.face.closed

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        """Take a publication, unless a session with its sender has brought it already."""
        face = self.face
        if not isinstance(message, Push) or face is None or face.zid in self.owner.by_zid:
            return
        body = message.body
        if isinstance(body, Put) and body.shm:
            # Members with shared memory use it towards all members: there is no value in this.
            self.multicast.unreadable += 1
            return
        super().heard(message, priority, reliable)

    def heard_push(self, r: Reader, reliable: bool) -> int:
        """The fast lane, under the same condition."""
        face = self.face
        if face is None or face.zid in self.owner.by_zid:
            return 0
        return super().heard_push(r, reliable)


class MulticastSession:
    """A group that the node is in."""

    def __init__(
        self,
        node: Core,
        routes: Routes,
        owner: SessionOwner,
        place: str,
        terms: MulticastTerms,
        outbox: Outbox,
    ) -> None:
        """`place`: the endpoint of the group; `owner`: told of members that come and go."""
        self.node: Core = node
        self.routes: Routes = routes
        self.owner: SessionOwner = owner
        self.place: str = place
        self.members: list[GroupMember] = []
        #: Samples whose value lies in memory that is not shared with us.
        self.unreadable: int = 0
        self.group: MulticastTransport = MulticastTransport(terms, outbox, self._meet)
        #: Through which the whole group is told.
        self.face: Face = Face(node.fresh_face(), node.zid, PEER, outbox)
        outbox.lost = drop_log(node, self.face)
        self.obey()

    def obey(self) -> None:
        """Do as the node's policy says, towards each member and towards all of them."""
        policy = self.node.policy
        self.face.egress = None
        if not policy.is_idle():
            interceptors = policy.for_neighbour(Subject(link_protocol="udp", multicast=True))
            self.face.egress = None if interceptors is None else interceptors.egress
        for member in self.members:
            if member.terms is not None:
                member.obey(member.terms)

    def _meet(self, zid: bytes, whatami: int, source: str) -> Listener | None:
        return GroupMember(self, zid, whatami, source)

    def receive(self, data: bytes, source: str, now: float) -> None:
        """A datagram came."""
        self.node.now = now
        self.group.receive(data, source, now)
        for member in self.members:
            member.settle()
        self.node.wake_by(self.group.deadline)
