"""CDR to Arrow beside rosbags, whose reader is the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.serde.errors import SerdeError
from rosbags.typesys import Stores, get_typestore

from zenlake.errors import DecodeError
from zenlake.ros2 import lockstep
from zenlake.ros2.cdr import FEW, CdrDecoder
from zenlake.ros2.definitions import DISTRIBUTIONS, Definitions, described_by_text
from zenlake.ros2.layout import SLACK

STORE = get_typestore(Stores.ROS2_JAZZY)
GOLDEN = Path(__file__).parent.parent / "golden/ros2-cdr.json"
TYPES = (
    "std_msgs/msg/String",
    "std_msgs/msg/UInt64",
    "sensor_msgs/msg/NavSatFix",
    "sensor_msgs/msg/JointState",
    "sensor_msgs/msg/PointCloud2",
    "tf2_msgs/msg/TFMessage",
    "diagnostic_msgs/msg/DiagnosticArray",
)
_NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False),
    **{f"int{n}": st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}": st.integers(0, 2**n - 1) for n in (8, 16, 32, 64)},
    # rosbags takes them for signed, ROS for unsigned.
    "byte": st.integers(0, 127),
    "octet": st.integers(0, 127),
    "char": st.integers(0, 255),
    "string": st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6
    ),
}
_NUMPY = {"bool": np.bool_, "byte": np.uint8, "octet": np.uint8, "char": np.uint8}


def messages(name: str) -> st.SearchStrategy[Any]:
    """Any message of a type, for rosbags to write."""
    fields = {field: values(told) for field, told in STORE.fielddefs[name][1]}
    return st.builds(STORE.types[name], **fields)


def values(told: Any) -> st.SearchStrategy[Any]:
    kind, rest = int(told[0]), told[1]
    if kind == 1:
        return _NUMBERS[rest[0]]
    if kind == 2:
        return messages(rest)
    inner, count = rest
    least, most = (count, count) if kind == 3 else (0, count or 3)
    items = st.lists(values(inner), min_size=least, max_size=most)
    if int(inner[0]) == 1 and inner[1][0] != "string":
        dtype = _NUMPY.get(inner[1][0]) or np.dtype(inner[1][0])
        return items.map(lambda numbers: np.array(numbers, dtype))
    return items


def plain(value: Any) -> Any:
    """What rosbags read, as Arrow says it."""
    if hasattr(value, "__msgtype__"):
        names = [name for name, _ in STORE.fielddefs[value.__msgtype__][1]]
        pairs = {name: plain(getattr(value, name)) for name in names}
        return tuple(pairs.values()) if value.__msgtype__.endswith("/KeyValue") else pairs
    if isinstance(value, np.ndarray):
        return value.tobytes() if value.dtype == np.uint8 else value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def decoder(name: str) -> CdrDecoder:
    description = Definitions().find(name, STORE.hash_rihs01(name))
    assert description is not None
    return CdrDecoder(description)


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=6)
@given(data=st.data())
def test_payloads_say_what_rosbags_reads(name: str, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(messages(name), min_size=1, max_size=3))
    # Often enough for a table of bytes, and in both orders.
    written = [
        bytes(STORE.serialize_cdr(one, name, little_endian=n % 3 != 0))
        for n, one in enumerate(drawn * FEW)
    ]
    read = decoder(name).decode(written)
    assert not read.refused
    assert read.places.tolist() == list(range(len(written)))
    read.values.validate(full=True)
    expected = [plain(STORE.deserialize_cdr(one, name)) for one in written]
    assert read.values.to_pylist() == expected


def read_by_rosbags(payload: bytes, name: str) -> Any:
    """rosbags refuses bytes after a message, which the serializer of ROS leaves there."""
    for end in range(len(payload), len(payload) - SLACK, -1):
        try:
            return plain(STORE.deserialize_cdr(payload[:end], name))
        except SerdeError:
            continue
    raise AssertionError(f"rosbags does not read {name}: {payload.hex()}")


@pytest.mark.parametrize("copies", [1, FEW])
def test_what_the_serializer_of_ros_wrote_is_read_field_by_field(copies: int) -> None:
    """Written by `rclpy.serialization` of rclpy 9.1 (Fast CDR)."""
    read: dict[str, list[Any]] = {}
    for one in json.loads(GOLDEN.read_text()):
        name, payload = one["type"], bytes.fromhex(one["cdr"])
        found = decoder(name).decode([payload] * copies)
        assert not found.refused, (name, found.refused)
        assert found.values.to_pylist() == [read_by_rosbags(payload, name)] * copies, name
        read.setdefault(name, []).append(found.values[0].as_py())
    assert len(read) == 12
    texts = [one["data"] for one in read["std_msgs/msg/String"]]
    assert texts == ["", "Hello World: 1", "grüße ☃"]
    (twist,) = read["geometry_msgs/msg/Twist"]
    assert (twist["linear"]["x"], twist["angular"]["z"]) == (1.5, -0.25)
    assert [one["effort"] for one in read["sensor_msgs/msg/JointState"]] == [[0.0], [1.0], [3.0]]
    (diagnosed,) = read["diagnostic_msgs/msg/DiagnosticArray"]
    assert [status["name"] for status in diagnosed["status"]] == ["motor", ""]


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=6)
@given(data=st.data())
def test_broken_payloads_are_refused_and_disturb_no_other(name: str, data: st.DataObject) -> None:
    good = bytes(STORE.serialize_cdr(data.draw(messages(name)), name))
    broken = data.draw(
        st.one_of(
            st.binary(max_size=40),
            st.integers(0, len(good) - 1).map(lambda n: good[:n]),
            st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)).map(
                lambda at: good[: at[0]] + bytes([at[1]]) + good[at[0] + 1 :]
            ),
        )
    )
    read = decoder(name).decode([good, broken, good] * FEW)
    assert not read.refused.keys() & {n for n in range(3 * FEW) if n % 3 != 1}
    assert len(read.values) + len(read.refused) == 3 * FEW
    read.values.validate(full=True)
    kept = dict(zip(read.places.tolist(), read.values.to_pylist(), strict=True))
    assert kept[0] == kept[3 * FEW - 1]


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=6)
@given(data=st.data())
def test_side_by_side_says_what_one_by_one_does(name: str, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(messages(name), min_size=1, max_size=4))
    good = [
        bytes(STORE.serialize_cdr(one, name, little_endian=n % 2 == 0))
        for n, one in enumerate(drawn)
    ]
    at, byte = data.draw(st.tuples(st.integers(0, len(good[0]) - 1), st.integers(0, 255)))
    changed = good[0][:at] + bytes([byte]) + good[0][at + 1 :]
    payloads = [*good * (2 * lockstep.FEW), changed, good[0][:at], b""]
    reads = decoder(name)
    found, left = lockstep.read_side_by_side(reads.plan, payloads)
    alone = {one: reads.decode([one]) for one in set(payloads)}
    places = [int(n) for n in left]
    for values, which in found:
        values.validate(full=True)
        assert values.type == reads.type
        singly = [alone[payloads[n]] for n in which.tolist()]
        assert not any(one.refused for one in singly)
        assert pa.concat_arrays([one.values for one in singly]).to_pylist() == values.to_pylist()
        places += which.tolist()
    assert sorted(places) == list(range(len(payloads)))
    # What is whole and has companions is not left to the slow way.
    assert set(places[: len(left)]) <= set(range(len(payloads) - 3, len(payloads)))


def test_text_that_is_text_only_with_its_neighbour_is_refused() -> None:
    name = "std_msgs/msg/String"
    halves = [b"\0\1\0\0\2\0\0\0\xc3\0", b"\0\1\0\0\2\0\0\0\xa9\0"] * lockstep.FEW
    assert len(decoder(name).decode(halves).refused) == len(halves)
    other = [bytes(STORE.serialize_cdr(STORE.types[name](data="x" * n), name)) for n in range(99)]
    read = decoder(name).decode([*other, *halves])
    assert sorted(read.refused) == list(range(99, 99 + len(halves)))
    assert [one["data"] for one in read.values.to_pylist()] == ["x" * n for n in range(99)]


def test_one_layout_or_many_makes_no_difference() -> None:
    name = "tf2_msgs/msg/TFMessage"
    written = [
        bytes.fromhex("00010000") + b"\0\0\0\0",
        *(bytes(STORE.serialize_cdr(_tf(n), name)) for n in range(30)),
    ]
    together = decoder(name).decode(written)
    apart = [decoder(name).decode([one]).values[0] for one in written]
    assert together.values.to_pylist() == [one.as_py() for one in apart]


def _tf(n: int) -> Any:
    types = STORE.types
    zero = types["geometry_msgs/msg/Vector3"](x=float(n), y=0.0, z=0.0)
    turn = types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0)
    one = types["geometry_msgs/msg/TransformStamped"](
        header=types["std_msgs/msg/Header"](
            stamp=types["builtin_interfaces/msg/Time"](sec=n, nanosec=n), frame_id="w" * (n % 3)
        ),
        child_frame_id="base",
        transform=types["geometry_msgs/msg/Transform"](translation=zero, rotation=turn),
    )
    return types["tf2_msgs/msg/TFMessage"](transforms=[one] * (n % 4))


@pytest.mark.parametrize("distribution", [one for one in DISTRIBUTIONS if one != "humble"])
def test_every_type_of_a_distribution_is_known_by_its_hash(distribution: str) -> None:
    store = get_typestore(Stores(f"ros2_{distribution}"))
    for name in store.fielddefs:
        hash = store.hash_rihs01(name)
        found = Definitions().find(name, hash)
        assert found is not None
        assert found.hash == hash
        assert pa.types.is_struct(CdrDecoder(found).type)


def test_a_definition_may_bring_those_that_it_refers_to() -> None:
    text = "Part[] parts\nfloat64 weight\n" + "=" * 80 + "\nMSG: shop/Part\nstring name\nuint8 n\n"
    found = described_by_text(text, "shop/msg/Robot")
    assert [one.name for one in found.referenced] == ["shop/msg/Part"]
    known = Definitions()
    assert known.add(found)
    assert not known.add(found)
    assert known.find("shop/msg/Robot", found.hash) is found
    assert known.find("shop/msg/Robot", "RIHS01_" + "0" * 64) is None


def test_definitions_that_cannot_be_read_are_refused_in_words() -> None:
    with pytest.raises(DecodeError, match="shop/msg/Robot"):
        described_by_text("[[[", "shop/msg/Robot")
    with pytest.raises(DecodeError, match="not described"):
        described_by_text("Unknown thing", "shop/msg/Robot")
