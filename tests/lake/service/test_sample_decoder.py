"""One sample decoded for people who look at it: ROS 2, and whatever else the lake reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cbor2
import pytest
import zenoh

from tests.api.sessions import connected, listening, where
from tests.lake.decode.test_ros2 import PART, filled, header, message, said
from tests.waiting import until
from zenlake.errors import LocalError
from zenlake.lake import read_config
from zenlake.lake.decode.ros2_tables import DECODER
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.service.sample_decoder import MOST_ITEMS, SampleDecoder, decoded, table_for
from zenlake.ros2.bridge import BridgedTopic
from zenlake.ros2.definitions import described_by_text
from zenlake.ros2.tokens import RosQoS

CONFIG = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')


def twist(speed: float) -> Any:
    vector = "geometry_msgs/msg/Vector3"
    return message(
        "geometry_msgs/msg/TwistStamped",
        header=header(7),
        twist=message(
            "geometry_msgs/msg/Twist",
            linear=message(vector, x=speed, y=float("nan"), z=0.0),
            angular=message(vector, x=0.0, y=0.0, z=0.25),
        ),
    )


def test_a_sample_is_shown_as_the_row_that_its_table_would_have() -> None:
    (spec,) = CONFIG.tables
    assert table_for(CONFIG.tables, "robot/7/pose") is spec
    assert table_for(CONFIG.tables, "robot/7/other") is None
    told = json.dumps({"x": 1.5, "by": {"name": "ada"}}).encode()
    (row,) = decoded(spec, "robot/7/pose", told, "application/json")
    assert row == {"x": 1.5, "by_name": "ada"}
    with pytest.raises(LocalError, match="payload: "):
        decoded(spec, "robot/7/pose", b"{", "application/json")
    with pytest.raises(LocalError, match="encoding: nobody reads 'video/h261'"):
        decoded(spec, "robot/7/pose", b"{", "video/h261")


def test_what_is_long_is_cut_where_a_person_would_stop_reading() -> None:
    long = cbor2.dumps({"n": list(range(1000)), "text": "x" * 10_000, "bad": float("inf")})
    (row,) = decoded(TypedTable("t", "a/b"), "a/b", long, "application/cbor")
    assert row["n"][MOST_ITEMS:] == [f"… and {1000 - MOST_ITEMS} more"]
    assert len(row["text"]) < 5000
    assert row["bad"] == "Infinity"


@pytest.mark.interop
def test_an_eclipse_client_is_told_what_a_message_of_ros_says(tmp_path: Path) -> None:
    """With a table and without one, by types that are installed and one that is learnt."""
    speed = said("/r1/cmd", "geometry_msgs/msg/TwistStamped", twist(0.5), 1)
    pipeline = filled(tmp_path, [speed], CONFIG)
    part = described_by_text(PART, "shop/msg/Part")
    pipeline.types.learn(part)
    config = zenoh.Config()
    with listening(mode='"router"') as node, connected(node, mode='"client"') as bus:
        decoding = SampleDecoder(bus, pipeline.types, lambda: tuple(pipeline.specs))
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where(node)]))
        with zenoh.open(config) as client:

            def asked(key: str, payload: bytes, encoding: str = "zenoh/bytes") -> dict[str, Any]:
                for reply in client.get(f"@lake/decode/{key}", payload=payload, encoding=encoding):
                    found = reply.ok or reply.err
                    assert found is not None
                    told: dict[str, Any] = json.loads(found.payload.to_bytes())
                    return told
                return {}

            until(lambda: asked(speed.key, speed.value), "the lake answers")
            told = asked(speed.key, speed.value)
            assert told["table"] == "r1_cmd"
            (row,) = told["rows"]
            assert row["twist"]["linear"] == {"x": 0.5, "y": "NaN", "z": 0.0}
            assert row["frame_id"] == "map"
            assert "gid" not in row
            other = said("/r2/cmd", "geometry_msgs/msg/TwistStamped", twist(2.0), 1)
            told = asked(other.key, other.value)
            assert told["table"] is None
            assert told["rows"][0]["twist"]["linear"]["x"] == 2.0
            key = f"{other.key.rpartition('/')[0]}/RIHS01_{'0' * 64}"
            assert "no definition" in asked(key, b"\x00\x01\x00\x00")["error"]
            known = f"0/r1/part/shop::msg::dds_::Part_/{part.hash}"
            whole = b"\x00\x01\x00\x00" + b"\x00\x00\x80?" + bytes(4)
            assert asked(known, whole)["rows"] == [{"load": 1.0, "faults": []}]
            assert asked("robot/7/pose", b'{"x": 1}', "application/json") == {
                "rows": [{"x": 1}],
                "table": "pose",
            }
            # Behind a bridge the key says no type, but its token did.
            assert "encoding" in asked("r9/cmd", speed.value)["error"]
            pipeline.types.bridge(
                BridgedTopic("r9/cmd", "geometry_msgs/msg/TwistStamped", RosQoS())
            )
            told = asked("r9/cmd", speed.value)
            assert (told["table"], told["rows"][0]["twist"]["linear"]["x"]) == (None, 0.5)
            pipeline.specs.append(TypedTable("r9_cmd", "r9/cmd", decoder=DECODER, ros2=True))
            assert asked("r9/cmd", speed.value) == {**told, "table": "r9_cmd"}
            assert "at most" in asked("robot/7/pose", bytes(5 << 20))["error"]
        decoding.close()
