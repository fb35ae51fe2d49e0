"""The low-pass filter: messages above a size are dropped.

The size of a message is its payload and attachment together; a deletion has an attachment only, a
query may have a body, and an error counts as a reply. The smallest limit counts among the
filters whose key includes the message's key, and a message of exactly that size passes.

Inclusion is read as what it says, not as Eclipse Zenoh finds it (see `access`): a limit protects,
and it may well protect a key more.
"""

from __future__ import annotations

from typing import Final, final

from zenlake.config.model_interceptors import LowPassFilter
from zenlake.keys.tree import KeyTree
from zenlake.routing.policy.messages import KINDS, REPLY, flows_of
from zenlake.routing.policy.subject import Subject

__all__ = ["NO_LIMIT", "Limit", "LowPass"]

NO_LIMIT: Final = -1
_SIZED: Final = REPLY + 1
"""Put, delete, query and reply have a size."""


@final
class Limit:
    """The largest size of one filter."""

    __slots__ = ("key_expr", "label", "size")

    def __init__(self, size: int, key_expr: str, label: str) -> None:
        """`label`: the filter that it belongs to."""
        self.size: int = size
        self.key_expr: str = key_expr
        self.label: str = label

    def sentence(self) -> str:
        """What it does, in one line."""
        return f"low-pass filter {self.label} drops above {self.size} bytes by {self.key_expr}"


@final
class LowPass:
    """The limits of one neighbour in one flow."""

    __slots__ = ("_limits", "kinds")

    def __init__(self, filters: tuple[LowPassFilter, ...], who: Subject, flow: int) -> None:
        """Take the filters that concern the neighbour and the flow."""
        #: A bit for each kind of message that has a limit.
        self.kinds: int = 0
        self._limits: list[KeyTree[Limit]] = [KeyTree() for _ in range(_SIZED)]
        for number, item in enumerate(filters, start=1):
            if flow not in flows_of(item.flows):
                continue
            if not who.is_among(item.interfaces, item.link_protocols):
                continue
            label = f"'{item.id}'" if item.id is not None else f"number {number}"
            for message in item.messages:
                kind = KINDS.index(message)
                self.kinds |= 1 << kind
                for key_expr in item.key_exprs:
                    text = str(key_expr)
                    before = self._limits[kind].get(text)
                    if before is None or item.size_limit < before.size:
                        self._limits[kind].insert(text, Limit(item.size_limit, text, label))

    def limit_of(self, kind: int, key: str) -> Limit | None:
        """The smallest limit for messages of a kind on a key, or None if they may have any size."""
        if kind >= _SIZED:
            return None
        smallest: Limit | None = None
        for entry in self._limits[kind].including(key):
            if smallest is None or entry.value.size < smallest.size:
                smallest = entry.value
        return smallest
