"""Link states on the wire, and the numbers that stand for nodes in them.

Gossip among peers, the map that routers share, and the introductions of a gateway are three uses of
one message: an `Oam` with id 1 whose body is a list of entries.

    psid    the number that the *sender* of the message gave to the node; 0 is the sender itself
    sn      the version of what is said of the node; a greater one wins
    P W L   the node's id, its role, its locators; each may be left out
    links   the psids of the node's neighbours
    H       what it would have its links weigh

An entry without an id is about the node that the sender called by that psid before. So every link
has a table of what the other side's numbers mean (`NodeNames`), and every sender gives numbers to
nodes (`NodeNumbers`).
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from zenlake.values.qos import QOS_CONTROL
from zenlake.wire import LinkState, LinkStates, Oam, read_link_states, write

LINK_STATE: Final = 1
"""The id of `Oam` messages that carry link states."""
MAX_LOCATORS: Final = 64
"""The locators that are kept of one node."""

Outgoing = list[tuple[int, Oam]]
"""Messages to send, each with the number of the link that it goes to."""


class KnownNode(NamedTuple):
    """A node that a neighbour told of: its role as a flag, and where it listens."""

    zid: bytes
    role: int
    locators: tuple[str, ...]


def read_entries(message: Oam) -> tuple[LinkState, ...]:
    """The entries of a message; none if it carries something else.

    Raises `DecodeError` when the body is not made of link states.
    """
    if message.id != LINK_STATE or not isinstance(message.body, bytes):
        return ()
    return tuple(read_link_states(message.body))


def write_entries(entries: list[LinkState]) -> Oam:
    """The message that carries some entries."""
    body = write(LinkStates(entries=tuple(entries)))
    return Oam(id=LINK_STATE, qos=QOS_CONTROL, body=body)


@final
class NodeNames:
    """What the numbers mean that a neighbour uses for nodes.

    Args:
        limit: how many numbers are remembered.
    """

    __slots__ = ("_limit", "_names", "changed")

    def __init__(self, limit: int) -> None:
        self._limit: int = limit
        self._names: dict[int, bytes] = {}
        self.changed: bool = False
        """Whether the last number that was learnt means something else than before."""

    def learn(self, psid: int, zid: bytes) -> bool:
        """Note what a number means; False, and nothing is noted, if there are too many."""
        before = self._names.get(psid)
        self.changed = before != zid
        if before is None and len(self._names) >= self._limit:
            self.changed = False
            return False
        self._names[psid] = zid
        return True

    def get(self, psid: int) -> bytes:
        """The node that a number means; empty if the neighbour has not said so."""
        return self._names.get(psid, b"")


@final
class NodeNumbers:
    """The numbers that this node gives to others.

    Numbers are used again: they travel in 16 bits, and others keep them in arrays.
    """

    __slots__ = ("_free", "_next")

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next: int = 1

    def take(self) -> int:
        """A number for one more node; 0 is this node itself."""
        if self._free:
            return self._free.pop()
        number = self._next
        self._next = number + 1
        return number

    def give_back(self, number: int) -> None:
        """A node is forgotten: its number may stand for another one."""
        self._free.append(number)
