"""Runs questions in SQL: in turn, within limits, and only while the querier waits for the answer.

    executor = SqlExecutor(lake)
    table = executor.ask("SELECT count(*) FROM samples", who="terminal 4711")

Every way in leads here: the terminal, the bus, HTTP, MCP. Askers take turns
(`engine/asker_lanes`). A question is planned in a session of Spark to itself, so that it sees no
settings, views or functions of others, and judged there (`lake/query/planner`). It is cancelled
when its time is over or its asker has gone: Spark's jobs carry a tag that is its own, and one
thread looks after all of them.

Planning is no job, and nobody can cancel it. So Spark is asked on threads that can be given up
(`lake/query/question_threads`): a question that does not come back a moment after it was cancelled
is answered with a refusal, its turn is over, and its thread is counted as lost.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from zenlake.engine.asker_lanes import AskerLanes
from zenlake.errors import LocalError
from zenlake.lake.ingest.spark_tasks import SparkTasks
from zenlake.lake.model.row_access import EVERYTHING, RowAccess
from zenlake.lake.query.document_column import with_documents_as_text
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.plan_policy import Refused, demand_text
from zenlake.lake.query.planner import Planner, count_of
from zenlake.lake.query.question_threads import QuestionThreads
from zenlake.lake.query.referenced_tables import Unanswerable
from zenlake.spark.jvm import arrow_stream, finish_planning, read_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from zenlake.lake.query.lake import Lake

T = TypeVar("T")

__all__ = [
    "AskerGone",
    "QueueFull",
    "SqlExecutor",
    "SqlQuestion",
    "TimeOver",
    "collected",
    "one_line",
]

AT_ONCE: Final = 3
WAITING: Final = 64
LOOK: Final = 0.1
"""Seconds between two looks at what runs: whether it is late, and who asked still there."""
GRACE: Final = 5.0
"""Seconds that a cancelled question has to come back; after that its thread is lost."""
MOST_LOST: Final = 6
"""Threads that may be lost; with so many nothing is asked until Spark was started again."""
JAVA_ENDED: Final = "the Java of the lake's Spark has ended; ask again when the lake is back"


log = logging.getLogger("zenlake.lake")

USUAL: Final = QueryLimits()


class QueueFull(LocalError):
    """No question is taken now: too many wait or do not end, or this one waited too long."""


class TimeOver(Refused):
    """A question was cancelled, and not because of what it asks."""


class AskerGone(LocalError):
    """The program that asked waits no longer."""


def _never_gone() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class SqlQuestion:
    """One question, and how much it may take."""

    text: str
    limits: QueryLimits = USUAL
    access: RowAccess = EVERYTHING
    """The rows that it may see."""
    first: int | None = None
    """How many rows are wanted, if not all."""
    versions: Mapping[str, int] | None = None
    asof: datetime | str | None = None
    shape: Callable[[DataFrame], DataFrame] | None = None
    """What is made of the frame before it runs."""
    gone: Callable[[], bool] = _never_gone
    """Says whether who asked waits no longer."""


@dataclass(slots=True)
class _Running:
    tag: str
    until: float
    question: SqlQuestion
    planned_by: float
    """When planning must be over."""
    planned: bool = False
    why: str = ""
    cancelled: float | None = None
    """When it was first cancelled."""

    def is_lost(self, now: float, grace: float) -> bool:
        """Whether it should have come back by now."""
        return self.cancelled is not None and now > self.cancelled + grace


@dataclass(slots=True)
class QueryCounts:
    """What became of questions."""

    answered: int = 0
    refused: int = 0
    cancelled: int = 0
    abandoned: int = 0
    rows: int = 0


@final
class SqlExecutor:
    """Asks the Spark of a lake."""

    def __init__(self, lake: Lake, *, at_once: int = AT_ONCE, grace: float = GRACE) -> None:
        """Run so many questions at once; `grace`: seconds to come back after being cancelled."""
        self.lake = lake
        self.counts = QueryCounts()
        self.at_once = at_once
        self._grace = grace
        self._threads = QuestionThreads("zenlake spark")
        self._has_planned = False
        self._lanes = AskerLanes("zenlake sql", at_once, most=WAITING)
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="zenlake questions", daemon=True)
        self._watch.start()

    @property
    def waiting(self) -> int:
        """How many questions wait for their turn."""
        return self._lanes.waiting

    @property
    def lost(self) -> int:
        """How many threads do not come back from Spark."""
        return self._threads.lost

    def close(self) -> None:
        """Cancel what runs, and begin nothing more."""
        self._over.set()
        self._watch.join()
        with self._lock:
            running = list(self._running.values())
        for one in running:
            self._cancel(one, "the lake is stopping")
        self._lanes.close()
        self._threads.close()

    def submit(self, who: Hashable, work: Callable[[], None]) -> bool:
        """Have work done in this asker's turn that runs questions; False: too much waits."""
        return self._lanes.submit(who, work)

    def ask(self, question: SqlQuestion | str, who: Hashable) -> pa.Table:
        """Return the rows that a question finds, when it is the turn of who asks.

        Raises `LocalError` for one that takes too much.
        """
        if isinstance(question, str):
            question = SqlQuestion(question)
        counted = self._counted(question)
        if counted is not None:
            return counted
        until = time.monotonic() + question.limits.seconds
        answer = self._queued(who, lambda: self.run(question, _left(until)))
        return self._awaited(answer, question, until)

    def run(self, question: SqlQuestion, seconds: float | None = None) -> pa.Table:
        """Return the rows that a question finds, on this thread and at once.

        `seconds`: what is left of its time.
        """
        try:
            rows = self._counted(question)
            if rows is None:
                left = question.limits.seconds if seconds is None else seconds
                rows = self._supervised(question, left, lambda one: self._asked(question, one))
                self.counts.answered += 1
                self.counts.rows += rows.num_rows
        except AskerGone:
            self.counts.abandoned += 1
            raise
        except LocalError:
            self.counts.refused += 1
            raise
        return rows

    def judged(self, question: SqlQuestion, who: Hashable, work: Callable[[], T]) -> T:
        """Return what work gives that has Spark plan a question, and no more.

        It is done when it is the turn of who asks, within the time of planning. Raises `QueueFull`.
        """
        until = time.monotonic() + question.limits.seconds
        planned = self._queued(who, lambda: self._planned(question, _left(until), work))
        return self._awaited(planned, question, until)

    def judge_later(self, question: SqlQuestion, who: Hashable, work: Callable[[], T]) -> Future[T]:
        """Do what `judged` does, but do not wait for the turn. Raises `QueueFull` at once."""
        return self._queued(who, lambda: self._planned(question, question.limits.seconds, work))

    def _planned(self, question: SqlQuestion, seconds: float, work: Callable[[], T]) -> T:
        def plan(one: _Running) -> T:
            done = work()
            if one.why:
                raise _ended(one)
            return done

        return self._supervised(question, seconds, plan)

    def _queued(self, who: Hashable, work: Callable[[], T]) -> Future[T]:
        """Have work done in this asker's turn. Raises `QueueFull` if too much waits."""
        answer: Future[T] = Future()

        def run() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(work())
                except BaseException as error:
                    answer.set_exception(error)

        if not self.submit(who, run):
            self.counts.refused += 1
            raise QueueFull(f"{self.waiting} questions wait already; ask again in a moment")
        return answer

    def _awaited(self, answer: Future[T], question: SqlQuestion, until: float) -> T:
        """Return the answer to a question that waits for its turn until then, and no longer."""
        while not answer.done():
            with suppress(TimeoutError):
                return answer.result(LOOK)
            # One that runs is ended by the thread that looks after all of them.
            if question.gone() and answer.cancel():
                self.counts.abandoned += 1
                raise AskerGone("who asked has gone")
            if time.monotonic() > until and answer.cancel():
                self.counts.refused += 1
                raise QueueFull(
                    f"no turn within {question.limits.seconds:g} s: {self.waiting} questions wait"
                )
        return answer.result()

    def _supervised(
        self, question: SqlQuestion, seconds: float, work: Callable[[_Running], T]
    ) -> T:
        """Do work that asks Spark, on a thread that is given up if it does not come back."""
        if self.lost >= MOST_LOST:
            raise QueueFull(
                f"{self.lost} questions before this one do not end, and Spark is about to be "
                "started again; ask again in a minute"
            )
        now = time.monotonic()
        # The first of all waits for Java to load what planning takes.
        planning = min(seconds, question.limits.planning) if self._has_planned else seconds
        one = _Running(f"zenlake-{uuid.uuid4().hex}", now + seconds, question, now + planning)
        with self._lock:
            self._running[one.tag] = one

        def run() -> T:
            try:
                return work(one)
            finally:
                with self._lock:
                    del self._running[one.tag]

        call = self._threads.call(run)
        while True:
            with suppress(TimeoutError):
                return call.result.result(LOOK)
            if call.result.done():
                return call.result.result()  # a time that was over is its own answer
            if one.is_lost(time.monotonic(), self._grace):
                self._threads.give_up(call)
                log.warning("a question does not end: %s", question.text[:1000])
                raise _ended(one)

    def _counted(self, question: SqlQuestion) -> pa.Table | None:
        """The answer to a question that only counts rows: it stands in a log, and needs no turn."""
        demand_text(question.text, question.limits)
        if not question.access.unrestricted or question.versions or question.asof is not None:
            return None
        rows = count_of(self.lake.catalog, question.text)
        if rows is not None:
            self.counts.answered += 1
            self.counts.rows += 1
        return rows

    def _asked(self, question: SqlQuestion, one: _Running) -> pa.Table:
        from py4j.protocol import Py4JError
        from pyspark.errors import ParseException, PySparkException

        spark = self.lake.spark
        context: Any = spark.sparkContext
        tag = one.tag
        # What went wrong is told to who asked; Spark would write it to the terminal, too.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        try:
            context.addJobTag(tag)
            # Beside the pipeline, not behind it.
            context.setLocalProperty("spark.scheduler.pool", "questions")
            context.setLocalProperty("spark.job.interruptOnCancel", "true")
            context.setJobDescription(f"zenlake: {question.text[:100]}")
            frame = Planner(spark, self.lake.catalog, self.lake.key_tables).plan(
                question.text,
                versions=question.versions,
                asof=question.asof,
                access=question.access,
                limits=question.limits,
            )
            if one.why:
                raise Refused(one.why)  # planning took all its time
            if question.shape is not None:
                frame = question.shape(frame)
            if question.first is not None:
                frame = frame.limit(question.first)
            frame = with_documents_as_text(frame)
            finish_planning(frame)
            one.planned = self._has_planned = True
            if one.why:
                raise Refused(one.why)  # nothing is begun for nobody
            return collected(frame, question.limits)
        except Exception as error:
            if not SparkTasks(spark).alive:
                raise LocalError(JAVA_ENDED) from error
            context.cancelJobsWithTag(tag)
            if one.why == "gone":
                raise AskerGone("who asked has gone") from error
            if one.why:
                raise Refused(one.why) from error
            if isinstance(error, ParseException):
                raise Unanswerable(one_line(_reason(error))) from error
            if isinstance(error, PySparkException | Py4JError):
                raise LocalError(one_line(_reason(error))) from error
            raise
        finally:
            with suppress(ConnectionError, Py4JError):  # its Java may have ended
                context.removeJobTag(tag)

    def _look(self) -> None:
        while not self._over.wait(LOOK):
            with self._lock:
                running = list(self._running.values())
            for one in running:
                if one.why:
                    self._cancel(one, one.why)  # again: it may have begun a job since
                elif time.monotonic() > one.until:
                    self.counts.cancelled += 1
                    self._cancel(
                        one,
                        f"the question took longer than {one.question.limits.seconds:g} s and was "
                        "cancelled; ask about fewer rows, a shorter time or a single key",
                    )
                elif not one.planned and time.monotonic() > one.planned_by:
                    self.counts.cancelled += 1
                    self._cancel(
                        one,
                        f"planning the question took longer than {one.question.limits.planning:g} s"
                        " and was given up; ask with fewer joins, subqueries or constants",
                    )
                elif one.question.gone():
                    self._cancel(one, "gone")

    def _cancel(self, one: _Running, why: str) -> None:
        from py4j.protocol import Py4JError

        one.why = why
        if one.cancelled is None:
            one.cancelled = time.monotonic()
        context: Any = self.lake.spark.sparkContext
        with suppress(ConnectionError, Py4JError):  # its Java may have ended
            context.cancelJobsWithTag(one.tag)


