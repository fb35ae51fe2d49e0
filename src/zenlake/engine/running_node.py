"""What the parts of a running node know of it; `Runtime` is the whole."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from zenlake.config.model import Settings
    from zenlake.engine.assembly import OutboxFactory
    from zenlake.engine.flushing import Flushing
    from zenlake.engine.handlers import ChannelSink
    from zenlake.engine.loop import EventLoop
    from zenlake.node.node import Node


class RunningNode(Protocol):
    """A running node as its links, its timer and its scouting see it."""

    closed: bool
    flushing: Flushing
    lock: RLock
    loop: EventLoop
    node: Node
    opening: bool
    outboxes: OutboxFactory
    settings: Settings
    zid: bytes

    def arm(self) -> None:
        """Set the timer for the node's next deadline; on the loop thread."""

    def arm_soon(self) -> None:
        """Set the timer for the node's next deadline; from any thread."""

    def commit_all(self) -> None:
        """Commit every marked channel."""

    def on_the_loop(self, call: Callable[[], None]) -> None:
        """Call something on the loop thread: now if this is it, else soon."""

    def progress(self) -> None:
        """Have `open` check its conditions again: a message was received."""

    def scouting(self) -> bool:
        """Whether it scouts by multicast."""

    def take_marked(self) -> list[ChannelSink]:
        """Act on the node's events; the channels that were marked. The lock is held."""
