"""The transport of a multicast group: every member sends to all others, without an opening.

Each member sends JOIN at once and then periodically, with the sequence numbers that its next frames
will have. A member that receives it can follow from there; frames of a member whose JOIN was not
received are passed over. All must use the same resolution and batch size, since nothing is
negotiated.

    group = MulticastTransport(terms, outbox, new_member)
    group.start(now)
    group.receive(datagram, source, now)
    group.outbox.take()                  each batch is one datagram to the group
    group.deadline, group.tick(now)
    group.close(now)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.errors import DecodeError, RemoteError
from zenlake.transport.handshake import GENERIC, Offer, Terms
from zenlake.transport.listener import Listener
from zenlake.transport.multicast_terms import MulticastTerms
from zenlake.transport.outbox import Outbox
from zenlake.transport.sequence import mask_of
from zenlake.transport.unicast import CLOSED, Unicast
from zenlake.wire.codec_transport import Close, Join, read_transport
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.numbers import ID, JOIN

VERSION: Final = 9
PATCH: Final = 1

#: The sequence numbers of the eight priorities: the reliable one, then the other.
LANES: Final = 16


NewMember = Callable[[bytes, int, str], Listener | None]
"""Is given the id, role and address of a new member: returns its listener, or None to ignore it."""


class MulticastTransport:
    """The sessions with all members of a group."""

    def __init__(self, terms: MulticastTerms, outbox: Outbox, new_member: NewMember) -> None:
        """`outbox`: takes what is sent to the group."""
        self.terms: MulticastTerms = terms
        self.outbox: Outbox = outbox
        self.new_member: NewMember = new_member
        self.mask: int = mask_of(terms.resolution)
        #: By the address that their datagrams come from.
        self.members: dict[str, Unicast] = {}
        self.deadline: float = float("inf")
        self.closed: bool = False
        #: Datagrams of nodes that have not joined, and JOINs that do not fit, by reason.
        self.strangers: int = 0
        self.refused: dict[str, int] = {}
        self._next_join: float = 0.0
        outbox.agree(terms.batch_size, self.mask, terms.initial_sn & self.mask, terms.qos)

    def start(self, now: float) -> None:
        """Send the first JOIN."""
        self._next_join = now
        self.tick(now)

    def tick(self, now: float) -> None:
        """Send JOIN when it is due; forget members that were silent for their lease."""
        if self.closed:
            return
        if now >= self._next_join:
            self._next_join = now + self.terms.join_interval
            self._send_join()
        deadline = self._next_join
        for source, member in list(self.members.items()):
            until = member.last_heard + member.lease
            if now >= until:
                self._part(source, RemoteError("nothing heard for its lease"), now)
            else:
                deadline = min(deadline, until)
        self.deadline = deadline

    def _send_join(self) -> None:
        terms = self.terms
        lanes: tuple[int, ...] | None = None
        reliable = best_effort = 0
        if terms.qos:
            numbers: list[int] = []
            for lane in self.outbox.lanes:
                numbers.append(lane.numbers[1])
                numbers.append(lane.numbers[0])
            lanes = tuple(numbers)
        else:
            best_effort, reliable = self.outbox.lanes[0].numbers
        w = Writer()
        Join(
            version=VERSION,
            whatami=terms.whatami,
            zid=terms.zid,
            resolution=terms.resolution,
            batch_size=terms.batch_size,
            lease=terms.lease,
            next_sn_reliable=reliable,
            next_sn_best_effort=best_effort,
            lane_sns=lanes,
            patch=PATCH,
        ).write(w)
        self.outbox.send_transport(w.getvalue())

    # ----------------------------------------------------------------------------- receiving

    def receive(self, data: bytes, source: str, now: float) -> None:
        """A datagram came from `source`; what is wrong with it costs that member alone."""
        if self.closed or not data:
            return
        try:
            if data[0] & ID == JOIN:
                r = Reader(data)
                message = read_transport(r)
                if isinstance(message, Join):
                    self._joined(message, source, now)
                data = data[r.pos :]
            member = self.members.get(source)
            if member is None:
                self.strangers += 1 if data else 0
            elif data:
                member.receive(data, now)
                if member.state == CLOSED:
                    self.members.pop(source, None)
        except RemoteError as error:
            self._part(source, error, now)

    def _joined(self, join: Join, source: str, now: float) -> None:
        if join.zid == self.terms.zid:
            return
        member = self.members.get(source)
        why = self._unfit(join)
        if member is not None:
            terms = member.terms
            changed = terms is None or (terms.zid, terms.qos) != (
                join.zid,
                join.lane_sns is not None,
            )
            if not why and not changed:
                member.last_heard = now
                return
            self._part(source, RemoteError(f"it joined anew: {why or 'as another'}"), now)
        if why:
            self.refused[why] = self.refused.get(why, 0) + 1
            return
        listener = self.new_member(join.zid, join.whatami, source)
        if listener is None:
            return
        terms = Terms(
            zid=join.zid,
            whatami=join.whatami,
            resolution=join.resolution,
            batch_size=join.batch_size,
            qos=join.lane_sns is not None,
            patch=min(PATCH, join.patch),
            mask=self.mask,
            tx_initial_sn=0,
            rx_lease=join.lease,
        )
        offer = Offer(zid=self.terms.zid, whatami=self.terms.whatami)
        # A member is not sent anything by itself: what is sent goes to the group.
        silent = Outbox(terms.batch_size, 0, self.mask, 0, False, 1)
        member = Unicast(offer, listener, False, silent, max_message=self.terms.max_message)
        self.members[source] = member
        member.follow(terms, self._next_of(join), now)
        self.deadline = min(self.deadline, now + join.lease / 1000.0)

    def _unfit(self, join: Join) -> str:
        """Why a JOIN cannot be followed; empty if it can."""
        terms = self.terms
        if join.version != VERSION:
            return "version"
        if join.resolution != terms.resolution:
            return "resolution"
        if join.batch_size != terms.batch_size:
            return "batch size"
        if join.lane_sns is not None and not terms.qos:
            return "priorities"
        if len(self.members) >= self.terms.max_members:
            return "too many members"
        return ""

    def _next_of(self, join: Join) -> list[int]:
        """The numbers of the next frames, by priority and reliability as `Unicast` counts."""
        lanes = join.lane_sns
        numbers: list[int] = []
        for priority in range(LANES // 2):
            if lanes is not None and len(lanes) == LANES:
                numbers += [lanes[priority * 2 + 1], lanes[priority * 2]]
            else:
                numbers += [join.next_sn_best_effort, join.next_sn_reliable]
        for number in numbers:
            if number > self.mask:
                raise DecodeError(f"sequence number {number} is above {self.mask}")
        return numbers

    def _part(self, source: str, error: Exception, now: float) -> None:
        member = self.members.pop(source, None)
        if member is not None:
            member.lost(error, now)

    # -------------------------------------------------------------------------------- ending

    def close(self, now: float) -> None:
        """Leave the group, with Close to all members."""
        if self.closed:
            return
        self.closed = True
        self.deadline = float("inf")
        for source in list(self.members):
            self._part(source, RemoteError("we left the group"), now)
        w = Writer()
        Close(reason=GENERIC, session=True).write(w)
        self.outbox.send_close(w.getvalue())
