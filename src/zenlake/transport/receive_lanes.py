"""The receiving side of a session's lanes: sequence numbers, and messages in fragments.

There are sixteen lanes: `priority * 2 + reliable`. A frame or fragment is accepted if its sequence
number follows the last one of its lane; else it is a duplicate and is passed over. Fragments are
collected by lane; all lanes together collect no more than one message may have.
"""

from __future__ import annotations

from typing import Final, final

from zenlake.errors import DecodeError
from zenlake.transport.budget import MemoryAccount
from zenlake.transport.fragment import Reassembly, read_pieces
from zenlake.transport.handshake import Terms
from zenlake.transport.listener import Listener
from zenlake.transport.piece import piece
from zenlake.transport.sequence import follows
from zenlake.wire.cursor import Reader
from zenlake.wire.numbers import (
    EXTENSION,
    FRAGMENT_EXT_DROP,
    FRAGMENT_EXT_FIRST,
    FRAGMENT_EXT_PRIORITY,
    FRAGMENT_FLAG_MORE,
    FRAGMENT_FLAG_RELIABLE,
    FRAME_EXT_PRIORITY,
    MORE,
)

LANES: Final = 16
#: Who has this part of what it may have in messages that it has not finished is named.
LARGE_PART: Final = 4
#: The priority of frames that name none.
DATA: Final = 5


@final
class ReceiveLanes:
    """What was received on each lane of one session."""

    __slots__ = (
        "account", "bytes", "collecting", "duplicates", "last", "limit", "marked", "mask",
        "messages", "named", "qos", "reassemblies", "undecodable",
    )  # fmt: skip

    def __init__(self, limit: int, account: MemoryAccount | None = None) -> None:
        """`limit`: the largest message that may come in fragments, in bytes.

        `account` is charged for what is not complete.
        """
        self.account: MemoryAccount = MemoryAccount() if account is None else account
        self.limit: int = limit
        self.mask: int = 0x0FFF_FFFF
        #: Whether lanes were agreed; else all frames are on the lane of `DATA`.
        self.qos: bool = False
        #: Whether first fragments are marked as such.
        self.marked: bool = False
        #: The last sequence number of each lane; the links of a session share it.
        self.last: list[int] = []
        self.reassemblies: list[Reassembly] = []
        #: Bytes of unfinished messages in all lanes together.
        self.collecting: int = 0
        #: Whether the neighbour was named for them.
        self.named: bool = False
        #: Frames and fragments that were received before, and messages that cannot be decoded.
        self.duplicates: int = 0
        self.undecodable: int = 0
        #: By lane: messages, and the bytes of their frames and fragments.
        self.messages: list[int] = [0] * LANES
        self.bytes: list[int] = [0] * LANES

    def begin(self, terms: Terms, next_sns: list[int]) -> None:
        """Begin under the terms of a session; `next_sns`: the first number of each lane."""
        self.mask = terms.mask
        self.qos = terms.qos
        self.marked = terms.patch >= 1
        self.last = [(number - 1) & terms.mask for number in next_sns]
        self.reassemblies = [Reassembly(self.limit) for _ in range(LANES)]

    def share(self, other: ReceiveLanes) -> None:
        """Count on with another link of the same session."""
        self.last = other.last
        self.reassemblies = other.reassemblies
        self.account.close()
        self.account = other.account

    def free(self) -> None:
        """The session is over: let go of what was collected, and do not wait for a collector."""
        for reassembly in self.reassemblies:
            reassembly.clear()
        self.collecting = 0
        self.account.close()

    def accept(self, lane: int, sn: int, r: Reader) -> bool:
        """Whether `sn` is new on its lane; raises if it is above what was agreed."""
        mask = self.mask
        if sn > mask:
            raise DecodeError(f"sequence number {sn} is above {mask}", r.pos)
        if not follows(self.last[lane], sn, mask):
            self.duplicates += 1
            return False
        self.last[lane] = sn
        return True

    def priority(self, r: Reader, message: str) -> int:
        """The value of a priority extension."""
        priority = r.vle(0xFFFF_FFFF_FFFF_FFFF) & 7
        if not self.qos and priority != DATA:
            raise DecodeError(f"a {message} on lane {priority}: no lanes agreed", r.pos)
        return priority

    def frame_priority(self, r: Reader) -> int:
        """The priority that the extensions of a frame name."""
        priority = DATA
        while True:
            tag = r.u8()
            if tag & EXTENSION == FRAME_EXT_PRIORITY:
                priority = self.priority(r, "frame")
            else:
                r.skip_extension(tag, "Frame")
            if tag < MORE:
                return priority

    def fragment(self, r: Reader, listener: Listener) -> int:
        """Take a fragment in; how many messages (none or one) it completed for `listener`."""
        header = r.u8()
        sn = r.vle(0xFFFF_FFFF_FFFF_FFFF)
        priority = DATA
        first = False
        drop = False
        if header & MORE:
            while True:
                tag = r.u8()
                kind = tag & EXTENSION
                if kind == FRAGMENT_EXT_PRIORITY:
                    priority = self.priority(r, "fragment")
                elif kind == FRAGMENT_EXT_FIRST:
                    first = True
                elif kind == FRAGMENT_EXT_DROP:
                    drop = True
                else:
                    r.skip_extension(tag, "Fragment")
                if tag < MORE:
                    break
        reliable = (header & FRAGMENT_FLAG_RELIABLE) != 0
        lane = priority * 2 + (1 if reliable else 0)
        accepted = self.accept(lane, sn, r)
        payload = piece(r.data, r.pos, r.end)
        r.pos = r.end
        if not accepted:
            return 0
        self.bytes[lane] += len(payload)
        reassembly = self.reassemblies[lane]
        if drop:
            self._give_up(reassembly)
            return 0
        before = reassembly.size
        excessive = reassembly.excessive
        pieces = reassembly.add(
            sn, self.mask, payload, first, (header & FRAGMENT_FLAG_MORE) != 0, self.marked
        )
        grown = reassembly.size - before
        self.collecting += grown
        if grown < 0:
            self.account.refund(-grown)
        elif grown and not self.account.charge(grown):
            self.account.refund(before)
            self.collecting -= reassembly.size
            reassembly.clear()
            listener.refused(
                "unfinished messages of more bytes than it may have (limits/session/fragments, "
                "limits/node/fragments)"
            )
            return 0
        if not self.named and self.account.used > self.account.limit // LARGE_PART:
            self.named = True
            listener.held_back(
                "unfinished messages of more than a quarter of the bytes that it may have "
                "(limits/session/fragments)"
            )
        if self.collecting > self.limit or reassembly.excessive > excessive:
            # Sixteen lanes together may not collect more than one of them.
            self._give_up(reassembly)
            listener.refused(
                "an unfinished message of more bytes than one may have "
                "(transport/link/rx/max_message_size)"
            )
            return 0
        if pieces is None:
            return 0
        try:
            message = read_pieces(pieces)
        except DecodeError:
            self.undecodable += 1  # costs this message, not the link
            return 0
        self.messages[lane] += 1
        listener.heard(message, priority, reliable)
        return 1

    def _give_up(self, reassembly: Reassembly) -> None:
        """Forget what a lane has collected."""
        self.collecting -= reassembly.size
        self.account.refund(reassembly.size)
        reassembly.clear()

    def incomplete(self) -> int:
        """How many messages were given up because fragments of them were missing."""
        return sum([reassembly.dropped for reassembly in self.reassemblies])
