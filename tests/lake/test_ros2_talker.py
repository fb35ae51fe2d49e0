"""A talker of zenoh-ros2-sdk, which knows nothing of us, from the bus to rows of typed tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rosbags.typesys import Stores, get_typestore

from tests.api.sessions import listening, where
from tests.lake.journals import Here, rows_of
from tests.waiting import until
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.lake import Pipeline, open
from zenlake.ros2.definitions import described_by_text

pytestmark = [pytest.mark.interop]

STRING = "std_msgs/msg/String"
PART = "shop/msg/Part"
PART_TEXT = "float32 load\nstring[] faults\n"
COUNT = 20
TALKER = f"""
import sys
from zenoh_ros2_sdk import ROS2Publisher
port, string, part = int(sys.argv[1]), sys.argv[2], sys.argv[3]
says = ROS2Publisher("/r1/chatter", "{STRING}", "string data\\n", type_hash=string,
    router_port=port, node_name="talker")
parts = ROS2Publisher("/r1/part", "{PART}", {PART_TEXT!r}, type_hash=part, router_port=port,
    node_name="talker")
for n in range({COUNT}):
    says.publish(data=f"hello {{n}}")
    parts.publish(load=n / 2, faults=["f"] * (n % 3))
says.close(), parts.close()
"""


def test_what_a_talker_says_is_in_tables_and_a_type_of_its_own_when_it_is_known(
    tmp_path: Path,
) -> None:
    part = described_by_text(PART_TEXT, PART)
    string = get_typestore(Stores.ROS2_JAZZY).hash_rihs01(STRING)
    journal, lake = tmp_path / "journal", tmp_path / "lake"
    with (
        listening(mode='"router"') as router,
        Recorder(router, Options(("0/**",), str(journal), name="j", fsync="never")) as recorder,
    ):
        port = where(router).rpartition(":")[2]
        command = [sys.executable, "-c", TALKER, port, string, part.hash]
        subprocess.run(command, check=True, capture_output=True, timeout=50)
        until(lambda: sum(recorder.watermark().offsets) >= 2 * COUNT, "all was recorded")
    pipeline = Pipeline(str(lake), str(journal), Here())
    while pipeline.step().rows or pipeline.behind():
        pass
    said = sorted(rows_of(lake, "r1_chatter"), key=lambda row: row["sequence_number"])
    assert [row["data"] for row in said] == [f"hello {n}" for n in range(COUNT)]
    assert {(row["topic"], row["type"], row["type_hash"]) for row in said} == {
        ("/r1/chatter", STRING, string)
    }
    # Nobody here describes the other type yet.
    assert {row["reason"] for row in rows_of(lake, "quarantine")} == {"definition"}
    assert pipeline.types.learn(part)
    done = open(lake).rebuild("r1_part", tasks=Here())
    assert (done.rows, done.refused) == (COUNT, 0)
    parts = sorted(rows_of(lake, "r1_part"), key=lambda row: row["load"])
    assert [(row["load"], len(row["faults"])) for row in parts] == [
        (n / 2, n % 3) for n in range(COUNT)
    ]
