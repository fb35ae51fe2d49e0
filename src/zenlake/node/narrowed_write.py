"""A put or a deletion of many keys whose sender may write only some of them.

A message has one key expression, so no router can pass such a write on as a write of some keys. The
stores of the node that the sender is connected to (storages, recorders) know their keys, and apply
the write to those of them that the sender may write (`engine/narrowed_writes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.sample import Sample, sample_of
from zenlake.routing.policy.gate import WritableKeys
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Put

__all__ = ["NarrowedWrite"]

MOST_KEYS: Final = 100_000
"""Keys of one store that a narrowed write changes at most."""
MOST_BYTES: Final = 64 << 20
"""Bytes of their values together, at most."""


@final
class NarrowedWrite:
    """What a neighbour wrote to many keys, and which of them it may write."""

    __slots__ = ("_push", "_reliable", "_writable", "expr", "sender")

    def __init__(
        self, sender: bytes, expr: str, push: Push, reliable: bool, writable: WritableKeys
    ) -> None:
        """`sender`: the zid of the neighbour; `push`: has its time, and is nobody else's."""
        self.sender: bytes = sender
        self.expr: str = expr
        # It says that a publisher sent one sample; of that number there is none at each key.
        push.body.source_info = None
        push.timestamp_stack = None
        self._push: Push = push
        self._reliable: bool = reliable
        self._writable: WritableKeys = writable

    @property
    def size(self) -> int:
        """How many bytes of values it writes to each key."""
        body = self._push.body
        attachment = body.attachment
        size = len(body.payload) if isinstance(body, Put) else 0
        return size if attachment is None else size + len(attachment)

    def samples(self, keys: Iterable[str]) -> list[Sample] | None:
        """Return what the sender wrote to those of some keys that it may write.

        None, if they are more than one write may change: then nothing is to be changed.
        """
        writable = self._writable
        permitted = [key for key in keys if writable.lets(key)]
        if len(permitted) > MOST_KEYS or len(permitted) * self.size > MOST_BYTES:
            return None
        push = self._push
        reliable = self._reliable
        return [sample_of(KeyExpr.trusted(key), push, reliable) for key in permitted]
