"""Keys of ROS 2 data, tokens of its graph, and what is attached to its samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.ros2.attachment import Attachment, read_attachment
from zenlake.ros2.bridge import parse_bridge_token
from zenlake.ros2.names import DataKey, parse_key, ros_type, wire_type
from zenlake.ros2.tokens import EntityKind, endpoint_token, gid_of, parse_token

STRING = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
CHATTER = f"0/robot1/chatter/std_msgs::msg::dds_::String_/{STRING}"
TALKER = (
    "@ros2_lv/2/8b20917502ee955ac4476e0266340d5c/0/10/MP/%/%/talker/%chatter/"
    f"std_msgs::msg::dds_::String_/{STRING}/::,7:,:,:,,"
)


def test_a_key_is_read_from_its_end() -> None:
    assert parse_key(CHATTER) == DataKey(0, "/robot1/chatter", "std_msgs/msg/String", STRING)


def test_humble_writes_no_hash() -> None:
    found = parse_key("7/tf/tf2_msgs::msg::dds_::TFMessage_/TypeHashNotSupported")
    assert found == DataKey(7, "/tf", "tf2_msgs/msg/TFMessage", None)
    assert str(found) == "7/tf/tf2_msgs::msg::dds_::TFMessage_/TypeHashNotSupported"


@pytest.mark.parametrize("below", ["_buf_cpu", "_buf/ac170f31eadcd9ff0cd86d7a17907d1c"])
def test_buffers_belong_to_the_key_above_them(below: str) -> None:
    found = parse_key(f"{CHATTER}/{below}")
    assert found is not None
    assert found.topic == "/robot1/chatter"
    assert found.base == CHATTER
    assert str(found) == f"{CHATTER}/{below}"


@pytest.mark.parametrize(
    "key",
    [
        "robot/7/pose",
        "0/a/std_msgs::msg::dds_::String_",
        f"0/std_msgs::msg::dds_::String_/{STRING}",
        f"x/a/std_msgs::msg::dds_::String_/{STRING}",
        f"0/a/std_msgs::String/{STRING}",
        "0/a/std_msgs::msg::dds_::String_/RIHS01_abc",
        "_buf_cpu",
        "",
    ],
)
def test_other_keys_are_no_data_of_ros(key: str) -> None:
    assert parse_key(key) is None


names = st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), min_size=1, max_size=4)


@given(st.integers(0, 232), names, st.sampled_from(["", "cpu", "ab" * 16]))
def test_a_key_that_is_written_reads_as_it_was(domain: int, name: list[str], buffer: str) -> None:
    key = DataKey(domain, "/" + "/".join(name), "pkg_a/msg/B2", STRING, buffer)
    assert parse_key(str(key)) == key


@given(st.text(max_size=60))
def test_any_text_is_a_key_of_ros_or_none(text: str) -> None:
    found = parse_key(text)
    assert found is None or str(found).split("/")[1:] == text.split("/")[1:]
    parse_token(f"@ros2_lv/{text}")


def test_types_have_two_spellings() -> None:
    assert ros_type("nav_msgs::msg::dds_::Odometry_") == "nav_msgs/msg/Odometry"
    assert wire_type("nav_msgs/msg/Odometry") == "nav_msgs::msg::dds_::Odometry_"
    with pytest.raises(ValueError, match="write package/msg/Name"):
        wire_type("Odometry")


def test_a_token_names_node_topic_type_and_quality() -> None:
    found = parse_token(TALKER)
    assert found is not None
    assert (found.kind, found.domain, found.node) == (EntityKind.PUBLISHER, 2, "/talker")
    assert (found.topic, found.type, found.hash) == ("/chatter", "std_msgs/msg/String", STRING)
    assert str(found.qos) == "reliable volatile keep_last(7)"
    assert found.data_key == f"2/chatter/std_msgs::msg::dds_::String_/{STRING}"


def test_a_token_of_a_node_has_no_topic() -> None:
    found = parse_token("@ros2_lv/0/ab/0/0/NN/%/%robot1/nav")
    assert found is not None
    assert (found.kind, found.node, found.topic) == (EntityKind.NODE, "/robot1/nav", "")


def test_quality_that_is_not_understood_is_the_default() -> None:
    odd = TALKER.replace("::,7:,:,:,,", "2:1:99,many:,:,:,,")
    found = parse_token(odd)
    assert found is not None
    assert str(found.qos) == "best_effort transient_local keep_last(42)"


def test_the_gid_of_an_endpoint_is_a_hash_of_its_token() -> None:
    assert gid_of(TALKER).hex() == "ac170f31eadcd9ff0cd86d7a17907d1c"


def test_a_token_of_our_own_reads_as_any_other() -> None:
    token = endpoint_token(
        EntityKind.SUBSCRIPTION,
        3,
        "abcd",
        (0, 4),
        "/fleet/recorder",
        "/cam/image",
        "sensor_msgs/msg/Image",
        STRING,
        backends="backends:cpu:",
    )
    assert token == (
        "@ros2_lv/3/abcd/0/4/MS/%/%fleet/recorder/%cam%image/"
        f"sensor_msgs::msg::dds_::Image_/{STRING}/::,:,:,:,,/backends:cpu:"
    )
    found = parse_token(token)
    assert found is not None
    assert (found.kind, found.node, found.topic) == (
        EntityKind.SUBSCRIPTION,
        "/fleet/recorder",
        "/cam/image",
    )
    assert found.backends == "backends:cpu:"


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**62), st.binary(min_size=16, max_size=16))
def test_attachments_of_both_forms_say_the_same(number: int, time: int, gid: bytes) -> None:
    told = Attachment(number, time, gid)
    assert len(bytes(told)) == 33
    assert read_attachment(bytes(told)) == told
    named = b"".join(
        [
            b"\x0fsequence_number" + number.to_bytes(8, "little", signed=True),
            b"\x10source_timestamp" + time.to_bytes(8, "little", signed=True),
            b"\x0asource_gid" + b"\x10" + gid,
        ]
    )
    assert read_attachment(named) == told


def test_an_attachment_has_number_time_and_gid_in_this_order() -> None:
    """As rmw_zenoh serialises it: two little-endian numbers, a length and 16 bytes."""
    written = "0100000000000000 0002000000000000 10 000102030405060708090a0b0c0d0e0f"
    assert bytes(Attachment(1, 0x200, bytes(range(16)))) == bytes.fromhex(written)
    assert read_attachment(bytes.fromhex(written)) == Attachment(1, 0x200, bytes(range(16)))
    assert read_attachment(bytes.fromhex(written.replace(" 10 ", " 0f "))) is None


@given(st.binary(max_size=80))
def test_other_attachments_are_none_of_ours(data: bytes) -> None:
    found = read_attachment(data)
    assert found is None or len(data) in (33, 80)


def test_the_token_of_a_bridge_says_the_type_of_a_key() -> None:
    found = parse_bridge_token("@ros2_lv/ab12/MP/r1§tf_static/tf2_msgs§msg§TFMessage/:1:1:0,5")
    assert found is not None
    assert (found.key, found.topic, found.type) == (
        "r1/tf_static",
        "/r1/tf_static",
        "tf2_msgs/msg/TFMessage",
    )
    assert str(found.qos) == "reliable transient_local keep_last(5)"
    assert parse_token("@ros2_lv/ab12/MP/r1§tf_static/tf2_msgs§msg§TFMessage/:1:1:0,5") is None
    plain = parse_bridge_token("@ros2_lv/ab12/MP/tf/tf2_msgs§msg§TFMessage/K:::")
    assert plain is not None
    assert str(plain.qos) == "best_effort volatile keep_last(1)"


@pytest.mark.parametrize(
    "token",
    [
        TALKER,
        "@ros2_lv/ab12",
        "@ros2_lv/ab12/MS/tf/tf2_msgs§msg§TFMessage/:::",
        "@ros2_lv/ab12/SS/add/x§srv§Add",
        "@ros2_lv/zz/MP/tf/tf2_msgs§msg§TFMessage/:::",
        "@ros2_lv/ab12/MP/tf§/tf2_msgs§msg§TFMessage/:::",
        "@ros2_lv/ab12/MP/tf/tf2_msgs/:::",
    ],
)
def test_other_tokens_are_none_of_a_bridged_publisher(token: str) -> None:
    assert parse_bridge_token(token) is None
