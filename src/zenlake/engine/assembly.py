"""The parts of a running node, made as its configuration says: id, node, outboxes, timestamps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from zenlake.clock import Hlc
from zenlake.config.model import Settings
from zenlake.engine.flushing import Flushing
from zenlake.engine.loop import EventLoop
from zenlake.engine.settings import node_settings
from zenlake.engine.shared import SharedOutbox
from zenlake.node.node import Node
from zenlake.node.stamps import Timestamper
from zenlake.transport.outbox import Outbox
from zenlake.transport.turn import Turn


def fresh_zid() -> bytes:
    """A new id for a node: sixteen random bytes, without high zeros."""
    while True:
        zid = os.urandom(16).rstrip(b"\0")
        if zid:
            return zid


def _random() -> float:
    """A number from 0 to below 1, by chance."""
    # Nodes that connect nowhere do without it, and it takes a millisecond to load.
    import random

    return random.random()


def make_node(
    settings: Settings, zid: bytes, hlc: Hlc, make_outbox: Callable[[bool, int], Outbox]
) -> Node:
    """The node as it is configured; where it listens is not known yet."""
    timestamping = settings.timestamping
    stamps: Timestamper | None = None
    if timestamping.enabled:
        stamps = Timestamper(hlc, time.time_ns, timestamping.drop_future_timestamp)
    node = Node(
        node_settings(settings, zid, ()),
        lambda: os.urandom(32),
        _random,
        make_outbox,
        stamps,
    )
    node.clock = time.monotonic
    limits = node.settings.limits
    node.turn = Turn(limits.turn_messages, limits.turn_seconds, time.monotonic)
    return node


class OutboxFactory:
    """Makes the outboxes of a node's links, which threads share."""

    def __init__(self, settings: Settings, loop: EventLoop, flushing: Flushing) -> None:
        """`flushing` is asked by outboxes to have them written on the loop."""
        control = settings.transport.link.tx.queue.congestion_control
        self._wait_before_drop = control.drop.wait_before_drop / 1e6
        self._wait_before_close = control.block.wait_before_close / 1e6
        self._loop = loop
        self._flushing = flushing

    def make(self, stream: bool, depth: int) -> SharedOutbox:
        """An outbox for a link; `stream`: batches have a length in front."""
        outbox = SharedOutbox(
            stream,
            depth,
            self._flushing.soon,
            self._loop.is_current,
            self._wait_before_drop,
            self._wait_before_close,
        )
        if self._flushing.looks:
            outbox.request.look_later = self._flushing.later
        return outbox
