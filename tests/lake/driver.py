"""A driver that is killed: `python driver.py LAKE JOURNAL SECONDS`, with a clock of its own.

It says `ready` when the pipeline begins, follows the journal, and ends by itself after some
seconds if nobody kills it.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from zenlake.lake import Pipeline, read_config
from zenlake.lake.run import run
from zenlake.lake.tasks import SparkTasks
from zenlake.spark.session import spark_session, stop_spark

CONFIG = """{tables: {counter: {format: "count/${source}"}},
             batch: {rows: 4000, task_rows: 1000}, compact: {files: 3}, gaps: {every: "1s"}}"""


def main() -> None:
    lake, journal, seconds = sys.argv[1:4]
    spark = spark_session("tests", "local[2]", state=Path(sys.argv[4]))
    tasks = SparkTasks(spark)
    pipeline = Pipeline(lake, journal, tasks, read_config(CONFIG))
    stop = threading.Event()
    threading.Timer(float(seconds), stop.set).start()
    print("ready", flush=True)
    done = run(pipeline, tasks, stop=stop, once=seconds == "0", every=0.1)
    print(f"done {done.rows}", flush=True)
    stop_spark(spark)


if __name__ == "__main__":
    main()
