"""What happens to a message that finds its lane full: wait a moment, wait long, or drop.

    congestion control   waits at most        then
    DROP, best effort    wait_before_drop     dropped; the lane is *congested*: the next ones are
                                              dropped at once, until the lane has room again
    BLOCK                wait_before_close    dropped, and the session is closed as unresponsive
    BLOCK_FIRST          as BLOCK, but as DROP while another message of its priority blocks

Pure rules; the waiting itself is in `room` (threads) and `tasks` (tasks).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

DROP: Final = 0
BLOCK: Final = 1
BLOCK_FIRST: Final = 2


@final
class CongestionRules:
    """The state of the rules for one outbox, by priority; guarded by the outbox's lock."""

    __slots__ = ("blocking", "congested", "unresponsive", "wait_before_close", "wait_before_drop")

    def __init__(self, wait_before_drop: float, wait_before_close: float) -> None:
        """How long a message may wait for room, in seconds."""
        self.wait_before_drop: float = wait_before_drop
        self.wait_before_close: float = wait_before_close
        #: By priority: a message waited in vain and was dropped, and no batch has left since.
        self.congested: list[bool] = [False] * 8
        #: By priority: a message that is not to be dropped waits for room.
        self.blocking: list[bool] = [False] * 8
        #: Called when a message that is not to be dropped found no room in time.
        self.unresponsive: Callable[[], None] | None = None

    def may_drop(self, priority: int, reliable: bool, congestion: int) -> bool:
        """Whether a message that finds no room may be dropped, and so waits but a moment."""
        if not reliable or congestion == DROP:
            return True
        return congestion == BLOCK_FIRST and self.blocking[priority]

    def patience(self, droppable: bool) -> float:
        """How long a message waits for room, in seconds."""
        return self.wait_before_drop if droppable else self.wait_before_close