def _ended(one: _Running) -> LocalError:
    """Return the error for a question that was cancelled."""
    return AskerGone("who asked has gone") if one.why == "gone" else TimeOver(one.why)


def _left(until: float) -> float:
    """Return the seconds until a moment: at least a tenth, for one that has its turn at last."""
    return max(0.1, until - time.monotonic())


def collected(frame: DataFrame, allowed: QueryLimits) -> pa.Table:
    """The rows of a frame as Arrow, taken in batch by batch and no more than is allowed."""
    import pyarrow as pa
    from pyspark import serializers
    from pyspark.errors.exceptions.captured import unwrap_spark_exception
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.pandas.types import to_arrow_schema

    from zenlake.lake.query.text_columns import mended

    schema = to_arrow_schema(frame.schema, timezone="UTC")
    address, server = arrow_stream(frame)
    rows = size = 0
    wire: Any = serializers

    class Bounded(ArrowStreamSerializer):
        def load_stream(self, stream: Any) -> Any:
            nonlocal rows, size
            batches = []
            for batch in super().load_stream(stream):
                rows += batch.num_rows
                size += batch.nbytes
                if rows > allowed.rows or size > allowed.bytes:
                    raise LocalError(
                        f"the answer has more than {allowed.rows:,} rows or "
                        f"{allowed.bytes >> 20:,} MB; add LIMIT, or conditions"
                    )
                batches.append(batch)
            count = wire.read_int(stream)
            if count == -1:
                raise LocalError(one_line(wire.UTF8Deserializer().loads(stream)))
            order = [wire.read_int(stream) for _ in range(count)]
            yield from (batches[place] for place in order)

    try:
        batches = read_stream(address, Bounded())
    except LocalError:
        raise
    except Exception:
        # What broke the stream off is known where it was made.
        with unwrap_spark_exception():
            server.getResult()
        raise
    with unwrap_spark_exception():
        server.getResult()
    if not batches:
        return schema.empty_table()
    return mended(pa.Table.from_batches(batches).cast(schema))


