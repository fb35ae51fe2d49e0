"""How a sample is to be treated on its way.

One byte on the wire carries it:

     7   6   5   4   3   2 1 0
    | 0 | 0 | F | E | D | prio |     D do not drop · E express · F wait for the first only

    D=1 → BLOCK        D=0 F=1 → BLOCK_FIRST        D=0 F=0 → DROP

A message without that byte means 0x05: DATA, DROP, batched.
"""

from __future__ import annotations

from enum import Enum, IntEnum, nonmember
from typing import Final, final

from zenlake.errors import DecodeError

__all__ = [
    "DEFAULT_QOS",
    "CongestionControl",
    "Locality",
    "Priority",
    "QoS",
    "Reliability",
    "SampleKind",
]


class Priority(IntEnum):
    """How urgent a sample is: the smaller the number, the sooner it leaves.

    Zero is kept for what nodes say among themselves.
    """

    REAL_TIME = 1
    INTERACTIVE_HIGH = 2
    INTERACTIVE_LOW = 3
    DATA_HIGH = 4
    DATA = 5
    DATA_LOW = 6
    BACKGROUND = 7
    DEFAULT = 5  # DATA
    MIN = 7  # BACKGROUND
    MAX = 1  # REAL_TIME
    NUM = nonmember(7)  # how many there are

    __str__ = Enum.__str__

    def __repr__(self) -> str:
        return str(self)


class CongestionControl(Enum):
    """What happens to a sample when the queue towards a neighbour is full."""

    DROP = 0
    BLOCK = 1
    BLOCK_FIRST = 2
    DEFAULT = 0  # DROP

    def __repr__(self) -> str:
        return str(self)


class Reliability(Enum):
    """Whether the transport repeats what was lost."""

    BEST_EFFORT = 0
    RELIABLE = 1
    # Of the transport. A publication asks for RELIABLE when it is not told otherwise.
    DEFAULT = 0  # BEST_EFFORT

    def __repr__(self) -> str:
        return str(self)


class Locality(Enum):
    """Whom a sample may reach, or come from: this session, other ones, or both."""

    SESSION_LOCAL = 0
    REMOTE = 1
    ANY = 2
    DEFAULT = 2  # ANY

    def __repr__(self) -> str:
        return str(self)


class SampleKind(Enum):
    """Whether a sample sets a value or removes it."""

    PUT = 0
    DELETE = 1

    def __repr__(self) -> str:
        return str(self)


# The bits of the byte in which quality of service travels, for code that has no `QoS` at hand.
QOS_PRIORITY: Final = 0x07
QOS_BLOCK: Final = 0x08
QOS_EXPRESS: Final = 0x10
QOS_BLOCK_FIRST: Final = 0x20
#: Data priority, dropped when congested, not express: what a message without the byte means.
QOS_DEFAULT: Final = 0x05
#: What nodes tell each other: before all data, and never dropped.
QOS_CONTROL: Final = 0x08

# By the three bits of the byte. A stranger may use the nodes' own priority for a sample: what
# the program is told then is the ordinary one.
_PRIORITIES: Final[tuple[Priority, ...]] = (Priority.DEFAULT, *Priority)


@final
class QoS:
    """Priority, congestion control and express flag, in the byte they travel in."""

    __slots__ = ("_byte",)

    def __init__(
        self,
        priority: Priority = Priority.DATA,
        congestion_control: CongestionControl = CongestionControl.DROP,
        express: bool = False,
    ) -> None:
        byte = int(priority)
        if congestion_control is CongestionControl.BLOCK:
            byte |= QOS_BLOCK
        elif congestion_control is CongestionControl.BLOCK_FIRST:
            byte |= QOS_BLOCK_FIRST
        self._byte: int = byte | QOS_EXPRESS if express else byte

    @classmethod
    def from_byte(cls, byte: int) -> QoS:
        """What this byte means; it is kept as it came, for those it is passed on to."""
        if not 0 <= byte <= 0xFF:
            raise DecodeError(f"QoS {byte:#x} is more than a byte")
        return _BY_BYTE[byte]

    @property
    def byte(self) -> int:
        """The byte on the wire."""
        return self._byte

    @property
    def priority(self) -> Priority:
        """How urgent it is."""
        return _PRIORITIES[self._byte & QOS_PRIORITY]

    @property
    def congestion_control(self) -> CongestionControl:
        """What happens when a queue is full."""
        if self._byte & QOS_BLOCK:
            return CongestionControl.BLOCK
        if self._byte & QOS_BLOCK_FIRST:
            return CongestionControl.BLOCK_FIRST
        return CongestionControl.DROP

    @property
    def express(self) -> bool:
        """Whether it leaves at once instead of waiting for company."""
        return self._byte & QOS_EXPRESS != 0

    def __repr__(self) -> str:
        return f"QoS({self.priority}, {self.congestion_control}, express={self.express})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QoS) and self._byte == other._byte

    def __hash__(self) -> int:
        return hash(self._byte)

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return QoS.from_byte, (self._byte,)


def _of(byte: int) -> QoS:
    qos = QoS()
    qos._byte = byte
    return qos


_BY_BYTE: Final[list[QoS]] = [_of(byte) for byte in range(256)]
DEFAULT_QOS: Final = QoS()
