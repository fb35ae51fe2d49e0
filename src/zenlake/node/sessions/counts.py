"""What was counted of one session, as it stands now; and of the sessions that are over.

The counters themselves live where they are counted: in the transport (bytes, batches, lanes), the
outbox (drops), the face (what made no sense) and the gates (what the policy stopped). Here they
are only read.
"""

from __future__ import annotations

from dataclasses import field

from zenlake.node.sessions.neighbour import Neighbour
from zenlake.records import record
from zenlake.routing.regions import ROLE_NAMES

#: The lanes by their number on the wire.
PRIORITIES = (
    "control",
    "real_time",
    "interactive_high",
    "interactive_low",
    "data_high",
    "data",
    "data_low",
    "background",
)
#: How many sessions that are over are remembered one by one.
REMEMBERED = 64


def zeros() -> list[int]:
    """A counter for each priority and reliability, at priority * 2 + reliable."""
    return [0] * 16


@record(slots=True)
class SessionCounts:
    """All that was counted of one session, or of many."""

    zid: bytes = b""
    whatami: str = ""
    src: str = ""
    dst: str = ""
    rx_bytes: int = 0
    tx_bytes: int = 0
    rx_batches: int = 0
    tx_batches: int = 0
    #: Messages by priority * 2 + reliable.
    rx_messages: list[int] = field(default_factory=zeros)
    tx_messages: list[int] = field(default_factory=zeros)
    #: Bytes by priority: of frames and fragments received, of batches sent.
    rx_lane_bytes: list[int] = field(default_factory=lambda: [0] * 8)
    tx_lane_bytes: list[int] = field(default_factory=lambda: [0] * 8)
    #: What did not arrive, or was not sent, by reason and priority (empty: not known).
    rx_dropped: dict[tuple[str, str], int] = field(default_factory=dict)
    tx_dropped: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        """The protocol of its link."""
        return self.dst.partition("/")[0]

    def add(self, other: SessionCounts) -> None:
        """Count another session with this one."""
        self.rx_bytes += other.rx_bytes
        self.tx_bytes += other.tx_bytes
        self.rx_batches += other.rx_batches
        self.tx_batches += other.tx_batches
        for index in range(16):
            self.rx_messages[index] += other.rx_messages[index]
            self.tx_messages[index] += other.tx_messages[index]
        for index in range(8):
            self.rx_lane_bytes[index] += other.rx_lane_bytes[index]
            self.tx_lane_bytes[index] += other.tx_lane_bytes[index]
        for mine, theirs in (
            (self.rx_dropped, other.rx_dropped),
            (self.tx_dropped, other.tx_dropped),
        ):
            for reason, many in theirs.items():
                mine[reason] = mine.get(reason, 0) + many

    def dropped(self) -> dict[str, dict[str, int]]:
        """What was dropped, by direction and reason."""
        dropped: dict[str, dict[str, int]] = {}
        for direction, counted in (("rx", self.rx_dropped), ("tx", self.tx_dropped)):
            sums: dict[str, int] = {}
            for (reason, _), many in counted.items():
                sums[reason] = sums.get(reason, 0) + many
            dropped[direction] = sums
        return dropped


def counts_of(neighbour: Neighbour) -> SessionCounts:
    """What was counted of a neighbour's session so far."""
    unicast = neighbour.unicast
    face = neighbour.face
    counts = SessionCounts(src=neighbour.src, dst=neighbour.dst)
    if face is not None:
        counts.zid = face.zid
        counts.whatami = ROLE_NAMES[face.role]
        if not neighbour.links or neighbour.links[0] is neighbour:
            # One face for all links of a session.
            _note(counts.rx_dropped, "ignored", "", face.ignored)
    for counted, stopped in (
        (counts.rx_dropped, neighbour.stopped_in),
        (counts.tx_dropped, neighbour.stopped_out),
    ):
        _note(counted, "access-control", "", stopped.denied)
        _note(counted, "downsampling", "", stopped.downsampled)
        _note(counted, "low-pass", "", stopped.too_large)
    if unicast is None:
        return counts
    counts.rx_bytes = unicast.bytes_received
    counts.rx_batches = unicast.batches_received
    counts.rx_messages = list(unicast.lanes.messages)
    counts.rx_lane_bytes = [
        unicast.lanes.bytes[index * 2] + unicast.lanes.bytes[index * 2 + 1] for index in range(8)
    ]
    _note(counts.rx_dropped, "duplicate", "", unicast.lanes.duplicates)
    _note(counts.rx_dropped, "undecodable", "", unicast.lanes.undecodable)
    _note(counts.rx_dropped, "incomplete", "", unicast.lanes.incomplete())
    outbox = unicast.outbox
    counts.tx_bytes = outbox.bytes_sent
    counts.tx_batches = outbox.batches_sent
    only = 5 if len(outbox.lanes) == 1 else -1  # without lanes everything is data
    for index, lane in enumerate(outbox.lanes):
        priority = only if only >= 0 else index
        counts.tx_messages[priority * 2] = lane.messages(False)
        counts.tx_messages[priority * 2 + 1] = lane.messages(True)
        counts.tx_lane_bytes[priority] = lane.bytes_sent
    for priority, many in enumerate(outbox.drops):
        _note(counts.tx_dropped, "congestion", PRIORITIES[priority], many)
    _note(counts.tx_dropped, "oversized", "", outbox.oversized)
    return counts


def _note(counted: dict[tuple[str, str], int], reason: str, priority: str, many: int) -> None:
    if many:
        counted[reason, priority] = many


class ClosedSessionCounts:
    """The sessions that are over."""

    def __init__(self) -> None:
        """None yet."""
        self.total: SessionCounts = SessionCounts()
        #: The last of them, one by one.
        self.sessions: list[SessionCounts] = []
        self.many: int = 0
        #: Links on which no session came about.
        self.unopened: int = 0

    def add(self, neighbour: Neighbour) -> None:
        """The session of a neighbour is over."""
        counts = counts_of(neighbour)
        self.total.add(counts)
        if neighbour.face is None:
            self.unopened += 1
            return
        if not neighbour.links:  # the last of them
            self.many += 1
        self.sessions.append(counts)
        del self.sessions[:-REMEMBERED]
