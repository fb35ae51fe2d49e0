from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from zenlake.cli.plot import bars, drawn, line
from zenlake.cli.sql import fitting
from zenlake.cli.sql_shell import Shell
from zenlake.errors import LocalError

TABLES = {"samples": {"key": "string", "value": "binary"}, "pose": {"x": "double"}}


def shell(asked: list[str]) -> Shell:
    def answer(query: str, first: int | None) -> pa.Table:
        asked.append(query)
        if "wrong" in query:
            raise LocalError("there is no table 'wrong'")
        return pa.table({"n": [1, 2]})

    return Shell(answer, lambda: TABLES, 10)


def test_a_question_ends_with_a_semicolon_or_an_empty_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []
    told = shell(asked)
    assert told.line("SELECT *")
    assert told.prompt.strip() == "...>"
    assert told.line("FROM samples;")
    assert told.line("SELECT 1")
    assert told.line("")
    assert told.line("SELECT 2")
    told.interrupted()
    assert told.line(r"\timing")
    assert told.line("SELECT wrong;")
    assert asked == ["SELECT *\nFROM samples", "SELECT 1", "SELECT wrong"]
    out = capsys.readouterr()
    assert "timing is on" in out.out
    assert "no table 'wrong'" in out.err
    assert not told.line(r"\q")
    assert not told.line("exit;")


def test_tables_are_described_and_completed(capsys: pytest.CaptureFixture[str]) -> None:
    told = shell([])
    told.line(r"\d")
    told.line(r"\d pose")
    told.line(r"\d nothing")
    out = capsys.readouterr().out
    assert "samples          key, value" in out
    assert "x                    double" in out
    assert "no table 'nothing'" in out
    assert told.completions("sa") == ["samples"]
    assert told.completions("samples.v") == ["samples.value"]
    assert told.completions("SEL") == ["SELECT"]
    assert told.completions("\\") == ["\\d", "\\timing", "\\plot", "\\q"]


def test_columns_fit_a_line() -> None:
    assert fitting([10, 5], 0) == [10, 5]
    assert sum(fitting([100, 50, 4], 40)) <= 40 - 6
    assert fitting([100, 50, 4], 40)[2] == 4


def test_numbers_over_time_are_a_line_and_over_words_bars() -> None:
    start = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    moments = [start + datetime.timedelta(minutes=n) for n in range(50)]
    chart = drawn(pa.table({"t": moments, "x": [n * n for n in range(50)]}), 60)
    assert len(chart.splitlines()) == 13
    assert chart.splitlines()[0].startswith("2401 ┤")
    assert "2026-01-31 00:49:00" in chart
    assert "█" in drawn(pa.table({"key": ["a", "b"], "n": [1, 4]}), 60)
    assert drawn(pa.table({"n": pa.array([], pa.int64())})).startswith("nothing to draw")
    with pytest.raises(LocalError, match="no numbers"):
        drawn(pa.table({"key": ["a"], "word": ["b"]}))
    assert line([(0.0, 1.0)], ["0", "0"], 30)
    # Two points are the ends of a line: there is no column without a dot of it.
    columns = zip(*(row.partition("┤")[2] for row in chart_of_two().splitlines()[:-1]), strict=True)
    assert all(any(dots != "\u2800" for dots in column) for column in columns)
    assert bars(["a"] * 50, [None] * 50, 40).endswith("… and 10 more")


def chart_of_two() -> str:
    return line([(10.0, 10.0), (0.0, 0.0)], ["0", "10"], 30)
