"""Acknowledged puts: a query that carries a value, answered by a storage when it has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.errors import LocalError
from zenlake.keys import IntoKeyExpr, KeyExpr, Selector

if TYPE_CHECKING:
    from zenlake.api.reply import Reply
    from zenlake.clock import Timestamp

__all__ = ["Acknowledgement"]


class Acknowledgement:
    """What storages reply to one acknowledged put; driven by waiting or by awaiting."""

    def __init__(self, key_expr: IntoKeyExpr) -> None:
        """For one key."""
        self._key = KeyExpr.of(key_expr)
        self._refused = ""

    @property
    def selector(self) -> Selector:
        """What is asked."""
        return Selector(self._key, "_ack_put=true")

    def hear(self, reply: Reply) -> Timestamp | None:
        """The timestamp of the put, if this reply acknowledges it."""
        sample = reply.ok
        if sample is not None:
            return sample.timestamp
        error = reply.err
        self._refused = "" if error is None else error.payload.to_string()
        return None

    def failure(self) -> LocalError:
        """Why no reply acknowledged it: what a storage said, or that none answered."""
        if self._refused:
            return LocalError(f"'{self._key}' was not stored: {self._refused}")
        return LocalError(
            f"no storage answered for '{self._key}', so nothing was published: make one with "
            "`zenlake storage add`, or use put"
        )
