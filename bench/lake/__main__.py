"""The lake beside Spark alone: rows a second, freshness, and what a pruned question costs.

    python -m bench.lake copy        journal → samples beside Spark's own Parquet → Parquet
    python -m bench.lake fresh       put → readable in the table, with the pipeline idle otherwise
    python -m bench.lake pruned      one key of one minute, at 1 and 10 million rows
    python -m bench.lake decode      ROS 2 messages beside rosbags, JSON beside spark.read.json
    python -m bench.lake amplification   bytes written for a byte of payload, over an hour
    python -m bench.lake all --json build/bench-lake.json

What is compared runs in the same process on the same rows, in turns.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import zenlake.lake
from bench.lake.amplification import amplification
from bench.lake.decoding import json_columns, ros
from zenlake.journal import SCHEMA, Journal, JournalWriter
from zenlake.journal.schema import HLC_BIAS
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.run import run
from zenlake.lake.tasks import SparkTasks
from zenlake.spark.session import spark_session, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 50_000
KEYS = 1000
START = 1_790_000_000


def batches(rows: int, payload: int, seconds: float = 600.0) -> Iterator[pa.RecordBatch]:
    """Rows of robots that talk in turn, spread evenly over some time."""
    keys = pa.array([f"robot/{n}/pose" for n in range(KEYS)])
    noise = np.random.default_rng(1).integers(0, 256, BATCH * payload, np.uint8).tobytes()
    places = pa.array(np.arange(0, (BATCH + 1) * payload, payload, dtype=np.int32))
    value = pa.BinaryArray.from_buffers(
        pa.binary(), BATCH, [None, places.buffers()[1], pa.py_buffer(noise)]
    )
    for first in range(0, rows, BATCH):
        n = np.arange(first, first + BATCH)
        micros = START * 1_000_000 + (n * (seconds * 1e6 / rows)).astype(np.int64)
        stamps = ((micros // 1_000_000) << 32) + ((micros % 1_000_000) << 32) // 1_000_000
        columns: dict[str, Any] = {
            "key": pa.DictionaryArray.from_arrays(pa.array((n % KEYS).astype(np.int32)), keys),
            "value": value,
            "encoding_id": pa.array(np.zeros(BATCH, np.int32)),
            "hlc": pa.array((stamps.astype(np.uint64) - np.uint64(HLC_BIAS)).astype(np.int64)),
            "time": pa.array(micros, pa.timestamp("us", tz="UTC")),
            "received": pa.array(micros, pa.timestamp("us", tz="UTC")),
            "stamp_id": pa.array([b"\x01\x02\x03\x04"] * BATCH, pa.binary()),
            "source_sn": pa.array(n // KEYS),
        }
        for field in SCHEMA.remove(0):
            if field.name not in columns:
                columns[field.name] = (
                    pa.nulls(BATCH, field.type)
                    if field.nullable
                    else pa.array(
                        np.zeros(BATCH, bool)
                        if pa.types.is_boolean(field.type)
                        else np.zeros(BATCH, field.type.to_pandas_dtype()),
                        field.type,
                    )
                )
        yield pa.RecordBatch.from_arrays(
            [columns[f.name] for f in SCHEMA.remove(0)], schema=SCHEMA.remove(0)
        )


def record(folder: Path, rows: int, payload: int) -> None:
    writer = JournalWriter.open(folder, partitions=1, fsync="never")
    for batch in batches(rows, payload):
        writer.append(0, batch)
    writer.flush()
    writer.close()


def copy(spark: SparkSession, folder: Path, rows: int, payload: int, rounds: int) -> dict[str, Any]:
    """Journal → samples (and latest) beside Parquet → Parquet of the same rows."""
    journal, source = folder / "journal", folder / "parquet"
    record(journal, rows, payload)
    source.mkdir()
    for n, segment in enumerate(_chunks(journal, rows)):
        pq.write_table(segment, source / f"{n}.parquet", compression="snappy", store_schema=False)
    told: dict[str, list[float]] = {"spark": [], "samples": []}
    for turn in range(rounds + 1):
        lake, target = folder / f"lake{turn}", folder / f"copy{turn}"
        began = time.perf_counter()
        spark.read.parquet(str(source)).write.parquet(str(target))
        spark_seconds = time.perf_counter() - began
        began = time.perf_counter()
        tasks = SparkTasks(spark)
        pipeline = Pipeline(str(lake), str(journal), tasks, LakeConfig(gaps_every=1e9))
        while pipeline.step().behind:
            pass
        pipeline.fold(0.0, all=True)
        lake_seconds = time.perf_counter() - began
        if turn:  # the first warms both up
            told["spark"].append(rows / spark_seconds)
            told["samples"].append(rows / lake_seconds)
        shutil.rmtree(lake)
        shutil.rmtree(target)
    ratios = [ours / theirs for ours, theirs in zip(told["samples"], told["spark"], strict=True)]
    return {
        "rows": rows,
        "payload": payload,
        "spark parquet copy, rows/s": [round(r) for r in told["spark"]],
        "journal to samples and latest, rows/s": [round(r) for r in told["samples"]],
        "ratio": [round(r, 2) for r in ratios],
        "median ratio": round(statistics.median(ratios), 2),
    }


def _chunks(journal: Path, rows: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in Journal.open(journal).scan():
        held.append(batch)
        if sum(b.num_rows for b in held) >= rows // 4:
            yield pa.Table.from_batches(held).unify_dictionaries()
            held = []
    if held:
        yield pa.Table.from_batches(held).unify_dictionaries()


def fresh(spark: SparkSession, folder: Path, puts: int) -> dict[str, Any]:
    """Seconds from the append of a sample to its being readable in `samples`."""
    from deltalake import DeltaTable

    writer = JournalWriter.open(folder / "journal", partitions=1, fsync="50ms")
    tasks = SparkTasks(spark)
    lake = folder / "lake"
    pipeline = Pipeline(str(lake), str(folder / "journal"), tasks)
    stop = threading.Event()
    loop = threading.Thread(target=run, args=(pipeline, tasks), kwargs={"stop": stop})
    loop.start()
    (batch,) = list(batches(BATCH, 64))[:1]
    took: list[float] = []
    try:
        for n in range(puts + 3):
            began = time.perf_counter()
            writer.append(0, batch.slice(n, 1))
            table = DeltaTable(str(lake / "samples"))
            while table.count() < n + 1:
                time.sleep(0.01)
                table.update_incremental()
            if n >= 3:
                took.append(time.perf_counter() - began)
            time.sleep(0.37 + 0.11 * (n % 7))
    finally:
        stop.set()
        loop.join()
        writer.close()
    took.sort()
    return {
        "puts": puts,
        "p50 s": round(statistics.median(took), 2),
        "p95 s": round(took[int(len(took) * 0.95)], 2),
        "max s": round(took[-1], 2),
    }


def pruned(spark: SparkSession, folder: Path, sizes: list[int]) -> dict[str, Any]:
    """One key in one second of time, asked of tables of several sizes."""
    told: dict[str, Any] = {}
    tasks = SparkTasks(spark)
    for rows in sizes:
        journal, lake = folder / f"journal{rows}", folder / f"lake{rows}"
        record(journal, rows, 64)
        pipeline = Pipeline(str(lake), str(journal), tasks, LakeConfig(gaps_every=1e9))
        while pipeline.step().behind:
            pass
        shutil.rmtree(journal)
        zenlake.lake.open(lake, spark).compact()
    for turn in range(6):
        for rows in sizes:
            found = zenlake.lake.open(folder / f"lake{rows}", spark)
            began = time.perf_counter()
            (answer,) = found.sql(
                "SELECT count(*) FROM samples WHERE key = 'robot/7/pose' "
                f"AND time >= timestamp_seconds({START + 60}) "
                f"AND time < timestamp_seconds({START + 61})"
            ).collect()
            assert answer[0] >= 1
            if turn:
                told.setdefault(f"{rows:,} rows, s", []).append(time.perf_counter() - began)
    medians = {name: round(statistics.median(took), 3) for name, took in told.items()}
    times = list(medians.values())
    return medians | {"ratio": round(times[-1] / times[0], 2)}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    works = ["copy", "fresh", "pruned", "decode", "amplification", "all"]
    arguments.add_argument("what", choices=works)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--payload", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--puts", type=int, default=20)
    arguments.add_argument("--sizes", default="1000000,10000000")
    arguments.add_argument("--seconds", type=int, default=3600, help="amplification: so long")
    arguments.add_argument("--json", type=Path)
    asked = arguments.parse_args()
    told: dict[str, Any] = {}
    if asked.what in ("amplification", "all"):
        for name, camera in (("amplification", 0), ("amplification with cameras", 20_000)):
            with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as place:
                told[name] = amplification(Path(place), asked.seconds, 20, 5.0, camera)
            print(json.dumps({name: told[name]}, indent=2), flush=True)
    if asked.what == "amplification":
        _write(told, asked.json)
        return
    spark = spark_session("bench", "local[2]")
    try:
        for what in ("copy", "fresh", "pruned", "decode"):
            if asked.what not in (what, "all"):
                continue
            with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as name:
                folder = Path(name)
                if what == "copy":
                    told[what] = copy(spark, folder, asked.rows, asked.payload, asked.rounds)
                elif what == "fresh":
                    told[what] = fresh(spark, folder, asked.puts)
                elif what == "decode":
                    told[what] = ros(5000, asked.rounds)
                    told[what]["JSON"] = json_columns(spark, folder, asked.rows, asked.rounds)
                else:
                    told[what] = pruned(spark, folder, [int(n) for n in asked.sizes.split(",")])
            print(json.dumps({what: told[what]}, indent=2), flush=True)
    finally:
        stop_spark(spark)
    _write(told, asked.json)


def _write(told: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
