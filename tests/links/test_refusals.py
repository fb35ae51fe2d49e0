"""Strangers who are not let in fill no log."""

from __future__ import annotations

import logging

import pytest

from zenlake.links.refusals import LINES, RefusalLog


def test_a_crowd_that_is_refused_gets_a_bounded_number_of_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    refusals = RefusalLog(lambda: now[0])
    with caplog.at_level(logging.WARNING, "zenlake.links"):
        for port in range(1000):
            refusals.warn(f"not let in: 10.0.0.1:{port}")
        assert len(caplog.messages) == LINES
        assert caplog.messages[-1].endswith("; no more such lines for 60 s")
        now[0] = 60.0
        refusals.warn("not let in: 10.0.0.1:1001")
    assert caplog.messages[-1] == "not let in: 10.0.0.1:1001"
