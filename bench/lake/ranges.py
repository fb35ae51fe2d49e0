"""Ingest as a Structured Streaming query: a source of ranges, and a writer that commits.

A row of the source is one task of the pipeline's next step, pickled. Executors run the tasks, which
write files; the writer's `commit` lets the pipeline finish the step with what they wrote. Planning
and commits are the product's own, reached where it gives its work to `Tasks`, so what is measured
beside the product differs in who drives it, and in nothing else. The tables' logs are the only
truth: whatever offset Spark remembers, a batch is planned from where the tables are.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from zenlake.journal import Journal
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.ingest.spark_tasks import SparkTasks, Work
from zenlake.lake.table.delta import CommitConflict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = TypeVar("R")

SCHEMA = "task binary"
PARALLEL = 2


@final
class Planned(CommitConflict):
    """Ends a step that was only to be planned; the pipeline takes it for a lost race."""

    def __init__(self, items: Sequence[Work[Any]]) -> None:
        super().__init__("planned")
        self.items = list(items)


class Planning:
    """Tasks that are not run: the step ends with `Planned`."""

    parallel = PARALLEL
    alive = True

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """Raise what was to be run."""
        raise Planned(items)


class Finished:
    """Tasks that were run elsewhere, and what came of them; others are run here."""

    parallel = PARALLEL
    alive = True

    def __init__(self) -> None:
        self.results: list[Any] = []

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """Return the results, if it is the step's own work."""
        if what == "journal to tables":
            assert len(items) == len(self.results), "the step was planned otherwise"
            return self.results
        return [item.run() for item in items]


class Ranges(DataSource):
    """`format("ranges")`: a journal's way into a lake, in tasks."""

    @classmethod
    def name(cls) -> str:
        """Return what stands in `format(…)`."""
        return "ranges"

    def schema(self) -> str:
        """Return the one column."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return the source."""
        return RangesReader(dict(self.options))

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return the sink."""
        return RangesWriter(dict(self.options))


class RangesReader(DataSourceStreamReader):
    """Offsets are those of the journal; the rows are the tasks of the next step."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        self._pipeline: Pipeline | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pipeline": None}

    def initialOffset(self) -> dict[str, Any]:
        """Return where the tables are."""
        return {"at": list(self._opened().reached())}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return how far one step brings the tables."""
        pipeline = self._opened()
        if not Path(self.options["gate"]).exists():
            return start
        for table in pipeline.tables.values():
            table.refresh()
        share = pipeline.config.batch_rows // max(1, len(pipeline.ends()))
        reached = zip(pipeline.reached(), pipeline.ends(), strict=True)
        return {"at": [min(end, at + share) for at, end in reached]}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit: the pipeline has its own."""
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return how far the journal is."""
        return {"at": list(self._opened().ends())}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of the next step."""
        if start == end:  # Spark's first batch has nothing in it
            return []
        try:
            self._opened().step()
        except Planned as planned:
            return [InputPartition(pickle.dumps(item)) for item in planned.items]
        return []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return one task as a row."""
        if partition.value is not None:
            yield (partition.value,)

    def _opened(self) -> Pipeline:
        if self._pipeline is None:
            self._pipeline = opened(self.options, Planning())
        return self._pipeline


class RangesWriter(DataSourceStreamArrowWriter):
    """Executors run the tasks, the driver commits."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Run the tasks on an executor."""
        done = Done()
        for batch in iterator:
            done.parts += [pickle.loads(task).run() for task in batch.column(0).to_pylist()]
        return done

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Let the pipeline finish its step."""
        tasks = Finished()
        # Spark gives the messages in the order of the partitions.
        done = [one for one in messages if isinstance(one, Done)]
        tasks.results = [part for one in done for part in one.parts]
        if tasks.results:
            opened(self.options, tasks).step()


class Done(WriterCommitMessage):
    """What a task of Spark has written."""

    def __init__(self) -> None:
        self.parts: list[Any] = []


def opened(options: dict[str, str], tasks: Any) -> Pipeline:
    config: LakeConfig = pickle.loads(bytes.fromhex(options["config"]))
    return Pipeline(options["lake"], options["journal"], tasks, config)


@final
class Query:
    """A query over ranges, started before there is work, as one that runs for days."""

    def __init__(self, spark: SparkSession, lake: Path, journal: Path, config: LakeConfig) -> None:
        self.progress: list[Any] = []
        self._spark = spark
        self._lake = lake
        self._gate = lake.with_name("gate")
        self._tasks: Any = None
        self._where = (str(lake), str(journal))
        self._config = config
        self._query: Any = None

    def by_writer(self) -> None:
        """Start it into the stream writer."""
        self._start(lambda rows: rows.writeStream.format("ranges").options(**self._options()))

    def by_batch(self) -> None:
        """Start it into a `foreachBatch` that runs the tasks by `mapInArrow`, and commits."""
        tasks = Finished()
        pipeline = Pipeline(*self._where, tasks, self._config)

        def each(batch: DataFrame, number: int) -> None:
            rows = batch.mapInArrow(_run, "done binary").toArrow()
            tasks.results = [pickle.loads(one) for one in rows["done"].to_pylist()]
            if tasks.results:
                pipeline.step()

        self._start(lambda rows: rows.writeStream.foreachBatch(each))

    def by_trigger(self) -> None:
        """Start it into a `foreachBatch` that makes the lake's step: the query is a clock."""
        pipeline = Pipeline(*self._where, SparkTasks(self._spark), self._config)

        def each(batch: DataFrame, number: int) -> None:
            if self._gate.exists():
                pipeline.step()

        self._start(lambda rows: rows.writeStream.foreachBatch(each))

    def run(self) -> None:
        """Let it begin, and wait until the tables have everything."""
        before = Pipeline(*self._where, Planning(), self._config)
        assert before.behind() == sum(before.ends()), "the query did not wait"
        self._gate.touch()
        ends = list(Journal.open(self._where[1]).watermark().offsets)
        while self._reached() != ends:
            self._query.processAllAvailable()
            time.sleep(0.05)

    def _reached(self) -> list[int]:
        last = self._query.lastProgress
        if self._query.exception() is not None:
            raise self._query.exception()
        end = None if last is None else json.loads(last["sources"][0]["endOffset"])
        return end["at"] if end else []

    def stop(self) -> None:
        """End the query, and keep its progress."""
        self.progress = [one for one in self._query.recentProgress if one["numInputRows"]]
        self._query.stop()

    def _start(self, writing: Callable[[DataFrame], Any]) -> None:
        self._spark.dataSource.register(Ranges)
        rows = self._spark.readStream.format("ranges").options(**self._options()).load()
        checkpoint = str(self._lake.with_name("checkpoint"))
        options = writing(rows).option("checkpointLocation", checkpoint)
        self._query = options.trigger(processingTime="100 milliseconds").start()
        self._query.processAllAvailable()

    def _options(self) -> dict[str, str]:
        lake, journal = self._where
        config = pickle.dumps(self._config).hex()
        return {"lake": lake, "journal": journal, "config": config, "gate": str(self._gate)}


def _run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        done = [pickle.dumps(pickle.loads(task).run()) for task in batch.column(0).to_pylist()]
        yield pa.record_batch({"done": pa.array(done, pa.binary())})
