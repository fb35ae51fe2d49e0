"""Letting go of what programs forgot to undeclare.

The interpreter finalises an object wherever it happens to be, perhaps in the middle of the node's
own work with its lock held. So nothing is undone there: it is left to one quiet thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

from zenlake.engine.channel import Channel

_forgotten: Channel | None = None


def ready() -> None:
    """Have the thread running before anything can be forgotten."""
    global _forgotten
    if _forgotten is None:
        channel = Channel()
        channel.deliver(_undo, None, False, "zenlake-release")
        channel.start()
        _forgotten = channel


def later(undo: Callable[[], None]) -> None:
    """Have something undone soon, on another thread; takes no lock."""
    channel = _forgotten
    if channel is not None:
        channel.push(undo, 0)
        channel.commit()


def _undo(undo: object) -> None:
    cast(Callable[[], None], undo)()


def _after_fork() -> None:
    """A child has not the thread, and nothing of its parent's to undo."""
    global _forgotten
    _forgotten = None


os.register_at_fork(after_in_child=_after_fork)
