"""A stored value, and the records that a volume keeps of it."""

from __future__ import annotations

from typing import Any, NamedTuple, final

from mypy_extensions import mypyc_attr

__all__ = ["Batch", "Entry", "Value", "WideUpdate"]


# Nothing here can lead back to it: Python need not look for that, again and again, in millions.
@mypyc_attr(acyclic=True)
@final
class Value:
    """A payload with its encoding and attachment; without a payload, it lies in the volume."""

    __slots__ = ("attachment", "encoding_id", "payload", "schema")

    def __init__(
        self,
        payload: bytes | None,
        encoding_id: int = 0,
        schema: bytes = b"",
        attachment: bytes | None = None,
    ) -> None:
        """Encoding as on the wire: its number, and its schema if it has one."""
        self.payload: bytes | None = payload
        self.encoding_id: int = encoding_id
        self.schema: bytes = schema
        self.attachment: bytes | None = attachment

    def __eq__(self, other: object) -> bool:
        """Whether all four parts are equal."""
        return isinstance(other, Value) and (
            self.payload,
            self.encoding_id,
            self.schema,
            self.attachment,
        ) == (other.payload, other.encoding_id, other.schema, other.attachment)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """The payload, or that it lies elsewhere."""
        return f"<Value {'in the volume' if self.payload is None else repr(self.payload[:40])}>"


class Entry(NamedTuple):
    """What a storage knows of one key: its newest value, or without one that it was deleted.

    `time` and `id` are the timestamp of the value. `base_time` and `base_id` are those of the
    newest update of this very key: a put with wildcards may have replaced its value since.
    """

    key: str
    time: int
    id: bytes
    base_time: int
    base_id: bytes
    value: Value | None


class WideUpdate(NamedTuple):
    """The newest put and the newest deletion of a key expression with wildcards.

    A part that has not happened has an empty id.
    """

    expr: str
    put_time: int
    put_id: bytes
    value: Value | None
    deleted_time: int
    deleted_id: bytes


class Batch(NamedTuple):
    """What a volume writes in one transaction: all of it, or nothing."""

    entries: list[Entry]
    removed: list[str]
    """Keys of which nothing is known any more."""
    wide: list[WideUpdate]
    forgotten: list[str]
    """Expressions with wildcards whose updates are forgotten."""
    samples: list[Entry]
    """Every sample in the order of arrival, for a volume that keeps history."""

    def size(self) -> int:
        """How many records it has."""
        return (
            len(self.entries)
            + len(self.removed)
            + len(self.wide)
            + len(self.forgotten)
            + len(self.samples)
        )

    def halves(self) -> tuple[Batch, Batch]:
        """The first half of its records, and the other."""
        left: list[list[Any]] = []
        right: list[list[Any]] = []
        room = self.size() // 2
        for records in self:
            left.append(records[:room])
            right.append(records[room:])
            room -= len(left[-1])
        return Batch(*left), Batch(*right)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.entries or self.removed or self.wide or self.forgotten or self.samples)
