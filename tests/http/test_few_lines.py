"""Strangers fill no log over HTTP."""

from __future__ import annotations

import logging

from zenlake.http.few_lines import LINES, PERIOD, FewLines


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, text, ("x",), None)


def test_so_many_lines_in_a_minute_and_the_last_says_that_there_are_more() -> None:
    now = [0.0]
    few = FewLines(lambda: now[0])
    records = [record("no HTTP: %s") for _ in range(1000)]
    written = [one.getMessage() for one in records if few.filter(one)]
    assert len(written) == LINES
    assert written[0] == "no HTTP: x"
    assert written[-1].startswith("no HTTP: x (no more such lines")
    assert few.left_out == 1000 - LINES
    now[0] = PERIOD
    assert few.filter(record("again %s"))
