"""What a session is told before it begins, and the habits of peers that it takes into account."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from zenlake.xrce.channel import WINDOW
from zenlake.xrce.codec import Property
from zenlake.xrce.fragments import REASSEMBLY_MAX
from zenlake.xrce.properties import (
    AUTHENTICATION,
    COMMIT_MODE,
    CONDUITS,
    SN_LENGTH,
    number,
    number_of,
    value_of,
)

#: The vendor property by which two nodes of this kind know each other: all of the paper is spoken.
WHOLE: Final = 33

#: Commits that are taken before the one before has its result: each has it at once.
COMMITS_AHEAD: Final = 127

#: Close reasons.
SUCCESS, BAD_AUTHENTICATION, BAD_VERSION, NO_ROOM, BAD_SN_LENGTH, BAD_PARAMETER, BAD_DECLARATION = (
    range(7)
)
GENERIC: Final = 255


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How one side of a session behaves."""

    pid: bytes
    #: Units of 100 ms for which silence may last on our side; 0: for ever.
    lease: int = 100
    #: Bits of sequence numbers, which the side that opens decides.
    bits: int = 14
    #: Conduits that we can handle: the highest id and one more.
    conduits: int = 5
    #: Bytes of the largest packet.
    mtu: int = 1400
    #: Whether the link loses nothing and keeps the order.
    lossless: bool = False
    locators: tuple[str, ...] = ()
    authentication: bytes = b""
    window: int = WINDOW
    #: The conduit that others share, so that it may have begun before this session; 0: none.
    shared: int = 0
    #: Bytes that may wait to be sent, on each conduit.
    queue: int = 1 << 20
    #: Bytes of the largest payload that is put together from fragments.
    room: int = REASSEMBLY_MAX
    #: The longest finite lease that we grant, in units of 100 ms.
    lease_max: int = 864_000
    open_every: float = 1.0
    open_tries: int = 10
    close_within: float = 1.0

    def properties(self, answering: tuple[Property, ...] | None = None) -> tuple[Property, ...]:
        """What Open says of us; or Accept, `answering` what Open said."""
        properties: list[Property] = []
        if answering is not None and WHOLE in _ids(answering):
            properties.append(number(COMMIT_MODE, COMMITS_AHEAD))
        if self.conduits != 1 and (answering is None or CONDUITS in _ids(answering)):
            properties.append(number(CONDUITS, self.conduits))
        bits = self.bits if answering is None else number_of(answering, SN_LENGTH)
        if bits != 14:
            properties.append(number(SN_LENGTH, bits))
        if self.authentication and answering is None:
            properties.append(Property(id=AUTHENTICATION, value=self.authentication))
        if answering is None or WHOLE in _ids(answering):
            properties.append(number(WHOLE, 1))
        return tuple(properties)


@dataclass(slots=True)
class Habits:
    """What a peer does otherwise than the paper says, or does not do at all.

    Those that show in behaviour are recognised; all can be set by configuration.
    """

    #: It speaks all of the paper: fragments, batches, spaces, migration, packets on streams.
    complete: bool = False
    #: It puts resource spaces in compact form from 0 on (OCaml brokers), and announces version 0.
    ocaml: bool = False
    #: Its numbers grow for ever on a stream instead of beginning again.
    endless: bool = False
    #: Its declarations are in force before they are committed.
    eager: bool = False
    #: Bytes of the largest frame that it reads on a stream; 0: any.
    frame: int = 0


@dataclass(slots=True)
class Counters:
    """What happened in a session; what a stranger can cause is counted."""

    received: int = 0
    received_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0
    resent: int = 0
    dropped: int = 0
    refused: int = 0
    ignored: int = 0
    opens: int = 0
    rtt: float = field(default=0.02)


def is_complete(properties: tuple[Property, ...]) -> bool:
    """Whether a peer says that it speaks all of the paper."""
    return value_of(properties, WHOLE) is not None


def _ids(properties: tuple[Property, ...]) -> set[int]:
    return {item.id for item in properties}
