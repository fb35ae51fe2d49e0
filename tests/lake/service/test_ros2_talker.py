"""Talkers of zenoh-ros2-sdk, which knows nothing of us, from the bus to rows that anybody reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from rosbags.typesys import Stores, get_typestore

from tests.api.sessions import client_of, listening, where
from tests.lake.counts import published
from tests.lake.journals import Here, rows_of, table_of
from tests.ros2.test_graph import OFFER, SERVICE_HASH, SERVICE_TYPE, replied
from tests.waiting import until
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.lake import Pipeline, read_config
from zenlake.lake.service.bus_link import BusLink
from zenlake.lake.service.start import listen_only
from zenlake.lake.table.iceberg import IcebergMirror
from zenlake.ros2.definitions import described_by_text
from zenlake.ros2.names import wire_type

pytestmark = [pytest.mark.interop]

STORE = get_typestore(Stores.ROS2_JAZZY)
STRING = "std_msgs/msg/String"
TF = "tf2_msgs/msg/TFMessage"
IMAGE = "sensor_msgs/msg/Image"
PART = "shop/msg/Part"
PART_TEXT = "float32 load\nstring[] faults\n"
COUNT = 20
DESCRIBES = f"0/r1/arm/get_type_description/{wire_type(SERVICE_TYPE)}/{SERVICE_HASH}"
TALKER = f"""
import sys
import numpy as np
from rosbags.typesys import Stores, get_typestore
from zenoh_ros2_sdk import ROS2Publisher
port, part_hash, token, description = int(sys.argv[1]), *sys.argv[2:]
store = get_typestore(Stores.ROS2_JAZZY)

def publisher(topic, type):
    text, _ = store.generate_msgdef(type, ros_version=2)
    return ROS2Publisher(topic, type, text, type_hash=store.hash_rihs01(type), router_port=port)

def message(type, /, **fields):
    return store.types[type](**fields)

says = publisher("/r1/chatter", "{STRING}")
moves = publisher("/tf", "{TF}")
films = publisher("/r1/camera/image", "{IMAGE}")
parts = ROS2Publisher("/r1/part", "{PART}", {PART_TEXT!r}, type_hash=part_hash, router_port=port,
    node_name="arm", namespace="/r1")
# Nodes of ROS describe the types that they use; those of this package have to be taught.
session = parts.session_mgr.session
offer = session.liveliness().declare_token(token.replace("/ab/", f"/{{session.info.zid()}}/"))
service = session.declare_queryable("{DESCRIBES}",
    lambda query: query.reply("{DESCRIBES}", bytes.fromhex(description)), complete=True)
for n in range({COUNT}):
    stamp = message("builtin_interfaces/msg/Time", sec=n, nanosec=5)
    header = message("std_msgs/msg/Header", stamp=stamp, frame_id="map")
    transform = message("geometry_msgs/msg/Transform",
        translation=message("geometry_msgs/msg/Vector3", x=n / 4, y=0.0, z=0.0),
        rotation=message("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0))
    says.publish(data=f"hello {{n}}")
    moves.publish(transforms=[message("geometry_msgs/msg/TransformStamped", header=header,
        child_frame_id=child, transform=transform) for child in ("base", "arm")])
    films.publish(header=header, height=2, width=n + 1, encoding="mono8", is_bigendian=0,
        step=n + 1, data=np.zeros(2 * n + 2, np.uint8))
    parts.publish(load=n / 2, faults=["f"] * (n % 3))
sys.stdin.read()
service.undeclare()
offer.undeclare()
for one in (says, moves, films, parts):
    one.close()
session.close()
"""


def test_what_talkers_say_is_in_tables_and_a_type_of_their_own_is_learnt_from_them(
    tmp_path: Path,
) -> None:
    part = described_by_text(PART_TEXT, PART)
    journal, lake = tmp_path / "journal", tmp_path / "lake"
    throttle: list[str] = []
    with (
        listening(mode='"router"') as router,
        Recorder(router, Options(("0/**",), str(journal), name="j", fsync="never")) as recorder,
    ):
        port = where(router).rpartition(":")[2]
        command = [sys.executable, "-c", TALKER, port, part.hash, OFFER, replied(part).hex()]
        talker = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            until(lambda: sum(recorder.watermark().offsets) >= 4 * COUNT, "not all was recorded")
            pipeline = Pipeline(str(lake), str(journal), Here(), read_config("{iceberg: true}"))
            while pipeline.step().rows or pipeline.behind():
                pass
            # Nobody here describes one of the types yet; then its node is asked.
            assert {row["reason"] for row in rows_of(lake, "quarantine")} == {"definition"}
            with (
                BusLink(client_of(router)) as link,
                listen_only(Here(), pipeline, link.session, throttle.append) as problems,
            ):
                until(lambda: rows_of(lake, "quarantine") == [], "the type is not learnt")
                assert (throttle, problems()) == ([], ())
        finally:
            talker.communicate(timeout=50)
    assert talker.returncode == 0
    assert len(rows_of(lake, "r1_part")) == COUNT

    said = sorted(rows_of(lake, "r1_chatter"), key=lambda row: row["sequence_number"])
    assert [row["data"] for row in said] == [f"hello {n}" for n in range(COUNT)]
    assert {(row["topic"], row["type"], row["type_hash"]) for row in said} == {
        ("/r1/chatter", STRING, STORE.hash_rihs01(STRING))
    }
    # The others as DuckDB reads them by Iceberg.
    mirror = IcebergMirror()
    last = ((COUNT - 1) / 4, (COUNT - 1) * 1_000_000_000 + 5)
    with duckdb.connect() as duck:
        for name in ("tf", "r1_camera_image", "r1_part"):
            mirror.publish(table_of(lake, name))
            duck.register(name, published(str(lake), name))
        moved = "SELECT child, count(*), max(x), max(stamp_ns) FROM tf GROUP BY ALL ORDER BY child"
        assert duck.sql(moved).fetchall() == [("arm", COUNT, *last), ("base", COUNT, *last)]
        widths = duck.sql("SELECT width, height FROM r1_camera_image ORDER BY width")
        assert widths.fetchall() == [(n + 1, 2) for n in range(COUNT)]
        parts = duck.sql("SELECT load, len(faults) FROM r1_part ORDER BY load")
        assert parts.fetchall() == [(n / 2, n % 3) for n in range(COUNT)]