def _reason(error: Exception) -> str:
    """What a failure says: that of Java is behind the name of the call that failed."""
    text = str(error)
    cause = text.partition("\n: ")[2]
    return cause or text


def one_line(text: str) -> str:
    """What Spark says of a question in one line: without its codes, plans and stacks."""
    import re

    if "does not exist" in text or "FileNotFoundException" in text:
        # By words: a pattern would begin anew at each character of one that has no end.
        words = (word.rstrip(".,;:)") for word in re.split(r"[\s'\"]+", text))
        lost = next((word for word in words if word.endswith(".parquet")), None)
        if lost is not None:
            path = re.sub(r"^file:/*", "/", lost)
            return f"a file of a table is lost: {path}; `zenlake lake repair` says what can be done"
    first = text.strip().partition("\n")[0]
    first = re.sub(r"^(?:[\w.$]*(?:Exception|Error): )+", "", first)
    first = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first)
    first = re.sub(r"\s*SQLSTATE: \w+", "", first)
    where = re.search(r"\(line (\d+), pos (\d+)\)|; line (\d+) pos (\d+)", text)
    first = re.sub(r"; line \d+ pos \d+;?$", "", first).strip()
    if where is not None and "line" not in first:
        line, column = (where[1], where[2]) if where[1] else (where[3], where[4])
        first = f"{first.rstrip('.')} (line {line}, column {int(column) + 1})"
    return first or "Spark refused the question and did not say why"
