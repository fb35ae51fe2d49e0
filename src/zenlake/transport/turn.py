"""A turn: how much of what one neighbour sent is handled before the others have theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

#: Declarations have this part of a turn's time: each costs as much as many samples. Others wait for
#: half a turn on the average.
DECLARING: Final = 1 / 3


@final
class Turn:
    """So many messages and so much time, whichever is over first.

    Samples under heads that came before cost little: they do not count as messages, and the clock
    is looked at only now and then.
    """

    __slots__ = ("_began", "_ends", "_left", "clock", "declarations", "messages", "seconds")

    def __init__(self, messages: int, seconds: float, clock: Callable[[], float]) -> None:
        """`messages` that are not such samples; `clock` tells the time in seconds."""
        self.messages: int = messages
        self.seconds: float = seconds
        self.clock: Callable[[], float] = clock
        #: The declarations of this turn.
        self.declarations: int = 0
        self._left: int = messages
        self._began: float = 0.0
        self._ends: float = 0.0

    def begin(self) -> None:
        """A neighbour's turn begins."""
        self._left = self.messages
        self.declarations = 0
        self._began = self.clock()
        self._ends = self._began + self.seconds

    def spend(self, declaring: bool) -> bool:
        """A message was handled, a declaration or another one; whether the turn is over."""
        self._left -= 1
        if declaring:
            self.declarations += 1
        if self._left <= 0:
            return True
        now = self.clock()
        return now >= self._ends or (declaring and now - self._began >= self.seconds * DECLARING)

    @property
    def spent(self) -> int:
        """The messages of this turn that are not such samples."""
        return self.messages - self._left

    def took(self) -> float:
        """How many seconds ago it began."""
        return self.clock() - self._began

    def is_over(self) -> bool:
        """Whether the turn has used up its messages or its time."""
        return self._left <= 0 or self.clock() >= self._ends
