"""What waits in one lane of an outbox: the batch that is being filled, and those behind it.

A message too large for any batch is a train: its value is neither copied nor cut before the link
takes it.
"""

from __future__ import annotations

from zenlake.transport.piece import Piece
from zenlake.wire.cursor import Writer


class FragmentedMessage:
    """A message on its way in fragments: its head, and the value that makes it large."""

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
        found: list[Piece] = []
        if start < border:
            found.append(self.head[start:stop])
        if stop > border:
            found.append(self.value[max(0, start - border) : stop - border])
        return found


class QueuedBatch:
    """One thing in a lane's queue: a closed batch, or a train."""

    __slots__ = ("parts", "size", "train")

    def __init__(self, parts: list[bytes], size: int, train: FragmentedMessage | None) -> None:
        """The pieces of a batch ready to be written, or the train that still has to be cut."""
        self.parts: list[bytes] = parts
        self.size: int = size
        self.train: FragmentedMessage | None = train


def ready(batch: bytes) -> QueuedBatch:
    """A batch in one piece."""
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
        #: What the open frame is: -1 none, 0 best effort, 1 reliable.
        self.frame: int = -1
        self.queue: list[QueuedBatch] = []
        #: Messages in the open frame; in all frames before it, by reliability; bytes taken.
        self.filled: int = 0
        self.reliable: int = 0
        self.best_effort: int = 0
        self.bytes_sent: int = 0

    def settle(self) -> None:
        """Count the messages of the open frame for good."""
        if self.frame == 0:
            self.best_effort += self.filled
        else:
            self.reliable += self.filled  # what goes bare is reliable
        self.filled = 0

    def messages(self, reliable: bool) -> int:
        """How many messages were put into the lane."""
        open_frame = self.filled if (self.frame != 0) == reliable else 0
        return (self.reliable if reliable else self.best_effort) + open_frame
