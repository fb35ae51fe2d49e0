"""One number as a payload of JSON, of protobuf and of ROS 2, by libraries that are not ours.

count/…      JSON          {"n": 7}                      table `counter`
proto/…      protobuf      message count.Number          table `proto`
0/count/r0/… ROS 2         geometry_msgs/PointStamped    table `count_r0`, of itself
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
POINT = "geometry_msgs/msg/PointStamped"
ROS2_KEY = f"0/count/r0/geometry_msgs::msg::dds_::PointStamped_/{STORE.hash_rihs01(POINT)}"
GID = bytes(range(1, 17))
MESSAGE = "count.Number"

#: Of each table, where its number is, in words that every engine knows.
FIELDS = {"counter": "t.n", "proto": "t.n", "count_r0": "t.point['x']"}
#: The same, as `rollups` names it.
ROLLED = {"counter": "n", "proto": "n", "count_r0": "point.x"}

#: Every so many numbers under a key of JSON one is said otherwise.
POISON = 40

_FIELD = descriptor_pb2.FieldDescriptorProto
_FILE = descriptor_pb2.FileDescriptorProto(name="count.proto", package="count", syntax="proto3")
_FILE.message_type.add(name="Number").field.add(
    name="n", number=1, type=_FIELD.TYPE_INT64, label=_FIELD.LABEL_OPTIONAL
)
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_FILE)
_NUMBER: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(MESSAGE))


def config(folder: Path, *more: str) -> str:
    """A configuration with the tables, rollups and Iceberg on; descriptors go into a folder."""
    path = folder / "count.pb"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[_FILE]).SerializeToString())
    tables = f"""counter: {{format: "count/${{who}}"}},
        proto: {{format: "proto/${{who}}", type: {{descriptors: "{path}"}}}}"""
    parts = (f"tables: {{{tables}}}", 'rollups: {every: "1s"}', "iceberg: true", *more)
    return f"{{{', '.join(parts)}}}"


def table_of_key(key: str) -> str:
    """The typed table of a key."""
    return {"c": "counter", "p": "proto", "0": "count_r0"}[key[0]]


def table_of(key: str, number: int) -> str:
    """The table that a number belongs into."""
    table = table_of_key(key)
    return "quarantine" if table == "counter" and number % POISON == POISON - 1 else table


def encoding_of(key: str) -> str:
    """What the samples of a key say of their payloads."""
    names = {
        "counter": "application/json",
        "proto": f"application/protobuf;{MESSAGE}",
        "count_r0": "zenoh/bytes",
    }
    return names[table_of_key(key)]


def payload_of(key: str, number: int) -> bytes:
    """A number, as a key has it."""
    table = table_of(key, number)
    if table == "quarantine":
        return b"oops %d" % number
    if table == "counter":
        return b'{"n":%d}' % number
    if table == "proto":
        return bytes(_NUMBER(n=number).SerializeToString())
    types = STORE.types
    stamp = types["builtin_interfaces/msg/Time"](sec=1_790_000_000 + number, nanosec=1)
    point = types[POINT](
        header=types["std_msgs/msg/Header"](stamp=stamp, frame_id="map"),
        point=types["geometry_msgs/msg/Point"](x=float(number), y=0.5, z=-1.0),
    )
    return bytes(STORE.serialize_cdr(point, POINT))


def number_in(key: str, payload: bytes) -> int:
    """The number of a payload."""
    table = table_of_key(key)
    if table == "counter":
        text = payload.decode()
        return int(text[5:] if text.startswith("oops ") else json.loads(text)["n"])
    if table == "proto":
        return int(_NUMBER.FromString(payload).n)
    point: Any = STORE.deserialize_cdr(payload, POINT)
    return int(point.point.x)


def attached(number: int) -> bytes:
    """What rmw_zenoh attaches: a number, a time, and 16 bytes that name the publisher."""
    return struct.pack("<qqB16s", number, 1_790_000_000_000_000_000 + number, 16, GID)
