"""Asking a node what a type is made of: the service `get_type_description` that nodes offer.

A recorder that has never seen a package of a robot learns its types this way, from the robot.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, Final

from zenlake.errors import DecodeError
from zenlake.ros2.cdr import CdrDecoder
from zenlake.ros2.definitions import described_by_text
from zenlake.ros2.description import (
    FieldType,
    Individual,
    MessageField,
    TypeDescription,
)

__all__ = ["SERVICE", "read_reply", "write_request"]

SERVICE: Final = "get_type_description"
"""The last part of the service's name."""

_REPLY: Final = """\
bool successful
string failure_reason
type_description_interfaces/TypeDescription type_description
type_description_interfaces/TypeSource[] type_sources
type_description_interfaces/KeyValue[] extra_information
"""


def write_request(type: str, hash: str) -> bytes:
    """The payload of a query for a type."""
    data = bytearray(b"\x00\x01\x00\x00")
    for text in (type, hash):
        data += bytes(-len(data) % 4)
        raw = text.encode() + b"\0"
        data += struct.pack("<I", len(raw)) + raw
    data.append(0)  # no sources
    return bytes(data)


def read_reply(payload: bytes, hash: str) -> TypeDescription:
    """The description in a reply; one that has not the hash that was asked for is refused."""
    read = _reply().decode([payload])
    if read.refused:
        raise DecodeError(f"not a description of a type: {read.refused[0]}")
    reply = read.values[0].as_py()
    if not reply["successful"]:
        raise DecodeError(f"the node does not describe it: {reply['failure_reason']}")
    page = reply["type_description"]
    description = TypeDescription(
        _individual(page["type_description"]),
        tuple(_individual(one) for one in page["referenced_type_descriptions"]),
    )
    if description.hash != hash:
        raise DecodeError(f"the node described {description.hash}, not {hash}")
    return description


def _individual(page: Any) -> Individual:
    return Individual(
        page["type_name"],
        tuple(
            MessageField(
                one["name"],
                FieldType(
                    one["type"]["type_id"],
                    int(one["type"]["capacity"]),
                    int(one["type"]["string_capacity"]),
                    one["type"]["nested_type_name"],
                ),
            )
            for one in page["fields"]
        ),
    )


@lru_cache(maxsize=1)
def _reply() -> CdrDecoder:
    name = "type_description_interfaces/msg/GetTypeDescriptionReply"
    return CdrDecoder(described_by_text(_REPLY, name))
