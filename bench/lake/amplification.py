"""Bytes that the lake writes for a byte of payload, over an hour of a fleet.

The hour is accelerated: the loop and the upkeep are told the time, second by second, and do what
they would do then; steps take as long as they take. Work runs in this process instead of in
Spark's tasks, which write the same files, so that the system's own count of what this process
writes (`wchar` of /proc/self/io) is the answer: data files, logs, checkpoints, the status, and
rewrites. The journal is written between the measurements. What depends on the wall clock is not
accelerated: vacuum and the cleaning of logs delete nothing here, and deleting writes nothing.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
import pyarrow as pa

from zenlake.demo import Fleet
from zenlake.journal import SCHEMA, JournalWriter
from zenlake.lake import Pipeline, read_config
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.service.loop import Loop
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.values import Encoding

R = TypeVar("R")

#: What `zenlake up` configures.
TABLES = """{tables: {
    pose: {format: "robot/${id}/pose"},
    battery: {format: "robot/${id}/battery"},
    temperature: {format: "robot/${id}/temperature"},
    fault: {format: "robot/${id}/fault"},
}}"""


class InProcess:
    """Does the work of tasks here, as Spark would pickle it."""

    parallel = 2
    alive = True

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """Do it, one after the other."""
        works: list[Work[R]] = pickle.loads(pickle.dumps(list(items)))
        return [work.run() for work in works]


def batch(said: list[tuple[float, int, int, Any]]) -> pa.RecordBatch:
    """(time, robot, number, emission) as a batch of a journal."""
    micros = np.array([int(at * 1e6) for at, *_ in said], np.int64)
    stamps = ((micros // 1_000_000) << 32) + ((micros % 1_000_000) << 32) // 1_000_000
    count = len(said)
    rows: dict[str, Any] = {
        "key": pa.array([e.key for *_, e in said]).dictionary_encode(),
        "value": pa.array([e.payload or b"" for *_, e in said], pa.binary()),
        "kind": pa.array([int(e.payload is None) for *_, e in said], SCHEMA.field("kind").type),
        "encoding_id": pa.array(
            [Encoding(e.encoding).id for *_, e in said], SCHEMA.field("encoding_id").type
        ),
        "hlc": pa.array((stamps.astype(np.uint64) - np.uint64(HLC_BIAS)).astype(np.int64)),
        "time": pa.array(micros, pa.timestamp("us", tz="UTC")),
        "received": pa.array(micros + 800, pa.timestamp("us", tz="UTC")),
        "stamp_id": pa.array([b"\x11" * 16] * count, pa.binary()),
        "source_zid": pa.array([bytes([robot % 250 + 1]) * 16 for _, robot, *_ in said]),
        "source_eid": pa.array([1] * count, SCHEMA.field("source_eid").type),
        "source_sn": pa.array([n for _, _, n, _ in said], SCHEMA.field("source_sn").type),
    }
    for field in SCHEMA.remove(0):
        if field.name not in rows:
            rows[field.name] = (
                pa.nulls(count, field.type)
                if field.nullable
                else pa.array(np.zeros(count, field.type.to_pandas_dtype()), field.type)
            )
    return pa.RecordBatch.from_arrays(
        [rows[f.name].cast(f.type) for f in SCHEMA.remove(0)], schema=SCHEMA.remove(0)
    )


def amplification(folder: Path, seconds: int, robots: int, rate: float, camera: int) -> Any:
    """What an hour, or so many seconds, of a fleet makes the lake write."""
    writer = JournalWriter.open(folder / "journal", partitions=1, fsync="never")
    fleet = Fleet.of(robots, rate, camera, 1)
    start = time.time()
    numbers = [0] * (robots + 1)
    tasks = InProcess()
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), tasks, read_config(TABLES))
    loop = Loop(pipeline, tasks)
    me = psutil.Process()
    payload = written = rows = 0
    for second in range(seconds):
        said = []
        for robot, emissions in fleet.step(float(second)):
            for emission in emissions:
                who = int(robot.name)
                numbers[who] += 1
                said.append((start + second, who, numbers[who], emission))
                payload += len(emission.payload or b"")
        if said:
            writer.append(0, batch(said))
            writer.flush()
            rows += len(said)
        before = me.io_counters().write_chars
        now = 1000.0 + second
        end = now + 1.0
        while now < end:
            now += max(0.05, loop.turn(now) or 0.0)
        loop.maintenance.turn(end, time.time())
        written += me.io_counters().write_chars - before
    writer.close()
    tables = {table.name: table for table in pipeline.shown()}
    live = sum(table.bytes for table in tables.values())
    total = sum(size for _, size, _ in pipeline.place.files())
    return {
        "seconds": seconds,
        "rows": rows,
        "payload, MB": round(payload / 1e6, 1),
        "written, MB": round(written / 1e6, 1),
        "written for a byte of payload": round(written / payload, 2),
        "commits of samples": tables["samples"].version,
        "commits of latest": tables["latest"].version,
        "commits of gaps": tables["gaps"].version,
        "live, MB": round(live / 1e6, 1),
        "files live": sum(table.files for table in tables.values()),
        "on disk without vacuum, MB": round(total / 1e6, 1),
    }
