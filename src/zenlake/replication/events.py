"""The events of a replication log, and their bytes.

An event says that a key was put or deleted, or a key expression with wildcards. The name of a key
is what `strip_prefix` leaves of it, and None for the prefix itself; expressions stay whole.

    EventMetadata   name: Option<str>, timestamp, base: Option<timestamp>, action
    timestamp       u64 NTP64, 16 bytes id
    action          u32: 0 put, 1 delete, 2 put of many (str), 3 deletion of many (str)
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, final

from xxhash import xxh3_64_intdigest

from zenlake.errors import DecodeError
from zenlake.replication.bincode import BincodeReader, u32, u64, written_text

__all__ = ["SMALLEST", "Action", "Event", "decode_event", "encode_event"]

#: The bytes of the shortest event: no name, no base.
SMALLEST: Final = 1 + 24 + 1 + 4


class Action(IntEnum):
    """What happened, with its number on the wire."""

    PUT = 0
    DELETE = 1
    PUT_MANY = 2
    DELETE_MANY = 3


@final
class Event:
    """The newest that happened to a key, or to a key expression with wildcards."""

    __slots__ = ("action", "base_id", "base_time", "fingerprint", "id", "name", "time")

    def __init__(
        self,
        name: str | None,
        action: Action,
        time: int,
        id: bytes,
        base_time: int = 0,
        base_id: bytes = b"",
    ) -> None:
        """At a timestamp; the base is when the key itself was last put or deleted.

        Without a base, which is that of every event of many keys, its id is empty.
        """
        self.name = name
        self.action = action
        self.time = time
        self.id = id
        self.base_time = base_time
        self.base_id = base_id
        #: Of the name and the timestamp, as Eclipse computes it.
        self.fingerprint = xxh3_64_intdigest(
            (name or "").encode() + time.to_bytes(8, "little") + id.ljust(16, b"\0")
        )

    @property
    def stamp(self) -> tuple[int, bytes]:
        """When it happened, and by whose clock; events are ordered by it."""
        return self.time, self.id

    @property
    def base(self) -> tuple[int, bytes]:
        """When the key itself was last put: a put of many may have replaced its value since."""
        return (self.base_time, self.base_id) if self.base_id else (self.time, self.id)

    @property
    def many(self) -> bool:
        """Whether it is of an expression with wildcards."""
        return self.action >= Action.PUT_MANY

    def __eq__(self, other: object) -> bool:
        """Whether all parts are equal."""
        return isinstance(other, Event) and (
            self.name,
            self.action,
            self.stamp,
            self.base_time,
            self.base_id,
        ) == (other.name, other.action, other.stamp, other.base_time, other.base_id)

    def __hash__(self) -> int:
        """Equal events have equal fingerprints."""
        return self.fingerprint

    def __repr__(self) -> str:
        """What happened to what, and when."""
        return f"<Event {self.action.name} {self.name} at {self.time}/{self.id.hex()}>"


def encode_event(event: Event) -> bytes:
    """The bytes of an event."""
    parts = [
        b"\0" if event.name is None else b"\1" + written_text(event.name),
        u64(event.time) + event.id.ljust(16, b"\0"),
        b"\1" + u64(event.base_time) + event.base_id.ljust(16, b"\0") if event.base_id else b"\0",
        u32(event.action),
    ]
    if event.many:
        parts.append(written_text(event.name or ""))
    return b"".join(parts)


def decode_event(reader: BincodeReader) -> Event:
    """The next event of a message."""
    name = reader.text() if reader.flag() else None
    time, id = reader.u64(), _id(reader)
    base_time, base_id = (reader.u64(), _id(reader)) if reader.flag() else (0, b"")
    number = reader.u32()
    if number > Action.DELETE_MANY:
        raise DecodeError(f"replication message has an unknown action {number}")
    action = Action(number)
    if action >= Action.PUT_MANY:
        expr = reader.text()
        if name is None:
            # How Eclipse writes that many keys were updated, and the prefix itself among them.
            action = Action.PUT if action is Action.PUT_MANY else Action.DELETE
        elif expr != name:
            raise DecodeError(f"replication message has the expression '{expr}' for '{name}'")
    return Event(name, action, time, id, base_time, base_id)


def _id(reader: BincodeReader) -> bytes:
    raw = reader.take(16).rstrip(b"\0")
    if not raw:
        raise DecodeError("replication message has a timestamp of nobody: its id is zero")
    return raw
