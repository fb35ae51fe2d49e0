"""What a status says of expectations, and of a flow that one of them stopped; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from zenlake.lake.model.status import ExpectationStatus
from zenlake.pipelines import FAILED_PREFIX, UNMET, Expectation

__all__ = ["expectation_status", "rate_of", "unmet_expectation", "without_row"]

MOST_MESSAGE_CHARACTERS: Final = 1500
"""Characters of the message about a row that stopped a flow."""

Counts = Mapping[str, tuple[int, int]]
"""By expectation: rows that met it, and rows that did not."""


def expectation_status(expectation: Expectation, now: Counts, start: Counts) -> ExpectationStatus:
    """Return what a status says of an expectation.

    `start`: the counts when the lake was started. A table that was computed again since has smaller
    ones: all of them are new.
    """
    passed, failed = now.get(expectation.name, (0, 0))
    before = start.get(expectation.name, (0, 0))
    if before[0] > passed or before[1] > failed:
        before = 0, 0
    return ExpectationStatus(
        expectation.name,
        str(expectation.violation),
        passed,
        failed,
        passed - before[0],
        failed - before[1],
    )


def rate_of(progress: Mapping[str, Any], name: str) -> float:
    """Return a rate of a progress of Spark; 0 where Spark has none yet."""
    value = progress.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def unmet_expectation(text: str) -> str:
    """Return which row did not meet which expectation, from what a query failed with.

    Spark gives the traceback of a task, or the message of `raise_error` amid a message of its own;
    empty if no expectation ended the query.
    """
    at = text.rfind(FAILED_PREFIX)
    if at < 0:
        return ""
    line = text[at + len(FAILED_PREFIX) :].partition("\n")[0].partition(" SQLSTATE: ")[0].strip()
    return line[:MOST_MESSAGE_CHARACTERS]


def without_row(why: str, name: str) -> str:
    """Return why a flow is stopped without the row that stopped it.

    A status and the lines that are told go to more people than may read every key; the lake's
    socket is its operator's.
    """
    told, found, _ = why.partition(UNMET)
    return f"{told}{UNMET}that `zenlake pipeline describe {name}` shows" if found else why
