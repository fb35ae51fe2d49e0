"""An alert tried over history: which microseconds are in its range."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from zenlake.errors import LocalError, SelectorError
from zenlake.lake.continuous.backtest import span_between, span_of, trial
from zenlake.lake.maintain.definition_store import new_definition
from zenlake.lake.query.executor import SqlQuestion

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW = 1_770_000_000_123_456_789
A, B = "2026-01-31T12:00:00Z", "2026-01-31T12:01:15.000001Z"
END = NOON + timedelta(seconds=75, microseconds=1)
ONE = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        (f"[{A}..{B}]", NOON, END + ONE),
        (f"[{A}..{B}[", NOON, END),
        # Rows have microseconds: of the first one something is later than its start.
        (f"]{A}..{B}[", NOON, END),
        (f"]2026-01-31T11:59:59.999999999Z..{B}[", NOON, END),
        (f"[{A}..{A}]", NOON, NOON + ONE),
        (f"[{A};75s[", NOON, END - ONE),
    ],
)
def test_a_range_has_the_microseconds_that_its_brackets_say(
    text: str, start: datetime, end: datetime
) -> None:
    assert span_of(text, NOW) == (start, end)


def test_a_range_without_an_end_ends_now() -> None:
    (_, end) = span_of(f"[{A}..]", NOW)
    # As a float this nanosecond is in another microsecond.
    assert end == datetime.fromtimestamp(1_770_000_000, UTC) + timedelta(microseconds=123_457)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"[..{B}]", "has no start"),
        (f"]{A}..{A}]", "no time lies in that range"),
        (f"[{B}..{A}]", "no time lies in that range"),
        ("[9999-01-01T00:00:00Z..]", "no time lies in that range"),
    ],
)
def test_a_range_without_a_moment_is_refused(text: str, why: str) -> None:
    with pytest.raises(SelectorError, match=why):
        span_of(text, NOW)


def test_options_say_a_range_without_its_end() -> None:
    assert span_between(A, B, NOW) == (NOON, END)
    with pytest.raises(LocalError, match="nothing lies between"):
        span_between(A, A, NOW)
    with pytest.raises(LocalError, match="--to noon"):
        span_between(A, "noon", NOW)


def raised(text: str) -> list[dict[str, Any]]:
    """The changes of an alert that holds from noon on, with a hold of 75 s."""
    held = pa.table({"_time": [NOON], "_holds": [True], "_subject": ["a"], "p": [1]})
    asked: list[SqlQuestion] = []

    def run(question: SqlQuestion) -> pa.Table:
        asked.append(question)
        return held

    alert = new_definition("low", "alert", "SELECT p FROM b WHERE p < 5", hold=75.0)
    start, end = span_of(text, NOW)
    changes = trial(run, alert, start, end, lambda: False)
    (question,) = asked
    assert f"{start:%Y-%m-%d %H:%M:%S.%f}Z" in question.text
    assert f"{end:%Y-%m-%d %H:%M:%S.%f}Z" in question.text
    return changes


def test_what_is_raised_at_the_end_is_in_the_range_that_has_its_end() -> None:
    (change,) = raised(f"[{A}..2026-01-31T12:01:15Z]")
    assert (change["state"], change["time"]) == ("raised", "2026-01-31T12:01:15+00:00")
    assert raised(f"[{A}..2026-01-31T12:01:15Z[") == []
