"""Payloads into columns: ROS 2 beside rosbags, one message after the other; JSON beside Spark.

CPU time of what is compared, in turns: that of this process for Python, that of the Java for Spark.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rosbags.typesys import Stores, get_typestore

from zenlake.lake.decode.arrow_rows import rows_for
from zenlake.lake.model.sample_rows import SAMPLES
from zenlake.lake.model.typed_table import Columns, TypedTable
from zenlake.ros2.cdr import CdrDecoder
from zenlake.ros2.definitions import Definitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORE = get_typestore(Stores.ROS2_JAZZY)
PAIR = "diagnostic_msgs/msg/KeyValue"


def message(type: str, /, **fields: Any) -> Any:
    return STORE.types[type](**fields)


def header(n: int) -> Any:
    stamp = message("builtin_interfaces/msg/Time", sec=n, nanosec=n)
    return message("std_msgs/msg/Header", stamp=stamp, frame_id="map")


def twists(count: int) -> list[bytes]:
    """Messages of one length."""
    vector = "geometry_msgs/msg/Vector3"
    return [
        bytes(
            STORE.serialize_cdr(
                message(
                    "geometry_msgs/msg/TwistStamped",
                    header=header(n),
                    twist=message(
                        "geometry_msgs/msg/Twist",
                        linear=message(vector, x=n / 2, y=0.0, z=0.0),
                        angular=message(vector, x=0.0, y=0.0, z=n / 3),
                    ),
                ),
                "geometry_msgs/msg/TwistStamped",
            )
        )
        for n in range(count)
    ]


def joints(count: int) -> list[bytes]:
    """Messages of a few lengths."""
    return [
        bytes(
            STORE.serialize_cdr(
                message(
                    "sensor_msgs/msg/JointState",
                    header=header(n),
                    name=[f"joint{k}" for k in range(4 + n % 4)],
                    position=np.arange(4 + n % 4, dtype=np.float64),
                    velocity=np.zeros(4 + n % 4),
                    effort=np.zeros(0),
                ),
                "sensor_msgs/msg/JointState",
            )
        )
        for n in range(count)
    ]


def diagnostics(count: int) -> list[bytes]:
    """Messages whose lengths all differ."""
    return [
        bytes(
            STORE.serialize_cdr(
                message(
                    "diagnostic_msgs/msg/DiagnosticArray",
                    header=header(n),
                    status=[
                        message(
                            "diagnostic_msgs/msg/DiagnosticStatus",
                            level=1,
                            name="m" * (n % 50),
                            message="x" * (n % 37),
                            hardware_id=str(n),
                            values=[
                                message(
                                    "diagnostic_msgs/msg/KeyValue", key="k", value="v" * (n % 11)
                                )
                            ],
                        )
                    ],
                ),
                "diagnostic_msgs/msg/DiagnosticArray",
            )
        )
        for n in range(count)
    ]


def said(texts: list[str]) -> pa.Table:
    """JSON texts as rows of `samples`."""
    count = len(texts)
    known: dict[str, Any] = {
        "key": pa.array(["robot/1/pose"] * count),
        "value": pa.array([text.encode() for text in texts]),
        "encoding": pa.array(["application/json"] * count),
        "kind": pa.array(["put"] * count),
        "hlc": pa.array(np.arange(count)),
        "time": pa.array(np.arange(count), pa.timestamp("us", tz="UTC")),
        "received": pa.array(np.arange(count), pa.timestamp("us", tz="UTC")),
        "journal": pa.array(["j"] * count),
        "partition": pa.array(np.zeros(count, np.int32)),
        "offset": pa.array(np.arange(count)),
    }
    return pa.table(
        {
            field.name: known[field.name] if field.name in known else pa.nulls(count, field.type)
            for field in SAMPLES
        }
    )


def spent(work: Callable[[], object]) -> float:
    """Seconds of CPU that work takes here."""
    began = time.process_time()
    work()
    return time.process_time() - began


def by_rosbags(payloads: list[bytes], name: str) -> None:
    for payload in payloads:
        STORE.deserialize_cdr(payload, name)


def ros(messages: int, rounds: int) -> dict[str, Any]:
    """How many times as fast as rosbags, for messages of one, some and many lengths."""
    found: dict[str, Any] = {}
    for name, make in (
        ("geometry_msgs/msg/TwistStamped", twists),
        ("sensor_msgs/msg/JointState", joints),
        ("diagnostic_msgs/msg/DiagnosticArray", diagnostics),
    ):
        payloads = make(messages)
        description = Definitions().find(name, STORE.hash_rihs01(name))
        assert description is not None
        decoder = CdrDecoder(description)
        ratios, ours = [], []
        for _ in range(rounds):
            theirs = spent(partial(by_rosbags, payloads, name))
            mine = spent(partial(decoder.decode, payloads))
            ratios.append(theirs / mine)
            ours.append(mine / messages * 1e6)
        found[name] = {
            "microseconds": round(statistics.median(ours), 2),
            "times_rosbags": round(statistics.median(ratios), 2),
        }
    return found


def json_columns(spark: SparkSession, folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    """JSON payloads to Parquet with columns: our decoding beside `spark.read.json`."""
    texts = [
        json.dumps(
            {"x": n / 7, "y": n, "name": f"r{n % 9}", "pose": {"z": n / 3}, "ok": n % 2 == 0}
        )
        for n in range(rows)
    ]
    (folder / "lines.json").write_text("\n".join(texts))
    samples = said(texts)
    java = next(one for one in psutil.Process().children(recursive=True) if "java" in one.name())

    def ours() -> None:
        typed = rows_for(TypedTable("pose", "robot/${id:*}/pose"), Columns())
        typed.add(samples)
        pq.write_table(pa.table(typed.rows()), folder / "ours.parquet")

    def theirs() -> float:
        before = sum(java.cpu_times()[:2])
        spark.read.json(str(folder / "lines.json")).write.mode("overwrite").parquet(
            str(folder / "theirs.parquet")
        )
        return float(sum(java.cpu_times()[:2]) - before)

    theirs()
    ratios, mine = [], []
    for _ in range(rounds):
        other = theirs()
        mine.append(spent(ours))
        ratios.append(other / mine[-1])
    return {
        "microseconds": round(statistics.median(mine) / rows * 1e6, 2),
        "times_spark_read_json": round(statistics.median(ratios), 2),
    }
