"""The node, locked: how programs call it."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from zenlake.errors import ZError
from zenlake.node.node import Node

if TYPE_CHECKING:
    from zenlake.engine.running_node import RunningNode


class LockedNode:
    """Holds the node lock and sets `node.now`; on exit commits channels and re-arms the timer."""

    __slots__ = ("_deadline", "_node", "_runtime")

    def __init__(self, runtime: RunningNode) -> None:
        """Not locked yet: see `__enter__`."""
        self._runtime: RunningNode = runtime
        self._node: Node = runtime.node
        self._deadline: float = 0.0

    def __enter__(self) -> Node:
        """Take the lock and set `node.now`; raises `ZError` if the session is closed."""
        runtime = self._runtime
        if runtime.closed:
            raise ZError("the session is closed")
        runtime.lock.acquire()
        node = self._node
        node.now = monotonic()
        self._deadline = node.deadline
        return node

    def __exit__(self, *_: object) -> None:
        """Release the lock, commit the marked channels; re-arm the timer if need be."""
        runtime = self._runtime
        earlier = self._node.deadline < self._deadline
        marked = runtime.take_marked()
        runtime.lock.release()
        for sink in marked:
            sink.commit()
        if earlier:
            runtime.loop.soon(runtime.arm)
