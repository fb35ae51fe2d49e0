from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Self

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.cli.programs import Program
from tests.lake.journals import Here, write
from tests.lake.rowsof import Row
from zenlake.cli.app import application
from zenlake.cli.sql import Format, _arrow, _lines, show_table
from zenlake.lake import Pipeline, read_config
from zenlake.lake.query.executor import one_line
from zenlake.lake.service.loop import Loop
from zenlake.lake_client import ERROR, HEAD, PAGE
from zenlake.supervise.pid_file import PidFile


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


def refused(*arguments: str) -> str:
    """What is said, in one line, of something that cannot be done."""
    found = CliRunner().invoke(application(arguments), arguments, catch_exceptions=False)
    assert found.exit_code in (1, 2)
    (line,) = found.output.splitlines()
    return line


def test_status_tells_how_large_and_how_far_each_table_is(lake: Path) -> None:
    journal = str(lake.parent / "journal")
    write(lake.parent / "journal", [Row("k/0", b"", 99)])
    facts = json.loads(told("lake", "status", "--lake", str(lake), "--journal", journal, "--json"))
    samples = next(one for one in facts["tables"] if one["name"] == "samples")
    assert (samples["rows"], samples["behind"], samples["files"]) == (30, 1, 1)
    assert (facts["rows"], facts["lag"], facts["state"]) == (30, 1, "stopped")
    assert facts["bytes_total"] > facts["bytes_live"] > 0
    lines = told("lake", "status", "--lake", str(lake), "--journal", journal).splitlines()
    assert lines[0].split() == ["table", "rows", "files", "MB", "version", "behind"]
    assert "pipeline    no pipeline runs" in lines
    lines = told("lake", "status", "--lake", str(lake), "--journal", "gone").splitlines()
    assert {line.split()[-1] for line in lines[1:5]} == {"-"}


def test_a_table_lacks_only_what_it_wants(tmp_path: Path) -> None:
    write(tmp_path / "journal", [Row(f"k/{n % 3}", b"%d" % n, at=n) for n in range(30)])
    config = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), config)
    loop = Loop(pipeline, Here())
    loop.turn(0.0)  # and then it is killed
    arguments = ("--lake", str(tmp_path / "lake"), "--journal", str(tmp_path / "journal"))
    facts = json.loads(told("lake", "status", *arguments, "--json"))
    assert {one["name"]: one["behind"] for one in facts["tables"]} == {
        "gaps": 0, "latest": 0, "pose": 0, "quarantine": 0, "samples": 0
    }  # fmt: skip


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
    ("arguments", "words"),
    [
        (("lake", "run", "--once", "--journal", "gone"), "gone is not a journal"),
        (("lake", "status", "--lake", "gone"), "gone is no lake"),
        (("sql", "SELECT 1", "--lake", "gone"), "gone is no lake"),
        (("lake", "retain", "--lake", "gone"), "nothing says how long"),
        (("lake", "run", "--config", "gone.json5"), "cannot read gone.json5"),
        (("lake", "run", "--every", "soon"), "'soon' is not --every"),
        (("lake", "rebuild", "pose"), "there is no typed table 'pose'"),
        (("lake", "rebuild"), "say which table"),
        (("lake", "forget"), "Missing argument 'KEYEXPR'"),
        (("lake", "retian"), "No such command 'retian'. Did you mean 'retain'?"),
        (("lake", "compact", "--once"), "No such option: --once"),
    ],
)
def test_what_cannot_work_is_refused_before_spark_starts(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refused(*arguments)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM sampels", "did you mean 'samples'"),
        ("SELECT kye FROM samples", "did you mean 'key'"),
    ],
)
def test_a_question_about_nothing_is_refused_before_spark_starts(
    lake: Path, query: str, words: str
) -> None:
    assert words in refused("sql", query, "--lake", str(lake))


def test_what_spark_refuses_is_one_line_without_codes() -> None:
    told = (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FORM'. SQLSTATE: 42601 (line 1, pos 9)\n\n"
        "== SQL ==\nSELECT * FORM samples\n---------^^^\n"
    )
    assert one_line(told) == "Syntax error at or near 'FORM'. (line 1, pos 9)"
    told = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. "
        "SQLSTATE: 42703; line 1 pos 7;\n'Project ['x]\n+- OneRowRelation\n"
    )
    assert one_line(told) == "A column with name `x` cannot be resolved (line 1, column 8)"


ANSWER = pa.table(
    {
        "key": ["a/b", None],
        "value": [b"text", b"\xff\x00"],
        "time": pa.array([0, 1_500_000], pa.timestamp("us", tz="UTC")),
        "list": [[1, 2], None],
    }
)


def test_answers_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(ANSWER, 1)
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "key │ value │ time                       │ list",
        "────┼───────┼────────────────────────────┼───────",
        "a/b │ text  │ 1970-01-01 00:00:00.000000 │ [1, 2]",
    ]
    assert "more than 1 rows" in err
    show_table(pa.table({"text": ["\x1b[2J gone"]}), 1)
    assert "\x1b" not in capsys.readouterr().out


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


class StartingLake:
    """A `zenlake up` that is starting its lake, as other programs see it."""

    def __init__(self, data: Path) -> None:
        data.mkdir()
        self.data = data
        self._pid_file = PidFile(data)
        self.state("starting")

    def state(self, state: str) -> None:
        parts = [{"name": "router", "state": "up"}, {"name": "lake", "state": state}]
        self._pid_file.write_status(json.dumps({"parts": parts}))

    def answer_once(self, words: str) -> None:
        """Be up: hear one question, and refuse it with these words."""
        (self.data / "lake").mkdir()
        place = str(self.data / "ask")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place)
            listening.listen()
            (self.data / "lake" / PAGE).write_text(json.dumps({"socket": place}))
            line, _ = listening.accept()
            with line:
                assert json.loads(line.makefile().readline())["sql"] == "SELECT 1"
                fact = json.dumps({"error": words}).encode()
                line.sendall(HEAD.pack(ERROR, len(fact)) + fact)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pid_file.release()


def test_sql_waits_for_a_lake_that_is_starting(tmp_path: Path) -> None:
    with StartingLake(tmp_path / "data") as starting:
        where = starting.data / "lake"
        words = ("-m", "zenlake", "sql", "SELECT 1", "--lake", str(where))
        with Program(*words) as asking:
            asking.says(
                f"zenlake: the lake in {where} is starting; it is asked as soon as it is up"
            )
            starting.answer_once("the lake was asked")
            asking.says("the lake was asked")
            assert asking.ends() == 2
    assert not [line for line in asking.lines if "a Spark is started" in line]


def test_sql_waits_no_longer_for_a_lake_that_failed_to_start(tmp_path: Path) -> None:
    with StartingLake(tmp_path / "data") as starting:
        words = ("-m", "zenlake", "sql", "SELECT 1 FROM samples", "--lake")
        with Program(*words, str(starting.data / "lake")) as asking:
            asking.says("is starting")
            starting.state("resting")
            asking.says("is no lake: there is no table in it")
            assert asking.ends() == 2
