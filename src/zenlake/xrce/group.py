"""The conduit to all peers at once: each of its messages is one datagram to a multicast group.

Peers have a session with each other, and every session has this conduit with a number of its own.
What is sent to the group is numbered once for all of them. Everything else is as on any conduit:
acknowledgements, questions and repeats go through each session, to the one peer that they
concern. So a peer that the group does not reach, or that loses a datagram, gets what it misses
over its session; one that joins later is told by a Synch where the channel stands.

A packet to the group begins with KeepAlive, which says whose it is: it need not come from the
address that the session uses. Samples are written by name, because peers number names each for
themselves.
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import DecodeError
from zenlake.xrce.batches import UnreadBatch
from zenlake.xrce.channel import Sent
from zenlake.xrce.codec import BatchedData, Conduit, KeepAlive, StreamData, Synch, WriteData
from zenlake.xrce.markers import XrceMessage, conduit_of, read_messages
from zenlake.xrce.outgoing import OPEN, OutgoingPackets, written

#: The number of the conduit, behind those that stand for priorities.
GROUP_CONDUIT: Final = 5


class Group:
    """The sending side of the conduit of one node to all of its peers."""

    def __init__(self, pid: bytes, bits: int = 14, mtu: int = 1400) -> None:
        """`pid`: who sends; `bits`: of the numbers, which are those of every session in it."""
        self._head = written(KeepAlive(pid=pid))
        self._bits = bits
        self._mask = (1 << bits) - 1
        self._mtu = mtu
        self._reliable_next = 0
        self._best_next = 0
        self._sessions: dict[OutgoingPackets, None] = {}
        #: Samples that went out as one datagram for all.
        self.sent = 0

    def join(self, session: OutgoingPackets) -> bool:
        """Take a session in; False: it cannot hear the group."""
        if session in self._sessions:
            return True
        if session.state != OPEN or session.bits != self._bits or session.usable <= GROUP_CONDUIT:
            return False
        session.begin_shared(GROUP_CONDUIT, self._reliable_next)
        self._sessions[session] = None
        return True

    def sweep(self) -> None:
        """Let go of the sessions that are over."""
        for session in [one for one in self._sessions if one.state != OPEN]:
            del self._sessions[session]

    def __len__(self) -> int:
        """How many sessions it has."""
        return len(self._sessions)

    @property
    def full(self) -> bool:
        """Whether some peer has not acknowledged so much that a reliable sample has to wait."""
        return any(one.conduit(GROUP_CONDUIT).reliable_out.full() for one in self._sessions)

    def packet(self, name: str, payload: bytes, reliable: bool, now: float) -> bytes:
        """A sample as one packet to the group; empty: it is too large for one."""
        marker = Conduit(id=GROUP_CONDUIT, compact=False)
        message = WriteData(
            reliable=reliable,
            sn=self._reliable_next if reliable else self._best_next,
            resource=name,
            payload=payload,
            markers=(marker,),
        )
        data = written(message)
        if len(self._head) + len(data) > self._mtu:
            return b""
        self.sent += 1
        if not reliable:
            self._best_next = (self._best_next + 1) & self._mask
            return self._head + data
        self._reliable_next = (self._reliable_next + 1) & self._mask
        head = len(written(marker))
        for session in self._sessions:
            sent = Sent(message.sn, data, head, True)
            sent.at = now
            session.shared(GROUP_CONDUIT, sent)
        return self._head + data


def heard(packet: bytes) -> tuple[bytes, list[XrceMessage]]:
    """Whose a packet of the group is, and what belongs to its conduit; raises `DecodeError`."""
    messages = read_messages(packet)
    first = messages[0] if messages else None
    if not isinstance(first, KeepAlive):
        raise DecodeError("a packet of the group that does not say whose it is")
    wanted = (WriteData, StreamData, BatchedData, UnreadBatch, Synch)
    return first.pid, [
        message
        for message in messages[1:]
        if isinstance(message, wanted) and conduit_of(message) == GROUP_CONDUIT
    ]
