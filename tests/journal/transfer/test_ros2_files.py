"""MCAP files with types of ROS 2: read by the reader of ROS tools, and taken in from its writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2.writer import Writer
from rosbags.typesys import Stores, get_typestore

from tests.journal.heard import Row
from tests.journal.written import write_rows
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.transfer.export import to_mcap
from zenlake.journal.transfer.imports import from_mcap
from zenlake.ros2.definitions import Definitions, described_by_text
from zenlake.ros2.message_text import message_text
from zenlake.ros2.names import DataKey

STORE = get_typestore(Stores.ROS2_JAZZY)
PART = "shop/msg/Part"
PART_TEXT = "string<=9 name\nfloat32[2] size\nuint8[<=4] code\nstd_msgs/Header[] seen\n"


def twist(x: float) -> bytes:
    vector = STORE.types["geometry_msgs/msg/Vector3"]
    made = STORE.types["geometry_msgs/msg/Twist"](
        linear=vector(x=x, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=1.0)
    )
    return bytes(STORE.serialize_cdr(made, made.__msgtype__))


def key(topic: str, type: str) -> str:
    return str(DataKey(0, topic, type, STORE.hash_rihs01(type)))


def test_the_reader_of_ros_tools_opens_what_was_exported_and_it_comes_back(tmp_path: Path) -> None:
    name = key("/r1/cmd_vel", "geometry_msgs/msg/Twist")
    unknown = f"0/odd/shop::msg::dds_::Odd_/RIHS01_{'0' * 64}"
    rows = [
        Row(name, hlc=1, value=twist(1.5)),
        Row("plain", hlc=2, value=b"x"),
        Row(unknown, hlc=3, value=b"\0\1\0\0?"),
        Row(name, hlc=4, value=twist(-2.0)),
    ]
    journal = write_rows(tmp_path / "from", rows)
    file = tmp_path / "x.mcap"
    assert to_mcap(journal, file) == 4
    with file.open("rb") as data:
        reader = make_reader(data, decoder_factories=[DecoderFactory()])
        seen: list[Any] = list(reader.iter_decoded_messages(topics=["/r1/cmd_vel"]))
    assert [one.decoded_message.linear.x for one in seen] == [1.5, -2.0]
    assert {one.schema.name for one in seen} == {"geometry_msgs/msg/Twist"}
    with JournalWriter.open(tmp_path / "to", partitions=1) as writer:
        assert from_mcap(writer, file) == 4
    back = [
        row["key"] for batch in Journal.open(tmp_path / "to").scan() for row in batch.to_pylist()
    ]
    assert sorted(back) == sorted(row.key for row in rows)


def test_topics_of_a_bag_get_the_keys_that_rmw_zenoh_gives_them(tmp_path: Path) -> None:
    file = tmp_path / "bag.mcap"
    with file.open("wb") as data:
        writer: Any = Writer(data)
        schema = writer.register_msgdef("std_msgs/msg/String", "string data")
        writer.write_message("/chatter", schema, {"data": "hello"}, log_time=10, publish_time=9)
        writer.finish()
    with JournalWriter.open(tmp_path / "to", partitions=1) as taken:
        assert from_mcap(taken, file) == 1
    (row,) = [row for batch in Journal.open(tmp_path / "to").scan() for row in batch.to_pylist()]
    assert row["key"] == key("/chatter", "std_msgs/msg/String")
    said: Any = STORE.deserialize_cdr(row["value"], "std_msgs/msg/String")
    assert said.data == "hello"


@pytest.mark.parametrize("name", sorted(STORE.fielddefs)[::9])
def test_a_text_describes_the_type_that_it_was_written_from(name: str) -> None:
    described = Definitions("jazzy").find(name, None)
    assert described is not None
    again = described_by_text(message_text(described), name)
    assert again.hash == described.hash == STORE.hash_rihs01(name)


def test_types_that_only_a_file_describes_are_known_to_who_is_given_its_folder(
    tmp_path: Path,
) -> None:
    part = described_by_text(PART_TEXT, PART)
    assert described_by_text(message_text(part), PART) == part
    given = Definitions()
    given.add(part)
    name = str(DataKey(0, "/part", PART, part.hash))
    journal = write_rows(tmp_path / "j", [Row(name, hlc=1, value=b"\0\1\0\0")])
    to_mcap(journal, tmp_path / "parts.mcap", definitions=given)
    found: Any = Definitions()
    assert found.add_folder(tmp_path) == 1
    assert found.find(PART, part.hash) == part
