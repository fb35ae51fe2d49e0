"""Topics of ROS 2 become tables by themselves, by definitions that their hashes name."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from typer.testing import CliRunner

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.cli.app import application
from zenlake.errors import ConfigError
from zenlake.lake import Pipeline, open, read_config
from zenlake.lake.decode.formats.ros2_shapes import shaped
from zenlake.lake.decode.ros2_tables import table_name
from zenlake.lake.model.config import LakeConfig
from zenlake.ros2.attachment import Attachment
from zenlake.ros2.bridge import parse_bridge_token
from zenlake.ros2.definitions import described_by_text
from zenlake.ros2.names import DataKey

STORE = get_typestore(Stores.ROS2_JAZZY)
PART = "float32 load\nstring[] faults\n"
GID = bytes(range(16))


def message(type: str, /, **fields: Any) -> Any:
    return STORE.types[type](**fields)


def header(second: int, frame: str = "map") -> Any:
    stamp = message("builtin_interfaces/msg/Time", sec=second, nanosec=5)
    return message("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def said(topic: str, name: str, value: Any, number: int, hash: str | None = None) -> Row:
    """A sample as rmw_zenoh publishes it."""
    key = DataKey(0, topic, name, hash or STORE.hash_rihs01(name))
    payload = bytes(STORE.serialize_cdr(value, name))
    attached = bytes(Attachment(number, 1_700_000_000_000_000_000 + number, GID))
    return Row(str(key), payload, float(number), attachment=attached)


def transforms(second: int, count: int) -> Any:
    return message(
        "tf2_msgs/msg/TFMessage",
        transforms=[
            message(
                "geometry_msgs/msg/TransformStamped",
                header=header(second),
                child_frame_id=f"base{n}",
                transform=message(
                    "geometry_msgs/msg/Transform",
                    translation=message("geometry_msgs/msg/Vector3", x=float(second), y=0.5, z=0.0),
                    rotation=message("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0),
                ),
            )
            for n in range(count)
        ],
    )


def image(second: int) -> Any:
    return message(
        "sensor_msgs/msg/Image",
        header=header(second, "camera"),
        height=2,
        width=3,
        encoding="mono8",
        is_bigendian=0,
        step=3,
        data=np.arange(6, dtype=np.uint8),
    )


def cloud(points: list[tuple[float, float, float]]) -> Any:
    field = "sensor_msgs/msg/PointField"
    return message(
        "sensor_msgs/msg/PointCloud2",
        header=header(1),
        height=1,
        width=len(points),
        fields=[
            message(field, name=axis, offset=4 * n, datatype=7, count=1)
            for n, axis in enumerate("xyz")
        ],
        is_bigendian=False,
        point_step=12,
        row_step=12 * len(points),
        data=np.array(points, "<f4").view(np.uint8).ravel(),
        is_dense=True,
    )


def filled(tmp_path: Path, rows: list[Row], config: LakeConfig | None = None) -> Pipeline:
    write(tmp_path / "journal", rows)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), config)
    while pipeline.step().rows or pipeline.behind():
        pass
    pipeline.finish()
    return pipeline


def test_a_topic_that_comes_along_gets_a_table_and_all_that_was_said_before(tmp_path: Path) -> None:
    rows = [said("/tf", "tf2_msgs/msg/TFMessage", transforms(n, n % 3), n) for n in range(1, 7)]
    filled(tmp_path, [*rows, Row("robot/7/pose", b"{}", 9.0)])
    found = rows_of(tmp_path / "lake", "tf")
    assert len(found) == sum(n % 3 for n in range(1, 7))
    first = min(found, key=lambda row: (row["sequence_number"], row["child"]))
    assert (first["topic"], first["type"]) == ("/tf", "tf2_msgs/msg/TFMessage")
    assert (first["parent"], first["child"], first["x"], first["qw"]) == ("map", "base0", 1.0, 1.0)
    assert first["stamp_ns"] == 1_000_000_005
    assert (first["sequence_number"], first["gid"]) == (1, GID.hex())


def test_messages_are_structs_lists_and_bytes(tmp_path: Path) -> None:
    status = message(
        "diagnostic_msgs/msg/DiagnosticStatus",
        level=1,
        name="motor",
        message="hot",
        hardware_id="m1",
        values=[message("diagnostic_msgs/msg/KeyValue", key="celsius", value="91")],
    )
    array = message("diagnostic_msgs/msg/DiagnosticArray", header=header(3), status=[status])
    jpeg = np.frombuffer(b"\xff\xd8\xff", np.uint8)
    photo = message("sensor_msgs/msg/CompressedImage", header=header(2), format="jpeg", data=jpeg)
    scan = message(
        "sensor_msgs/msg/LaserScan",
        header=header(4, "laser"),
        angle_min=-0.5,
        angle_max=0.5,
        angle_increment=0.5,
        time_increment=0.0,
        scan_time=0.25,
        range_min=0.125,
        range_max=30.0,
        ranges=np.array([1.5, np.inf, 2.5], np.float32),
        intensities=np.array([], np.float32),
    )
    filled(
        tmp_path,
        [
            said("/r1/camera/image", "sensor_msgs/msg/Image", image(2), 1),
            said("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", array, 1),
            said("/r1/points", "sensor_msgs/msg/PointCloud2", cloud([(0, 1, 2), (3, -4, 5)]), 1),
            said("/r1/jpeg", "sensor_msgs/msg/CompressedImage", photo, 1),
            said("/r1/scan", "sensor_msgs/msg/LaserScan", scan, 1),
        ],
    )
    lake = tmp_path / "lake"
    (seen,) = rows_of(lake, "r1_camera_image")
    assert (seen["width"], seen["height"], seen["encoding"]) == (3, 2, "mono8")
    assert seen["data"] == bytes(range(6))
    (diagnosed,) = rows_of(lake, "diagnostics")
    assert diagnosed["status"][0]["name"] == "motor"
    assert dict(diagnosed["status"][0]["values"]) == {"celsius": "91"}
    (points,) = rows_of(lake, "r1_points")
    assert (points["points"], points["min_y"], points["max_x"]) == (2, -4.0, 3.0)
    (seen,) = rows_of(lake, "r1_jpeg")
    assert (seen["format"], seen["data"], seen["stamp_ns"]) == ("jpeg", b"\xff\xd8\xff", 2000000005)
    (seen,) = rows_of(lake, "r1_scan")
    assert (seen["frame_id"], seen["range_max"], seen["intensities"]) == ("laser", 30.0, [])
    assert seen["ranges"] == [1.5, math.inf, 2.5]

    # People see what all of them have once, programs all of each.
    asked = ["lake", "tables", "--ros", "--lake", str(lake)]
    told = CliRunner().invoke(application(), asked).stdout
    assert "r1_scan  (ROS 2 topic /r1/scan)\n" in told
    assert [line.split()[0] for line in told.splitlines()].count("gid") == 1
    assert "samples" not in told
    facts = json.loads(CliRunner().invoke(application(), [*asked, "--json"]).stdout)
    assert {"gid", "node", "ranges"} < facts["r1_scan"].keys()


def custom() -> tuple[str, str]:
    """A type that no package ships: its name, and its hash."""
    STORE.register(get_types_from_msg(PART, "shop/msg/Part"))
    return "shop/msg/Part", described_by_text(PART, "shop/msg/Part").hash


def test_what_nobody_can_read_waits_in_quarantine_until_its_definition_is_learnt(
    tmp_path: Path,
) -> None:
    name, hash = custom()
    rows = [
        said("/part", name, message(name, load=n / 2, faults=["f"] * n), n, hash) for n in range(5)
    ]
    pipeline = filled(tmp_path, rows)
    lake = tmp_path / "lake"
    assert rows_of(lake, "part") == []
    held = rows_of(lake, "quarantine")
    assert {row["reason"] for row in held} == {"definition"}
    assert hash in held[0]["detail"]
    assert pipeline.types.learn(described_by_text(PART, name))
    done = open(lake).rebuild("part", tasks=Here())
    assert (done.rows, done.refused) == (5, 0)
    # A pipeline of a later day knows it too, and doubles nothing.
    write(tmp_path / "journal", [said("/part", name, message(name, load=9.0, faults=[]), 9, hash)])
    again = Pipeline(str(lake), str(tmp_path / "journal"), Here())
    again.step()
    found = sorted(rows_of(lake, "part"), key=lambda row: row["load"])
    assert [row["load"] for row in found] == [0.0, 0.5, 1.0, 1.5, 2.0, 9.0]
    assert found[2]["faults"] == ["f", "f"]
    assert rows_of(lake, "quarantine") == []


def test_a_definition_of_another_hash_is_not_believed(tmp_path: Path) -> None:
    name, hash = custom()
    pipeline = filled(tmp_path, [said("/part", name, message(name, load=1.0, faults=[]), 1, hash)])
    pipeline.types.learn(described_by_text("float64 load\n", name))
    assert open(tmp_path / "lake").rebuild("part", tasks=Here()).refused == 1


def test_one_table_has_the_topics_of_all_robots_if_the_configuration_says_so(
    tmp_path: Path,
) -> None:
    config = read_config('{tables: {image: {topic: "/${robot}/camera/image"}}}')
    filled(
        tmp_path,
        [said(f"/r{n}/camera/image", "sensor_msgs/msg/Image", image(n), 1) for n in range(3)],
        config,
    )
    lake = tmp_path / "lake"
    assert sorted(row["robot"] for row in rows_of(lake, "image")) == ["r0", "r1", "r2"]
    assert not (lake / "r0_camera_image").exists()


def test_buffers_of_new_distributions_are_rows_of_their_topic(tmp_path: Path) -> None:
    row = said("/cam", "sensor_msgs/msg/Image", image(1), 1)
    below = Row(f"{row.key}/_buf_cpu", row.value, 2.0, attachment=row.attachment)
    other = Row(f"{row.key}/_buf/{'ab' * 16}", b"a descriptor", 3.0)
    filled(tmp_path, [row, below, other])
    assert len(rows_of(tmp_path / "lake", "cam")) == 2
    assert rows_of(tmp_path / "lake", "quarantine") == []


def test_broken_payloads_go_to_quarantine_alone(tmp_path: Path) -> None:
    good = said("/cam", "sensor_msgs/msg/Image", image(1), 1)
    bad = Row(good.key, good.value[:-1], 2.0)
    filled(tmp_path, [good, bad])
    assert len(rows_of(tmp_path / "lake", "cam")) == 1
    (held,) = rows_of(tmp_path / "lake", "quarantine")
    assert (held["reason"], held["table"]) == ("payload", "cam")


def test_tables_of_topics_can_be_left_out(tmp_path: Path) -> None:
    rows = [said("/cam", "sensor_msgs/msg/Image", image(1), 1)]
    filled(tmp_path, rows, read_config("{ros2: {tables: false}}"))
    assert not (tmp_path / "lake" / "cam").exists()


def test_folders_of_definitions_are_read(tmp_path: Path) -> None:
    name, hash = custom()
    msg = tmp_path / "shop" / "msg" / "Part.msg"
    msg.parent.mkdir(parents=True)
    msg.write_text(PART)
    config = read_config(f'{{ros2: {{folders: ["{tmp_path / "shop"}"]}}}}')
    filled(tmp_path, [said("/part", name, message(name, load=1.0, faults=[]), 1, hash)], config)
    assert [row["load"] for row in rows_of(tmp_path / "lake", "part")] == [1.0]


def test_names_of_tables_are_those_of_topics() -> None:
    assert table_name("/tf", ()) == "tf"
    assert table_name("/Robot1/odom", ()) == "robot1_odom"
    assert table_name("/samples", ("samples",)) == "ros_samples"
    assert table_name("/1/x", ("ros_1_x",)) == "ros_1_x_2"


def test_a_table_has_a_format_or_a_topic() -> None:
    with pytest.raises(ConfigError, match="by topic"):
        read_config('{tables: {a: {format: "a", topic: "/a"}}}')
    with pytest.raises(ConfigError, match="humble"):
        read_config('{ros2: {distribution: "hubmle"}}')


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_questions_go_into_structs_maps_and_transforms(tmp_path: Path, spark: SparkSession) -> None:
    point = message("geometry_msgs/msg/Vector3", x=1.5, y=0.0, z=0.0)
    twist = message("geometry_msgs/msg/Twist", linear=point, angular=point)
    pair = message("diagnostic_msgs/msg/KeyValue", key="volts", value="12")
    part = message(
        "diagnostic_msgs/msg/DiagnosticStatus",
        level=1,
        name="motor",
        message="warm",
        hardware_id="m1",
        values=[pair],
    )
    filled(
        tmp_path,
        [
            said("/tf", "tf2_msgs/msg/TFMessage", transforms(1, 2), 1),
            said("/camera", "sensor_msgs/msg/Image", image(3), 1),
            said("/cmd_vel", "geometry_msgs/msg/Twist", twist, 1),
            said("/motor", "diagnostic_msgs/msg/DiagnosticStatus", part, 1),
        ],
        read_config("{rollups: true}"),
    )
    lake = open(tmp_path / "lake", spark)
    (row,) = lake.sql(
        """SELECT (SELECT count(*) FROM tf WHERE child = 'base1') AS frames,
            (SELECT width FROM camera) AS width, (SELECT linear.x FROM cmd_vel) AS x,
            (SELECT values['volts'] FROM motor) AS volts,
            (SELECT max FROM rollups WHERE field = 'linear.x' AND width = 'hour') AS fastest"""
    ).collect()
    assert (row.frames, row.width, row.x, row.volts, row.fastest) == (1, 3, 1.5, "12", 1.5)


def test_a_topic_behind_a_bridge_is_a_table_once_its_token_was_seen(tmp_path: Path) -> None:
    type = "tf2_msgs/msg/TFMessage"
    rows = [
        Row("r1/tf", bytes(STORE.serialize_cdr(transforms(n, 2), type)), float(n))
        for n in range(1, 4)
    ]
    pipeline = filled(tmp_path, rows)
    assert "r1_tf" not in pipeline.tables
    topic = parse_bridge_token("@ros2_lv/ab12/MP/r1§tf/tf2_msgs§msg§TFMessage/:1::0,7")
    assert topic is not None
    pipeline.types.bridge(topic)
    # A restart forgets nothing of it, and what was said before is in the table too.
    again = filled(tmp_path, [replace(row, at=row.at + 10) for row in rows])
    found = rows_of(tmp_path / "lake", "r1_tf")
    assert len(found) == 12
    assert {
        (row["domain"], row["topic"], row["type"], row["type_hash"], row["qos"]) for row in found
    } == {(None, "/r1/tf", type, None, "reliable volatile keep_last(7)")}
    assert sorted(row["x"] for row in found) == [1.0] * 4 + [2.0] * 4 + [3.0] * 4
    assert (again.behind(), rows_of(tmp_path / "lake", "quarantine")) == (0, [])
    # Tables of the configuration take such topics as well.
    config = read_config('{tables: {tfs: {topic: "/${robot}/tf"}}}')
    other = Pipeline(str(tmp_path / "other"), str(tmp_path / "journal"), Here(), config)
    other.types.bridge(topic)
    while other.step().rows or other.behind():
        pass
    assert {row["robot"] for row in rows_of(tmp_path / "other", "tfs")} == {"r1"}
    assert [spec.name for spec in other.specs] == ["tfs"]


def test_a_stamp_before_1970_is_counted_down_to_its_microsecond() -> None:
    stamp = pa.StructArray.from_arrays(
        [pa.array([-1, -1, 1], pa.int32()), pa.array([999_999_999, 0, 1_500], pa.int64())],
        ["sec", "nanosec"],
    )
    columns, _ = shaped("any/msg/Any", pa.StructArray.from_arrays([stamp], ["at"]))
    assert columns["at_ns"].to_pylist() == [-1, -1_000_000_000, 1_000_001_500]
    assert columns["at"].cast(pa.int64()).to_pylist() == [-1, -1_000_000, 1_000_001]
