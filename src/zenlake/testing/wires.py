"""Links that carry bytes between the nodes of a simulated network, well or badly."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zenlake.node.sessions.neighbour import Neighbour

if TYPE_CHECKING:
    from zenlake.testing.network import Network

__all__ = ["Conditions", "Owner", "Stranger", "WireEnd", "WireLink"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a link treats what it carries."""

    latency: float = 0.001
    """Seconds from one end to the other."""
    jitter: float = 0.0
    """Up to so many seconds more, at random; datagrams overtake each other by it."""
    chunks: bool = False
    """Whether a stream is cut anew at random, so that reads begin and end anywhere."""
    stream: bool = True
    """A stream is whole and in order; the other kind carries datagrams."""
    loss: float = 0.0
    """The share of datagrams that never arrive."""
    repeat: float = 0.0
    """The share of datagrams that arrive twice."""
    window: int = 0
    """How many bytes may be under way in one direction; 0: any number."""
    mtu: int = 65535
    """The largest batch that the link takes."""


class Owner(Protocol):
    """Who is at one end of a link."""

    name: str

    def arrived(self, end: WireEnd, data: bytes) -> None:
        """Bytes came."""

    def ended(self, end: WireEnd) -> None:
        """The link is gone."""

    def flush(self) -> None:
        """Carry out what came of it."""


class WireEnd:
    """One end of a link: what leaves here arrives at `other`."""

    def __init__(self, link: WireLink, owner: Owner) -> None:
        self.link = link
        self.owner = owner
        self.other: WireEnd = self
        self.closed = False
        self.neighbour: Neighbour | None = None
        #: When the last piece that is under way to this end arrives.
        self.last_arrival = 0.0
        self.under_way = 0
        #: What a partition keeps from this end (None: the end of the stream).
        self.held: deque[bytes | None] = deque()


class WireLink:
    """A link between two ends, made by `Network`."""

    def __init__(self, network: Network, near: Owner, far: Owner, how: Conditions) -> None:
        self._network = network
        self.conditions = how
        #: A silent link takes everything and delivers nothing, not even its own end.
        self.silent = False
        self.ends = (WireEnd(self, near), WireEnd(self, far))
        self.ends[0].other, self.ends[1].other = self.ends[1], self.ends[0]

    @property
    def names(self) -> tuple[str, str]:
        """Who is at its two ends; the first one connected."""
        return self.ends[0].owner.name, self.ends[1].owner.name

    @property
    def is_up(self) -> bool:
        """Whether both ends still think that it is there."""
        return not (self.ends[0].closed or self.ends[1].closed)

    def cut(self) -> None:
        """Break it: both ends notice at once."""
        for end in self.ends:
            self._network.lose(end)

    def silence(self) -> None:
        """Let it go deaf and dumb: nobody notices before a lease runs out."""
        self.silent = True


class Stranger:
    """The test itself at the end of a link: it may say anything."""

    def __init__(self, network: Network, name: str) -> None:
        self.network = network
        self.name = name
        self.end: WireEnd
        self.link: WireLink
        #: All that came, and whether the other side has closed the link.
        self.received = b""
        self.closed = False

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.network.carry(self.end, data)

    def say(self, batch: bytes) -> None:
        """Send a batch: with its length in front where the link is a stream."""
        stream = self.link.conditions.stream
        self.send(len(batch).to_bytes(2, "little") + batch if stream else batch)

    def heard(self) -> list[bytes]:
        """The batches that came since the last call (of a stream link)."""
        batches: list[bytes] = []
        while len(self.received) >= 2:
            size = int.from_bytes(self.received[:2], "little")
            if len(self.received) < 2 + size:
                break
            batches.append(self.received[2 : 2 + size])
            self.received = self.received[2 + size :]
        return batches

    def hang_up(self) -> None:
        """Close the link."""
        self.network.close_end(self.end)

    def arrived(self, end: WireEnd, data: bytes) -> None:
        """Keep what came."""
        self.received += data

    def ended(self, end: WireEnd) -> None:
        """Note that the link is gone."""
        self.closed = True

    def flush(self) -> None:
        """Nothing is ever waiting here."""
