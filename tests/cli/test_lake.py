from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.lake.journals import Here, write
from tests.lake.rowsof import Row
from zenlake.cli.app import application
from zenlake.cli.sql import Format, _arrow, _lines, _table
from zenlake.errors import ConfigError, JournalError, LocalError
from zenlake.lake import Pipeline


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path / "journal", [Row(f"k/{n % 3}", b"%d" % n, at=n) for n in range(30)])
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here())
    pipeline.step()
    pipeline.finish()
    return tmp_path / "lake"


def told(*arguments: str) -> str:
    found = CliRunner().invoke(application(arguments), arguments, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def test_status_tells_how_large_and_how_far_each_table_is(lake: Path) -> None:
    journal = str(lake.parent / "journal")
    write(lake.parent / "journal", [Row("k/0", b"", 99)])
    facts = json.loads(told("lake", "status", "--lake", str(lake), "--journal", journal, "--json"))
    samples = next(one for one in facts if one["table"] == "samples")
    assert (samples["rows"], samples["behind"], samples["files"]) == (30, 1, 1)
    lines = told("lake", "status", "--lake", str(lake), "--journal", journal).splitlines()
    assert lines[0].split() == ["table", "rows", "files", "MB", "version", "behind"]
    lines = told("lake", "status", "--lake", str(lake), "--journal", "gone").splitlines()
    assert {line.split()[-1] for line in lines[1:]} == {"-"}


def test_tables_tells_their_columns(lake: Path) -> None:
    facts = json.loads(told("lake", "tables", "--lake", str(lake), "--json"))
    assert facts["samples"]["key"] == "string"
    assert "  hlc" in told("lake", "tables", "--lake", str(lake))


def test_vacuum_says_what_it_would_do(lake: Path) -> None:
    (lake / "samples" / "orphan.parquet").write_bytes(b"")
    arguments = ("lake", "vacuum", "--lake", str(lake), "--older", "0s")
    assert json.loads(told(*arguments, "--dry-run", "--json"))["samples"] == 1
    assert "samples: 1 files deleted" in told(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("lake", "run", "--once", "--journal", "gone"), JournalError),
        (("lake", "status", "--lake", "gone"), LocalError),
        (("sql", "SELECT 1", "--lake", "gone"), LocalError),
        (("lake", "retain", "--lake", "gone"), ConfigError),
        (("lake", "run", "--config", "gone.json5"), ConfigError),
        (("lake", "run", "--every", "soon"), ConfigError),
    ],
)
def test_what_cannot_work_is_refused_before_spark_starts(
    arguments: tuple[str, ...],
    error: type[Exception],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        told(*arguments)


ANSWER = pa.table(
    {
        "key": ["a/b", None],
        "value": [b"text", b"\xff\x00"],
        "time": pa.array([0, 1_500_000], pa.timestamp("us", tz="UTC")),
        "list": [[1, 2], None],
    }
)


def test_answers_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    _table(ANSWER, 1)
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "key │ value │ time                       │ list",
        "────┼───────┼────────────────────────────┼───────",
        "a/b │ text  │ 1970-01-01 00:00:00.000000 │ [1, 2]",
    ]
    assert "more than 1 rows" in err


def test_answers_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    _lines(ANSWER, Format.JSON)
    first, second = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert first == {
        "key": "a/b",
        "value": "text",
        "time": "1970-01-01T00:00:00+00:00",
        "list": [1, 2],
    }
    assert (second["key"], second["value"]) == (None, "ff00")
    _lines(ANSWER.select(["key", "value"]), Format.CSV)
    assert capsys.readouterr().out == "key,value\na/b,text\n,ff00\n"


def test_answers_as_arrow(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    _arrow(ANSWER)
    assert pa.ipc.open_stream(capsysbinary.readouterr().out).read_all() == ANSWER
