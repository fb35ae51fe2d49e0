"""Rates and lag of steps, as Spark computes them for micro-batches of a streaming query.

The words are those of `StreamingQueryProgress`. Spark's own is made for queries whose rows go
through its Java; rows of the pipeline do not (`docs/why/spark.md`).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, final

from zenlake.lake.model.status import SourceProgress

__all__ = ["StepProgress"]

log = logging.getLogger("zenlake.lake")

IDLE_SECONDS: Final = 60.0
"""Seconds after the last step with rows until the rates are 0. A steady flow has a step every 30
seconds at least (`lake/ingest/schedule`)."""


@final
class StepProgress:
    """The progress of one journal's steps."""

    def __init__(self, description: str) -> None:
        """`description`: the journal, as people know it."""
        self._last = SourceProgress(description)
        self._began: float | None = None

    def on_step(
        self,
        began: float,
        seconds: float,
        rows: int,
        offsets: tuple[Sequence[int], Sequence[int], Sequence[int]],
    ) -> None:
        """Note a step that began at a moment, took so long and read so many rows.

        `offsets`: where the tables were before and after, and where the journal is.
        """
        if not rows:
            return
        before, after, latest = offsets
        since = 0.0 if self._began is None else began - self._began
        self._last = SourceProgress(
            self._last.description,
            timestamp=time.time() - seconds,
            start_offset=tuple(before),
            end_offset=tuple(after),
            latest_offset=tuple(latest),
            num_input_rows=rows,
            input_rows_per_second=_rate(rows, since),
            processed_rows_per_second=_rate(rows, seconds),
            trigger_execution_ms=round(seconds * 1000),
        )
        self._began = began
        if log.isEnabledFor(logging.INFO):
            log.info("the pipeline made progress: %s", json.dumps(self._last.plain()))

    def now(self, now: float) -> SourceProgress:
        """Return the progress of the last step; its rates are 0 when it was long ago."""
        if self._began is None or now - self._began < IDLE_SECONDS:
            return self._last
        return replace(self._last, input_rows_per_second=0.0, processed_rows_per_second=0.0)


def _rate(rows: int, seconds: float) -> float:
    """Return rows a second; 0 where there is no time to divide by."""
    return round(rows / seconds, 3) if seconds > 0 else 0.0
