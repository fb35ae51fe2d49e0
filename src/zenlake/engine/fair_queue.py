"""Askers in turn: of all that wait, the next is of the asker whose turn was longest ago.

So an asker that asks much waits behind itself, and not before others.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, final

__all__ = ["FairQueue"]

T = TypeVar("T")


@final
class FairQueue(Generic[T]):
    """A queue with a lane for each asker; needs a lock where threads share it."""

    def __init__(self) -> None:
        """Nothing waits."""
        #: What waits, by asker; the asker whose turn is next comes first.
        self._lanes: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def waiting_of(self, asker: Hashable) -> int:
        """How much of one asker waits."""
        return len(self._lanes.get(asker, ()))

    def add(self, asker: Hashable, item: T) -> None:
        """Let something wait, behind what the asker has waiting already."""
        self._lanes.setdefault(asker, deque()).append(item)
        self._count += 1

    def next_asker(self, may: Callable[[Hashable], bool] = lambda _: True) -> Hashable | None:
        """The asker whose turn is next, of those that `may` have one; None: there is none."""
        return next((asker for asker in self._lanes if may(asker)), None)

    def first_of(self, asker: Hashable) -> T:
        """What of an asker waits longest."""
        return self._lanes[asker][0]

    def take(self, asker: Hashable) -> T:
        """Give an asker its turn: what of it waits longest does not wait any more."""
        item = self._lanes[asker][0]
        self.remove(asker, item)
        if asker in self._lanes:
            self._lanes.move_to_end(asker)
        return item

    def remove(self, asker: Hashable, item: T) -> None:
        """Let something wait no more, without a turn."""
        lane = self._lanes[asker]
        lane.remove(item)
        self._count -= 1
        if not lane:
            del self._lanes[asker]
