"""What rmw_zenoh attaches to every sample: its number, its time, and who sent it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

__all__ = ["Attachment", "read_attachment"]

_PLAIN: Final = struct.Struct("<qqB16s")
_GID_LENGTH: Final = 16
# Releases before 2025-04 wrote the names of the values too.
_NAMED: Final = struct.Struct("<16sq17sq11sB16s")
_NAMES: Final = (b"\x0fsequence_number", b"\x10source_timestamp", b"\x0asource_gid")


@dataclass(frozen=True, slots=True)
class Attachment:
    """The three values of an attachment."""

    sequence_number: int
    """Counted by each publisher from 1."""
    source_timestamp: int
    """Nanoseconds since 1970, by the publisher's clock."""
    gid: bytes
    """16 bytes that name the endpoint: a hash of its liveliness token."""

    def __bytes__(self) -> bytes:
        """As current releases write it."""
        return _PLAIN.pack(self.sequence_number, self.source_timestamp, _GID_LENGTH, self.gid)


def read_attachment(data: bytes) -> Attachment | None:
    """The values of an attachment, or None if it is not one of rmw_zenoh's."""
    if len(data) == _PLAIN.size:
        number, time, length, gid = _PLAIN.unpack(data)
        return Attachment(number, time, gid) if length == _GID_LENGTH else None
    if len(data) == _NAMED.size:
        first, number, second, time, third, length, gid = _NAMED.unpack(data)
        if (first, second, third) == _NAMES and length == _GID_LENGTH:
            return Attachment(number, time, gid)
    return None
