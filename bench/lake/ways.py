"""What each way into the tables costs: CPU of all processes for a row.

Every way takes the same journal, of JSON of 64 bytes, and writes its rows twice: as they are, and
with the fields of the payload as columns. All run in one process beside one Spark, in turns, so
that a machine which is busy is as busy for each of them.
"""

from __future__ import annotations

import io
import shutil
import statistics
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from bench.lake.amplification import InProcess
from bench.lake.ranges import Query
from zenlake.journal import Journal
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.ingest.spark_tasks import SparkTasks
from zenlake.lake.model.sample_rows import sample_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

FIELDS = "x double, y double, percent double, ok boolean"
PROGRESS = "rows in Spark's progress"
SMALL = 1000
STEPS = 5
OURS = "tasks of ours (what the lake does)"
STREAMS = {
    "stream of ranges, `foreachBatch` makes our step": "by_trigger",
    "stream of ranges, `foreachBatch` with `mapInArrow`": "by_batch",
    "stream of ranges, stream writer commits": "by_writer",
}


def payloads(first: int, count: int) -> pa.Array:
    """JSON of 64 bytes."""
    said = '{"x": %.4f, "y": %.4f, "percent": %.2f, "ok": %s}'
    texts = (
        said % (n / 7, n / 3, n % 10000 / 100, "true" if n % 2 else "false")
        for n in range(first, first + count)
    )
    return pa.array([text.ljust(64).encode() for text in texts])


@final
class Ways:
    """One journal, and a function for each way into tables."""

    def __init__(self, spark: SparkSession, folder: Path, config: LakeConfig) -> None:
        self.spark = spark
        self.config = config
        self.journal = folder / "journal"
        self.lake = folder / "out" / "lake"
        self.out = folder / "out"
        self.parquet = folder / "parquet"
        #: Rows that Spark counted in the streaming query that ran last.
        self.counted = 0

    def all(self) -> dict[str, Callable[[], None]]:
        """By name, the ways that are queries apart."""
        return {
            OURS: self.tasks,
            "the same, with `latest` and `gaps`": self.folded,
            "the same ingest in one thread, no Spark": self.one_thread,
            "plain pyarrow script: no order, no Delta": self.script,
            "Spark, Parquet to Parquet, one table": self.copied,
            '`read.format("zenoh")`, `from_json`, Parquet': self.batch,
            '`readStream.format("zenoh")`, Arrow stream writer': self.written,
            '`readStream.format("zenoh")`, `foreachBatch`, Parquet': self.each,
        }

    def took(
        self, name: str, took: Callable[[Callable[[], None]], tuple[float, float]]
    ) -> tuple[float, float]:
        """Seconds and seconds of CPU of a way."""
        SparkTasks(self.spark).warm()  # workers that were idle have ended
        try:
            if name not in STREAMS:
                return took(self.all()[name])
            query = Query(self.spark, self.lake, self.journal, self.config)
            getattr(query, STREAMS[name])()
            try:
                spent = took(query.run)
            finally:
                query.stop()
            self.counted = sum(one["numInputRows"] for one in query.progress)
            rows = Pipeline(str(self.lake), str(self.journal), InProcess(), self.config)
            assert rows.behind() == 0
            return spent
        finally:
            shutil.rmtree(self.out, ignore_errors=True)

    def tasks(self) -> None:
        """Fill the tables as the lake does."""
        self._filled(SparkTasks(self.spark))

    def folded(self) -> None:
        """Fill the tables that are written anew, too."""
        self._filled(SparkTasks(self.spark)).fold(0.0, all=True)

    def one_thread(self) -> None:
        """Fill the tables in this process."""
        self._filled(InProcess())

    def _filled(self, tasks: Any) -> Pipeline:
        pipeline = Pipeline(str(self.lake), str(self.journal), tasks, self.config)
        while pipeline.step().behind:
            pass
        return pipeline

    def script(self) -> None:
        """Write two files, as a program of twenty lines does."""
        self.out.mkdir(parents=True)
        samples: pq.ParquetWriter | None = None
        typed: pq.ParquetWriter | None = None
        for batch in Journal.open(self.journal).scan():
            rows = sample_rows(batch, "journal", 0)
            lines = io.BytesIO(b"\n".join(batch["value"].to_pylist()))
            fields = pyarrow.json.read_json(lines)
            columns = {name: rows[name] for name in ("key", "hlc", "time", "offset")}
            columns |= {name: fields[name] for name in fields.column_names}
            decoded = pa.table(columns)
            samples = samples or pq.ParquetWriter(self.out / "samples.parquet", rows.schema)
            typed = typed or pq.ParquetWriter(self.out / "pose.parquet", decoded.schema)
            samples.write_table(rows)
            typed.write_table(decoded)
        for writer in (samples, typed):
            if writer is not None:
                writer.close()

    def copied(self) -> None:
        """Let Spark read its own Parquet and write it."""
        self.spark.read.parquet(str(self.parquet)).write.parquet(str(self.out / "samples"))

    def batch(self) -> None:
        """Let Spark read the journal and the payloads."""
        _both(self.spark.read.format("zenoh").load(str(self.journal)), self.out, "overwrite")

    def written(self) -> None:
        """Let a stream bring the rows through the JVM to a writer in Python."""
        self.spark.dataSource.register(Files)
        stream = self._stream()
        _available(stream.writeStream.format("files").option("path", str(self.out)), self.out)

    def each(self) -> None:
        """Let a stream bring the rows to Spark's own writer, twice."""

        def both(batch: DataFrame, number: int) -> None:
            batch.persist()
            _both(batch, self.out, "append")
            batch.unpersist()

        _available(self._stream().writeStream.foreachBatch(both), self.out)

    def _stream(self) -> DataFrame:
        reader = self.spark.readStream.format("zenoh").option("startingOffsets", "earliest")
        return reader.option("maxRecordsPerTrigger", self.config.batch_rows).load(str(self.journal))


