"""How a broker behaves, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from zenlake.xrce.options import Habits


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """How a broker behaves; what a stranger can fill has a bound here."""

    pid: bytes
    lease: int = 100
    mtu: int = 1400
    locators: tuple[str, ...] = ()
    secret: bytes = b""
    sessions: int = 4096
    declarations: int = 4096
    #: Publishers and subscribers of all sessions together.
    all_declarations: int = 1 << 17
    queue: int = 1 << 20
    room: int = 1 << 22
    store_depth: int = 16
    store_bytes: int = 1 << 20
    #: What all subscriptions of one session that pull may keep together.
    session_store_bytes: int = 1 << 24
    habits: Habits = field(default_factory=Habits)
    #: What it is in a Hello: 1 a broker, 4 a peer.
    mask: int = 1
    #: Conduits that sessions may use; and the one that goes to all peers at once, 0: none does.
    conduits: int = 5
    shared: int = 0
    #: The one session that others speak with, and not with each other: that of a peer's program.
    only: bytes = b""


@dataclass(slots=True)
class BrokerCounters:
    """What happened in a broker."""

    opened: int = 0
    closed: int = 0
    refused: int = 0
    strangers: int = 0
    malformed: int = 0
    moved: int = 0
    samples_in: int = 0
    samples_out: int = 0
    refused_declarations: int = 0
    congested: int = 0
    meta_writes: int = 0
    #: Sessions that only ever said Open, and made room for others.
    displaced: int = 0
    #: Sessions that were ended because they wanted more than there is room for.
    exhausted: int = 0
