"""The lake beside Spark alone: rows a second, freshness, and what a pruned question costs.

    python -m bench.lake copy        journal → samples, latest and gaps beside Spark's own
                                     Parquet → Parquet of the same rows
    python -m bench.lake typed       the same with payloads of JSON, and a typed table of them
    python -m bench.lake fresh       put → readable in the table, with the pipeline idle otherwise
    python -m bench.lake pruned      one key of one minute, at 1 and 10 million rows; and the
                                     memory that filling and compacting them takes
    python -m bench.lake decode      ROS 2 messages beside rosbags, JSON beside spark.read.json
    python -m bench.lake ways        CPU a row of each way from the journal into tables, as Markdown
    python -m bench.lake statements  latest, gaps and rollups as Spark SQL beside what the lake does
    python -m bench.lake optimize    compaction and vacuum beside those of deltalake
    python -m bench.lake starved     start a streaming query beside twenty busy processes
    python -m bench.lake workers     the pipeline on two workers of a core against one
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
from bench.lake.cpu import CpuTime
from bench.lake.decoding import json_columns, ros
from bench.lake.memory import PeakMemory
from bench.lake.optimize import optimize, optimize_table
from bench.lake.starved import starved
from bench.lake.statements import statements, statements_table
from bench.lake.ways import payloads, table, ways
from bench.lake.workers import workers
from zenlake.journal import SCHEMA, Journal, JournalWriter
from zenlake.lake import LakeConfig, Pipeline, read_config
from zenlake.lake.ingest.spark_tasks import SparkTasks
from zenlake.lake.service.loop import run
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.spark.session import spark_session, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 50_000
KEYS = 1000
START = 1_790_000_000
JSON = 5


POSES = "{tables: {pose: {format: 'robot/${id}/pose'}}, gaps: {every: '300d'}}"


def poses(first: int) -> pa.Array:
    """Payloads of JSON."""
    said = '{"x": %r, "y": %d, "name": "r%d", "pose": {"z": %r}, "ok": %s}'
    return pa.array(
        [
            (said % (n / 7, n, n % 9, n / 3, "true" if n % 2 else "false")).encode()
            for n in range(first, first + BATCH)
        ]
    )


def noise(first: int, payload: int) -> pa.Array:
    """Payloads that no compression makes smaller."""
    data = np.random.default_rng(first).integers(0, 256, BATCH * payload, np.uint8).tobytes()
    places = pa.array(np.arange(0, (BATCH + 1) * payload, payload, dtype=np.int32))
    return pa.BinaryArray.from_buffers(
        pa.binary(), BATCH, [None, places.buffers()[1], pa.py_buffer(data)]
    )


def batches(
    rows: int, payload: int, seconds: float = 600.0, *, typed: bool = False
) -> Iterator[pa.RecordBatch]:
    """Rows of robots that talk in turn, spread evenly over some time."""
    keys = pa.array([f"robot/{n}/pose" for n in range(KEYS)])
    for first in range(0, rows, BATCH):
        n = np.arange(first, first + BATCH)
        micros = START * 1_000_000 + (n * (seconds * 1e6 / rows)).astype(np.int64)
        stamps = ((micros // 1_000_000) << 32) + ((micros % 1_000_000) << 32) // 1_000_000
        columns: dict[str, Any] = {
            "key": pa.DictionaryArray.from_arrays(pa.array((n % KEYS).astype(np.int32)), keys),
            "value": poses(first) if typed else noise(first, payload),
            "encoding_id": pa.array(np.full(BATCH, JSON if typed else 0, np.int32)),
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


def record(folder: Path, rows: int, payload: int, *, typed: bool = False) -> None:
    writer = JournalWriter.open(folder, partitions=1, fsync="never")
    for batch in batches(rows, payload, typed=typed):
        writer.append(0, batch)
    writer.flush()
    writer.close()


def small(folder: Path, rows: int) -> None:
    """A journal of JSON of 64 bytes."""
    writer = JournalWriter.open(folder, partitions=1, fsync="never")
    for n, batch in enumerate(batches(rows, 1)):
        robots = np.arange(BATCH) % KEYS
        given = {
            "value": payloads(n * BATCH, BATCH),
            "encoding_id": pa.array(np.full(BATCH, JSON, np.int32)),
            "source_zid": pa.array([(robot + 1).to_bytes(16) for robot in robots.tolist()]),
            "source_eid": pa.array(np.ones(BATCH, np.int64)),
        }
        columns = [
            given[field.name].cast(field.type) if field.name in given else column
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        said = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        writer.append(0, said.slice(0, max(0, min(BATCH, rows - n * BATCH))))
    writer.flush()
    writer.close()


def copy(
    spark: SparkSession, folder: Path, rows: int, payload: int, rounds: int, *, typed: bool = False
) -> dict[str, Any]:
    """Journal → samples, latest, gaps and a typed table beside Parquet → Parquet of its rows.

    Seconds, and seconds of CPU of all processes: the second say more on a machine that is busy.
    """
    journal, source = folder / "journal", folder / "parquet"
    record(journal, rows, payload, typed=typed)
    config = read_config(POSES) if typed else LakeConfig(gaps_every=1e9)
    source.mkdir()
    for n, segment in enumerate(_chunks(journal, rows)):
        pq.write_table(segment, source / f"{n}.parquet", compression="snappy", store_schema=False)

    def by_spark() -> None:
        spark.read.parquet(str(source)).write.parquet(str(folder / "copy"))

    def by_lake() -> None:
        pipeline = Pipeline(str(folder / "lake"), str(journal), SparkTasks(spark), config)
        while pipeline.step().behind:
            pass
        pipeline.fold(0.0, all=True)
        found = pipeline.tables["pose" if typed else "samples"].totals()
        assert found.rows == rows

    told: dict[str, list[tuple[float, float]]] = {"spark": [], "lake": []}
    cpu = CpuTime()
    for turn in range(rounds + 1):
        for name, work in (("spark", by_spark), ("lake", by_lake)):
            took = cpu.took(work)
            if turn:  # the first warms both up
                told[name].append(took)
        shutil.rmtree(folder / "lake")
        shutil.rmtree(folder / "copy")
    pairs = list(zip(told["spark"], told["lake"], strict=True))
    return {
        "rows": rows,
        "payload": "JSON" if typed else payload,
        "spark parquet copy, rows/s": [round(rows / wall) for wall, _ in told["spark"]],
        "journal to tables, rows/s": [round(rows / wall) for wall, _ in told["lake"]],
        "median ratio": _median([theirs[0] / ours[0] for theirs, ours in pairs]),
        "median ratio of CPU": _median([theirs[1] / ours[1] for theirs, ours in pairs]),
        "CPU, microseconds a row": _median([ours[1] / rows * 1e6 for _, ours in pairs]),
    }


def _median(numbers: list[float]) -> float:
    return round(statistics.median(numbers), 2)


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
    """One key in one second of time, asked of tables of several sizes; and how they are filled.

    Memory is flat if filling the largest took no more of it than a smaller one.
    """
    told: dict[str, list[float]] = {}
    filled: dict[str, Any] = {}
    tasks = SparkTasks(spark)
    for rows in sizes:
        journal, lake = folder / f"journal{rows}", folder / f"lake{rows}"
        record(journal, rows, 64)
        pipeline = Pipeline(str(lake), str(journal), tasks, LakeConfig(gaps_every=1e9))
        began = time.perf_counter()
        with PeakMemory() as filling:
            while pipeline.step().behind:
                pass
            pipeline.fold(0.0, all=True)
        took = time.perf_counter() - began
        assert pipeline.samples.totals().rows == rows
        shutil.rmtree(journal)
        began = time.perf_counter()
        with PeakMemory() as compacting:
            zenlake.lake.open(lake, spark).compact()
        filled[f"{rows:,} rows"] = {
            "journal to tables, rows/s": round(rows / took),
            "compaction, s": round(time.perf_counter() - began, 1),
            "files of samples, MB": _sizes(lake / "samples"),
            "peak MB while it is filled": filling.megabytes(),
            "peak MB while it is compacted": compacting.megabytes(),
        }
        print(json.dumps(filled, indent=2), flush=True)
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
    return filled | medians | {"ratio": round(times[-1] / times[0], 2)}


def _sizes(table: Path) -> list[float]:
    """The smallest, the median and the largest of a table's files, and how many there are."""
    from deltalake import DeltaTable

    sizes = sorted(DeltaTable(str(table)).get_add_actions()["size_bytes"].to_pylist())
    few = [sizes[0], statistics.median(sizes), sizes[-1]]
    return [round(size / 1e6, 1) for size in few] + [len(sizes)]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    works = ["copy", "typed", "fresh", "pruned", "decode"]
    works += ["ways", "statements", "optimize", "starved"]
    arguments.add_argument("what", choices=[*works, "workers", "amplification", "all"])
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--payload", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--puts", type=int, default=20)
    arguments.add_argument("--sizes", default="1000000,10000000")
    arguments.add_argument("--seconds", type=int, default=3600, help="amplification: so long")
    arguments.add_argument("--files", type=int, default=500, help="optimize: so many small ones")
    arguments.add_argument("--json", type=Path)
    asked = arguments.parse_args()
    told: dict[str, Any] = {}
    if asked.what in ("amplification", "all"):
        for name, camera in (("amplification", 0), ("amplification with cameras", 20_000)):
            with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as place:
                told[name] = amplification(Path(place), asked.seconds, 20, 5.0, camera)
            print(json.dumps({name: told[name]}, indent=2), flush=True)
    if asked.what in ("workers", "all"):
        with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as place:
            told["workers"] = workers(
                Path(place),
                asked.rows,
                asked.rounds,
                lambda journal: record(journal, asked.rows, asked.payload, typed=True),
                read_config(POSES),
                CpuTime().took,
            )
        print(json.dumps({"workers": told["workers"]}, indent=2), flush=True)
    if asked.what in ("amplification", "workers"):
        _write(told, asked.json)
        return
    spark = spark_session("bench", "local[2]")
    try:
        for what in works:
            if asked.what not in (what, "all"):
                continue
            with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as name:
                folder = Path(name)
                if what in ("copy", "typed"):
                    told[what] = copy(
                        spark,
                        folder,
                        asked.rows,
                        asked.payload,
                        asked.rounds,
                        typed=what == "typed",
                    )
                elif what == "fresh":
                    told[what] = fresh(spark, folder, asked.puts)
                elif what == "ways":
                    config, took = read_config(POSES), CpuTime().took
                    told[what] = ways(spark, folder, asked.rows, asked.rounds, config, small, took)
                    print(table(told[what]), flush=True)
                elif what == "statements":
                    sizes = [asked.rows // 5, asked.rows]
                    config = read_config(POSES)
                    told[what] = statements(spark, folder, sizes, asked.rounds, config, small)
                    print(statements_table(told[what]), flush=True)
                elif what == "starved":
                    told[what] = starved(spark, folder, 20, 5, read_config(POSES), small)
                elif what == "optimize":
                    told[what] = optimize(
                        spark, folder, asked.rows, asked.files, LakeConfig(), small
                    )
                    print(optimize_table(told[what]), flush=True)
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
