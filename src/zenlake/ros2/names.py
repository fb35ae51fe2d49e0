"""The keys that ROS 2 data travels on, and the names of types.

rmw_zenoh puts topics and services on `<domain>/<name>/<type>/<hash>`. The name may hold `/`, so
a key is read from its end. New distributions write some messages below that key instead, on
`…/_buf_cpu`, and on `…/_buf/<gid>` for one subscriber.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["BUFFER_CPU", "NO_HASH", "DataKey", "parse_key", "ros_type", "wire_type"]

NO_HASH: Final = "TypeHashNotSupported"
"""What Humble writes where others write a hash."""

BUFFER_CPU: Final = "_buf_cpu"
_BUFFER_OF: Final = "_buf"
_DOMAIN: Final = re.compile(r"\d{1,10}", re.ASCII)
_HASH: Final = re.compile(r"RIHS\d\d_[0-9a-f]{64}", re.ASCII)
_GID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_WIRE_TYPE: Final = re.compile(r"(\w+)::(msg|srv|action)::dds_::(\w+)_", re.ASCII)
_ROS_TYPE: Final = re.compile(r"(\w+)/(msg|srv|action)/(\w+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DataKey:
    """What the key of a sample of rmw_zenoh says."""

    domain: int
    topic: str
    """The fully qualified name: `/robot1/chatter`."""
    type: str
    """As ROS writes it: `std_msgs/msg/String`."""
    hash: str | None
    """`RIHS01_…`; None where the distribution has no hashes."""
    buffer: str = ""
    """Empty on the key of the topic, `cpu` or a gid in hexadecimal digits below it."""

    @property
    def base(self) -> str:
        """The key of the topic itself, whatever buffer this one is of."""
        name = self.topic.strip("/")
        return f"{self.domain}/{name}/{wire_type(self.type)}/{self.hash or NO_HASH}"

    def __str__(self) -> str:
        """The key."""
        if not self.buffer:
            return self.base
        below = BUFFER_CPU if self.buffer == "cpu" else f"{_BUFFER_OF}/{self.buffer}"
        return f"{self.base}/{below}"


def parse_key(key: str) -> DataKey | None:
    """What a key says, or None if it is not one of rmw_zenoh's."""
    chunks = key.split("/")
    buffer = ""
    if chunks[-1] == BUFFER_CPU:
        buffer = "cpu"
        del chunks[-1:]
    elif len(chunks) > 2 and chunks[-2] == _BUFFER_OF and _GID.fullmatch(chunks[-1]):
        buffer = chunks[-1]
        del chunks[-2:]
    if len(chunks) < 4 or not _DOMAIN.fullmatch(chunks[0]):
        return None
    hash = chunks[-1]
    if hash != NO_HASH and not _HASH.fullmatch(hash):
        return None
    type = ros_type(chunks[-2])
    if type is None:
        return None
    topic = "/" + "/".join(chunks[1:-2])
    return DataKey(int(chunks[0]), topic, type, None if hash == NO_HASH else hash, buffer)


def ros_type(wire: str) -> str | None:
    """`std_msgs/msg/String` for `std_msgs::msg::dds_::String_`; None if it is no such name."""
    match = _WIRE_TYPE.fullmatch(wire)
    return None if match is None else f"{match[1]}/{match[2]}/{match[3]}"


def wire_type(ros: str) -> str:
    """`std_msgs::msg::dds_::String_` for `std_msgs/msg/String`."""
    match = _ROS_TYPE.fullmatch(ros)
    if match is None:
        raise ValueError(f"'{ros}' is no type of ROS; write package/msg/Name")
    return f"{match[1]}::{match[2]}::dds_::{match[3]}_"
