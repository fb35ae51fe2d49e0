"""SQL questions to the Spark of a running lake: in turn, within limits, and only while the
querier waits for the answer.

    executor = SqlExecutor(lake)
    table = executor.ask("SELECT count(*) FROM samples", who="terminal 4711")

A question is cancelled when its time is over or its asker has gone: Spark's jobs carry a tag that
is its own, and one thread looks after all of them.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import LocalError
from zenlake.lake.ingest.spark_tasks import SparkTasks
from zenlake.lake.model.row_access import EVERYTHING, RowAccess
from zenlake.lake.query.turns import AskerGone, FairTurns
from zenlake.spark.jvm import arrow_stream, read_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from zenlake.lake.query.lake import Lake

__all__ = ["QueryLimits", "SqlExecutor"]

AT_ONCE: Final = 3
WAITING: Final = 64
LOOK: Final = 0.1
JAVA_ENDED: Final = "the Java of the lake's Spark has ended; ask again when the lake is back"


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """How much one question may take."""

    seconds: float = 60.0
    """From the moment that it is asked, waiting included."""
    rows: int = 1_000_000
    bytes: int = 256 << 20


@dataclass(slots=True)
class _Running:
    tag: str
    until: float
    gone: Callable[[], bool]
    why: str = ""


@dataclass(slots=True)
class QueryCounts:
    """What became of questions."""

    answered: int = 0
    refused: int = 0
    cancelled: int = 0
    abandoned: int = 0
    rows: int = 0


def _never_gone() -> bool:
    return False


@final
class SqlExecutor:
    """Asks the Spark of a lake."""

    def __init__(
        self,
        lake: Lake,
        *,
        plan: Callable[[str, QueryLimits, RowAccess], DataFrame] | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        """`plan` makes a frame of a question from a stranger; the lake's own SQL, if not said."""
        self.lake = lake
        self.counts = QueryCounts()
        self.turns = FairTurns(at_once, WAITING)
        self._plan = plan
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="zenlake questions", daemon=True)
        self._watch.start()

    def close(self) -> None:
        """Cancel what runs."""
        self._over.set()
        self._watch.join()
        with self._lock:
            running = list(self._running.values())
        for one in running:
            self._cancel(one, "the lake is stopping")

    def ask(
        self,
        query: str,
        who: str,
        bounds: QueryLimits | None = None,
        gone: Callable[[], bool] = _never_gone,
        *,
        first: int | None = None,
        trusted: bool = True,
        access: RowAccess = EVERYTHING,
    ) -> pa.Table:
        """The rows that a question finds; `first`: only so many of them, `access`: among those.

        Raises `LocalError` for one that takes too much.
        """
        allowed = bounds or QueryLimits()
        counted = self.lake.counted(query) if access.unrestricted else None
        if counted is not None:
            self.counts.answered += 1
            self.counts.rows += 1
            return counted
        began = time.monotonic()
        try:
            with self.turns.taken(who, allowed.seconds, gone):
                left = allowed.seconds - (time.monotonic() - began)
                rows = self._asked(query, allowed, max(0.1, left), gone, first, trusted, access)
        except AskerGone:
            self.counts.abandoned += 1
            raise
        except LocalError:
            self.counts.refused += 1
            raise
        self.counts.answered += 1
        self.counts.rows += rows.num_rows
        return rows

    def _asked(
        self,
        query: str,
        allowed: QueryLimits,
        seconds: float,
        gone: Callable[[], bool],
        first: int | None,
        trusted: bool,
        access: RowAccess,
    ) -> pa.Table:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        context: Any = self.lake.spark.sparkContext
        tag = f"zenlake-{uuid.uuid4().hex}"
        one = _Running(tag, time.monotonic() + seconds, gone)
        with self._lock:
            self._running[tag] = one
        # What went wrong is told to who asked; Spark would write it to the terminal, too.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        try:
            context.addJobTag(tag)
            # Beside the pipeline, not behind it.
            context.setLocalProperty("spark.scheduler.pool", "questions")
            context.setLocalProperty("spark.job.interruptOnCancel", "true")
            context.setJobDescription(f"zenlake: {query[:100]}")
            if access.unrestricted and (trusted or self._plan is None):
                frame = self.lake.sql(query)
            elif self._plan is None:
                raise LocalError("this lake has no gate, and shows nobody a part of its rows")
            else:
                frame = self._plan(query, allowed, access)
            if one.why:
                raise LocalError(one.why)  # planning took all its time
            rows = collected(frame if first is None else frame.limit(first), allowed)
        except Exception as error:
            if not SparkTasks(self.lake.spark).alive:
                raise LocalError(JAVA_ENDED) from error
            context.cancelJobsWithTag(tag)
            if one.why == "gone":
                raise AskerGone("who asked has gone") from error
            if one.why:
                raise LocalError(one.why) from error
            if isinstance(error, PySparkException | Py4JError):
                raise LocalError(one_line(_reason(error))) from error
            raise
        finally:
            with self._lock:
                del self._running[tag]
            with suppress(ConnectionError, Py4JError):  # its Java may have ended
                context.removeJobTag(tag)
        return rows

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
                        "the question took too long and was cancelled; ask for fewer rows, a "
                        "shorter time or a single key",
                    )
                elif one.gone():
                    self._cancel(one, "gone")

    def _cancel(self, one: _Running, why: str) -> None:
        from py4j.protocol import Py4JError

        one.why = why
        context: Any = self.lake.spark.sparkContext
        with suppress(ConnectionError, Py4JError):  # its Java may have ended
            context.cancelJobsWithTag(one.tag)


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