def _both(rows: DataFrame, out: Path, mode: str) -> None:
    from pyspark.sql import functions

    rows.write.mode(mode).parquet(str(out / "samples"))
    fields = functions.from_json(rows["value"].cast("string"), FIELDS).alias("f")
    typed = rows.select("key", "hlc", "time", "offset", fields)
    typed.select("key", "hlc", "time", "offset", "f.*").write.mode(mode).parquet(str(out / "pose"))


def _available(writing: Any, out: Path) -> None:
    writing = writing.option("checkpointLocation", str(out / "checkpoint"))
    writing.trigger(availableNow=True).start().awaitTermination()


class Files(DataSource):
    """`format("files")`: rows and their fields as Parquet, by a stream writer over Arrow."""

    @classmethod
    def name(cls) -> str:
        """Return what stands in `format(…)`."""
        return "files"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return the sink."""
        return FilesWriter(Path(self.options["path"]))


class FilesWriter(DataSourceStreamArrowWriter):
    """Writes two files a task; the commit of a table of ours would be one line more."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task."""
        self.out.mkdir(parents=True, exist_ok=True)
        batches = list(iterator)
        if batches:
            rows = pa.Table.from_batches(batches)
            fields = pyarrow.json.read_json(io.BytesIO(b"\n".join(rows["value"].to_pylist())))
            typed = rows.select(["key", "hlc", "time", "offset"])
            for name in fields.column_names:
                typed = typed.append_column(name, fields[name])
            pq.write_table(rows, self.out / f"samples-{uuid.uuid4()}.parquet")
            pq.write_table(typed, self.out / f"pose-{uuid.uuid4()}.parquet")
        return WriterCommitMessage()


def ways(
    spark: SparkSession,
    folder: Path,
    rows: int,
    rounds: int,
    config: LakeConfig,
    record: Callable[[Path, int], None],
    took: Callable[[Callable[[], None]], tuple[float, float]],
) -> dict[str, Any]:
    """Microseconds of CPU a row of each way, and what it is beside the lake's own tasks.

    `record`: writes so many rows into a journal; `took`: seconds of work, and of CPU.
    """
    warm, full = Ways(spark, folder / "warm", config), Ways(spark, folder / "full", config)
    few = Ways(spark, folder / "few", replace(config, batch_rows=SMALL))
    for each, count in ((warm, max(1, rows // 10)), (full, rows), (few, STEPS * SMALL)):
        record(each.journal, count)
        _copy(each)
    told: dict[str, list[tuple[float, float]]] = {}
    steps: dict[str, list[float]] = {}
    counted: dict[str, int] = {}
    for turn in range(rounds + 1):
        one = full if turn else warm  # the first warms up
        for name in dict.fromkeys((OURS, *STREAMS, *one.all())):
            spent = one.took(name, took)
            print(f"{turn}: {name}: {spent[1]:.1f} s of CPU", file=sys.stderr, flush=True)
            if turn:
                told.setdefault(name, []).append(spent)
                counted[name] = one.counted if name in STREAMS else rows
        for name in (OURS, *STREAMS) if turn else ():
            _, cpu = few.took(name, took)
            print(
                f"{turn}: {name}: {cpu / STEPS * 1000:.0f} ms a step", file=sys.stderr, flush=True
            )
            steps.setdefault(name, []).append(cpu / STEPS)
    found: dict[str, Any] = {"rows": rows, "rows in a step of few": SMALL, "ways": {}}
    for name, took_all in told.items():
        pairs = zip(took_all, told[OURS], strict=True)
        found["ways"][name] = {
            "µs": round(statistics.median(cpu for _, cpu in took_all) / rows * 1e6, 2),
            "times": round(statistics.median(cpu / ours for (_, cpu), (_, ours) in pairs), 2),
            "rows/s": round(rows / statistics.median(wall for wall, _ in took_all)),
            PROGRESS: counted[name],
            "ms a step": round(statistics.median(steps[name]) * 1000) if name in steps else None,
        }
    return found


def _copy(one: Ways) -> None:
    """The rows as Spark writes them, for the copy from Parquet to Parquet."""
    one.spark.read.format("zenoh").load(str(one.journal)).write.parquet(str(one.parquet))


def table(found: dict[str, Any]) -> str:
    """What was measured, as a table of Markdown."""
    rows, few = found["rows"], found["rows in a step of few"]
    lines = [
        f"| way, {rows:,} rows | CPU, µs a row | beside ours | rows/s | CPU of a step of {few} |",
        "|---|---|---|---|---|",
    ]
    for name, one in found["ways"].items():
        step = "" if one["ms a step"] is None else f"{one['ms a step']} ms"
        numbers = f"{one['µs']:.1f} | {one['times']:.2f} | {one['rows/s']:,} | {step}"
        lines.append(f"| {name} | {numbers} |")
    lines.append("")
    for name in STREAMS:
        lines.append(f"{name}: Spark counts {found['ways'][name][PROGRESS]} input rows.")
    return "\n".join(lines)
