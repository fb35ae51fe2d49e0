"""`format("zenoh")` beside Spark's own Parquet reader, on the same rows, in turns; and starting up.

python -m bench.spark read  --rows 1000000     rows a second into nothing
python -m bench.spark start --rounds 3         seconds until the first answer, with and without
                                               the archive of classes
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.lake.__main__ import batches
from zenlake.journal import JournalWriter
from zenlake.spark.session import spark_session, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

START = """
import sys, time
began = time.perf_counter()
from pathlib import Path
from zenlake.spark import spark_session, stop_spark
spark = spark_session(state=Path(sys.argv[1]), archive_classes=sys.argv[2] == "archive")
spark.range(10).selectExpr("sum(id)").collect()
print(time.perf_counter() - began)
stop_spark(spark)
"""


def read(rows: int, payload: int, rounds: int) -> dict[str, list[float]]:
    """Rows a second of several reads of one journal, and of Parquet with the same rows."""
    with tempfile.TemporaryDirectory() as folder:
        journal, parquet = f"{folder}/journal", f"{folder}/parquet"
        writer = JournalWriter.open(journal, partitions=2, segment_bytes=16 << 20)
        for number, batch in enumerate(batches(rows, payload)):
            writer.append(number % 2, batch)
        writer.close()
        spark = spark_session("bench", "local[2]")
        zenoh = spark.read.format("zenoh")
        zenoh.load(journal).write.parquet(parquet)
        some = "key,time,offset"
        reads: dict[str, Callable[[], DataFrame]] = {
            "journal": lambda: zenoh.load(journal),
            "parquet": lambda: spark.read.parquet(parquet),
            "journal, 3 columns": lambda: (
                spark.read.format("zenoh").option("columns", some).load(journal)
            ),
            "parquet, 3 columns": lambda: spark.read.parquet(parquet).select(*some.split(",")),
            "journal, one key": lambda: zenoh.load(journal).where("key = 'robot/7/pose'"),
            "parquet, one key": lambda: spark.read.parquet(parquet).where("key = 'robot/7/pose'"),
        }
        found: dict[str, list[float]] = {name: [] for name in reads}
        for turn in range(rounds + 1):
            for name, make in reads.items():
                began = time.perf_counter()
                make().write.format("noop").mode("overwrite").save()
                # The first turn warms up.
                if turn:
                    found[name].append(round(rows / (time.perf_counter() - began)))
        stop_spark(spark)
    return found


def start(rounds: int) -> dict[str, list[float]]:
    """Seconds until the first answer, in a new process each time."""
    found: dict[str, list[float]] = {"archive": [], "without": []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds + 1):
            for kind, seconds in found.items():
                told = subprocess.run(
                    [sys.executable, "-c", START, Path(folder, kind), kind],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                if turn:
                    seconds.append(round(float(told.stdout), 2))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spark")
    parser.add_argument("what", choices=["read", "start"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--payload", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.what == "read":
        found = read(given.rows, given.payload, given.rounds)
    else:
        found = start(given.rounds)
    for name, numbers in found.items():
        print(f"{name:20} {json.dumps(numbers)}")


if __name__ == "__main__":
    main()
