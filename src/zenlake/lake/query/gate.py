"""The gate in front of Spark's SQL: what strangers ask, judged before and after Spark reads it.

    gate = Gate(lake)
    answer = gate.answer("SELECT key, count(*) FROM samples GROUP BY key")
    answer.rows          # a pyarrow Table
    answer.cut           # whether there were more rows than the limits let through

Every way in uses it: the terminal, the bus, HTTP, MCP. A question must be one SELECT over tables
of the lake. It is judged twice, by plans of Spark itself and not by its text:

* *as parsed*, because reading a plan on can open files, load classes or run commands: nodes,
  tables and functions from lists, one by one;
* *as analysed*, because only then is certain what a name means: every leaf must be a file of this
  lake, every expression one of Spark's own.

A question has a session to itself, so that it sees no settings, views or functions of others; a
time after which it is cancelled; and a number of rows. Rows whose keys the asker may not see are
left out beneath everything else (`lake/model/row_access`).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from zenlake.lake.model.row_access import EVERYTHING, RowAccess
from zenlake.lake.query.plan_policy import Limits, Refused, demand_text
from zenlake.lake.query.text_columns import mended
from zenlake.spark.jvm import cancel_job_group

if TYPE_CHECKING:
    import pyarrow as pa

    from zenlake.lake.query.lake import Lake

__all__ = ["Answer", "Gate", "Limits", "Refused"]

AGAIN: Final = 0.2
"""Seconds after which a question that is late is cancelled once more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a question found."""

    rows: pa.Table
    cut: bool
    """Whether there are more of them than the limits let through."""


@final
class Gate:
    """Answers questions about one lake."""

    def __init__(self, lake: Lake, limits: Limits | None = None) -> None:
        """Spark starts with the first question, or is the lake's."""
        self._lake = lake
        self.limits = limits or Limits()

    def answer(
        self,
        query: str,
        *,
        access: RowAccess = EVERYTHING,
        limits: Limits | None = None,
        versions: Mapping[str, int] | None = None,
        asof: str | None = None,
    ) -> Answer:
        """The rows that a question finds among those that may be seen.

        Raises `Refused` for a question that is not let through or takes too long, `Unanswerable`
        for one about something that is not there.
        """
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        allowed = limits or self.limits
        demand_text(query, allowed)
        context = self._lake.spark.sparkContext
        group = f"question-{uuid.uuid4().hex}"
        late, over = threading.Event(), threading.Event()

        def cancel() -> None:
            if not over.wait(allowed.seconds):
                late.set()
            # Again and again: of jobs that begin later Spark cancels only some.
            while not over.is_set():
                cancel_job_group(context, group)
                over.wait(AGAIN)

        def refused() -> Refused:
            return Refused(
                f"the question took longer than {allowed.seconds:g} s and was cancelled; "
                "ask about fewer rows, a shorter time or a single key"
            )

        try:
            threading.Thread(target=cancel, name="zenlake gate", daemon=True).start()
            context.setJobGroup(group, "zenlake: a question", interruptOnCancel=True)
            frame = self._lake.judged(query, access, allowed, versions, asof)
            if late.is_set():
                raise refused()
            rows = frame.limit(allowed.rows + 1).toArrow()
        except (PySparkException, Py4JJavaError) as error:
            if late.is_set():
                raise refused() from error
            raise
        finally:
            over.set()
            # The thread goes on; what it does next is not of this question.
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        return Answer(mended(rows.slice(0, allowed.rows)), rows.num_rows > allowed.rows)
