"""One lane of an outbox: the messages of one priority that wait to be sent.

A lane has one open batch that messages are encoded into, and a queue of batches in front of it. A
message too large for any batch is queued as a `FragmentedMessage`: its value is neither copied nor
cut before the link takes it.
"""

from __future__ import annotations

from zenlake.transport.piece import Piece
from zenlake.wire.cursor import Writer


class FragmentedMessage:
    """A message that is sent in fragments: its head, and the value that makes it large."""

    __slots__ = ("head", "pos", "reliable", "size", "sn", "value")

    def __init__(self, head: bytes, value: bytes, reliable: bool, sn: int) -> None:
        """`sn`: the sequence number of its first fragment."""
        self.head: bytes = head
        self.value: memoryview = memoryview(value)
        self.size: int = len(head) + len(value)
        self.reliable: bool = reliable
        self.sn: int = sn
        self.pos: int = 0

    def pieces(self, start: int, stop: int) -> list[Piece]:
        """The bytes from `start` to `stop`, not copied."""
        border = len(self.head)
        pieces: list[Piece] = []
        if start < border:
            pieces.append(self.head[start:stop])
        if stop > border:
            pieces.append(self.value[max(0, start - border) : stop - border])
        return pieces


class QueuedBatch:
    """One entry of a lane's queue: a sealed batch, or a message still to be cut into batches."""

    __slots__ = ("fragmented", "parts", "size")

    def __init__(self, parts: list[bytes], size: int, fragmented: FragmentedMessage | None) -> None:
        """`parts`: the pieces of a sealed batch; empty if `fragmented` is given."""
        self.parts: list[bytes] = parts
        self.size: int = size
        self.fragmented: FragmentedMessage | None = fragmented

    @staticmethod
    def single(batch: bytes) -> QueuedBatch:
        """A sealed batch in one piece."""
        return QueuedBatch([batch], len(batch), None)


class TransmitLane:
    """The messages of one priority, in order."""

    __slots__ = (
        "best_effort",
        "bytes_sent",
        "filled",
        "frame",
        "mark",
        "numbers",
        "queue",
        "reliable",
        "writer",
    )  # fmt: skip

    def __init__(self, mark: bytes, initial_sn: int) -> None:
        """`mark`: the extension that names the lane in its frames (empty for the data lane)."""
        self.mark: bytes = mark
        #: The next sequence numbers, best effort and reliable; the links of a session share them.
        self.numbers: list[int] = [initial_sn, initial_sn]
        self.writer: Writer = Writer()
        #: The open frame: -1 none, 0 best effort, 1 reliable.
        self.frame: int = -1
        self.queue: list[QueuedBatch] = []
        #: Messages in the open frame; in all frames before it, by reliability; bytes taken.
        self.filled: int = 0
        self.reliable: int = 0
        self.best_effort: int = 0
        self.bytes_sent: int = 0

    def settle(self) -> None:
        """Add the messages of the open frame to the totals by reliability."""
        if self.frame == 0:
            self.best_effort += self.filled
        else:
            self.reliable += self.filled  # what goes bare is reliable
        self.filled = 0

    def messages(self, reliable: bool) -> int:
        """How many messages were put into the lane."""
        open_frame = self.filled if (self.frame != 0) == reliable else 0
        return (self.reliable if reliable else self.best_effort) + open_frame
