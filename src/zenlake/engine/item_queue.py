"""A queue of items, bounded by number and by bytes.

Items above `LIGHT` bytes are weighed: they are wrapped in `Heavy`, and `held` is the sum of their
weights. Lighter ones are bounded by their number alone, so that an ordinary sample costs one
append.

Any number of threads may push and take: `add` and `first` are single steps of the deque. Only
`held` is guarded, by the channel's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, final

from zenlake.transport.drops import FULL, OLDEST, OTHERS, DropLog

#: How many items a channel holds if its handler does not say.
ITEMS: Final = 65536
#: How many bytes a channel holds.
BYTES: Final = 64 << 20
#: Items up to this size are bounded by their number alone, and not weighed.
LIGHT: Final = 1024
#: How often its bound a queue holds while no link can be paused for it.
SLACK: Final = 4


@final
class Heavy:
    """An item whose bytes are counted."""

    __slots__ = ("item", "weight")

    def __init__(self, item: object, weight: int) -> None:
        """`weight` in bytes."""
        self.item: object = item
        self.weight: int = weight


@final
class Passage:
    """A mark between two items of a queue, released when all items before it have left."""

    __slots__ = ("passed",)

    def __init__(self) -> None:
        """Not passed yet."""
        self.passed: Lock = Lock()
        self.passed.acquire()


@final
class ItemQueue:
    """The items of one channel, oldest first."""

    __slots__ = (
        "add", "capacity", "chunk", "dropped_cancelled", "dropped_full", "dropped_oldest", "first",
        "guard", "held", "items", "limit", "lost", "of_chunk", "ring", "total",
    )  # fmt: skip

    def __init__(self, capacity: int, ring: bool, guard: Lock) -> None:
        """`ring`: drop the oldest item for a new one; `guard`: the lock of the channel."""
        self.capacity: int = max(1, capacity)
        self.ring: bool = ring
        #: How many items there may be at most: beyond `capacity` the links should have paused.
        self.limit: int = max(SLACK * self.capacity, ITEMS)
        self.items: deque[object] = deque()
        self.add: Callable[[object], None] = self.items.append
        self.first: Callable[[], object] = self.items.popleft
        self.guard: Lock = guard
        #: Bytes of heavy items inside.
        self.held: int = 0
        #: The read that the last item lies in, until the next commit, and how many items do.
        self.chunk: bytes = b""
        self.of_chunk: int = 0
        #: Items dropped: by a ring, for lack of room, by `discard`.
        self.dropped_oldest: int = 0
        self.dropped_full: int = 0
        self.dropped_cancelled: int = 0
        #: The first two by key, since there was one; and where all of the node are counted.
        self.lost: DropLog | None = None
        self.total: DropLog | None = None

    def push(self, item: object, weight: int) -> bool:
        """Append an item of `weight` bytes; False if it was dropped."""
        items = self.items
        if self.ring:
            while len(items) >= self.capacity and self._drop_oldest():
                pass
        elif len(items) >= self.limit or self.held > SLACK * BYTES:
            self.dropped_full += 1
            self._lose(FULL, item)
            self.chunk = b""
            return False
        if weight > LIGHT:
            with self.guard:
                self.held += weight
            self.add(Heavy(item, weight))
        else:
            self.add(item)
        return True

    def mark(self) -> Passage:
        """Append a mark: heavy as items go, so that ordinary ones are not looked at twice."""
        passage = Passage()
        self.add(Heavy(passage, 0))
        return passage

    def _drop_oldest(self) -> bool:
        try:
            item = self.items.popleft()
        except IndexError:
            return False  # another thread took it meanwhile
        if self._left(item):
            self.dropped_oldest += 1
            self._lose(OLDEST, item)
        return True

    def _lose(self, reason: str, item: object) -> None:
        """Count an item that is dropped under its key."""
        total = self.total
        if total is None:
            return
        lost = self.lost
        if lost is None:
            lost = DropLog(total)
            self.lost = lost
        many = lost.due(reason, 1)
        if many:
            if isinstance(item, Heavy):
                item = item.item
            with self.guard:
                lost.note(reason, str(getattr(item, "key_expr", OTHERS)), many)

    def _left(self, item: object) -> bool:
        """Let go of what was taken out without being handed over; False if it was a mark."""
        if isinstance(item, Heavy):
            self.lighten(item.weight)
            passage = item.item
            if isinstance(passage, Passage):
                passage.passed.release()
                return False
        return True

    def lighten(self, weight: int) -> None:
        """A heavy item of `weight` bytes has left."""
        with self.guard:
            self.held -= weight

    def is_full(self) -> bool:
        """Whether it has reached its bound; a ring never does."""
        return not self.ring and (len(self.items) >= self.capacity or self.held >= BYTES)

    def is_half_empty(self) -> bool:
        """Whether paused links should be read again."""
        return len(self.items) * 2 <= self.capacity and self.held * 2 <= BYTES

    def discard(self) -> None:
        """Drop all items."""
        while True:
            try:
                item = self.items.popleft()
            except IndexError:
                return
            if self._left(item):
                self.dropped_cancelled += 1
