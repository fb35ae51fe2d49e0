from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.programs import COMMAND, Program, run_alone
from tests.journal.heard import Row
from tests.journal.written import write_rows
from zenlake.journal import partition_of

ROWS = [
    Row("a/b", sn=0, hlc=1 << 32, value=b"one"),
    Row("c", hlc=2 << 32, value=b"\x00\xff"),
    Row("a/b", sn=3, hlc=3 << 32, kind=1, value=b""),
]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    write_rows(tmp_path / "j", ROWS)
    return str(tmp_path / "j")


def test_ls_lists_segments_and_the_watermark(folder: str) -> None:
    code, lines = run_alone("journal", "ls", folder)
    assert code == 0
    assert "2 keys" in lines[0]
    assert lines[-1].startswith("'j' ")
    assert lines[-1].endswith("durable up to 3")
    code, lines = run_alone("journal", "ls", folder, "--json")
    assert json.loads(lines[0])["end"] == 3


def test_cat_prints_rows(folder: str) -> None:
    code, lines = run_alone("journal", "cat", folder)
    assert code == 0
    assert "put a/b: one" in lines[0]
    assert "0x00ff" in lines[1]
    assert "delete a/b" in lines[2]
    _, lines = run_alone("journal", "cat", folder, "--json", "-k", "a/**", "--start", "1")
    (row,) = map(json.loads, lines)
    assert (row["offset"], row["kind"], row["source_sn"], row["origin"]) == (
        2,
        "delete",
        3,
        "heard",
    )


def test_cat_takes_a_range_of_time(folder: str) -> None:
    _, lines = run_alone(
        "journal", "cat", folder, "--time",
        "]2038-01-19T03:14:09Z..2038-01-19T03:14:11Z[",
    )  # fmt: skip
    assert [line.split()[2].rstrip(":") for line in lines] == ["c"]


@pytest.mark.parametrize("partitions", [1, 2])
def test_cat_follows_what_comes(tmp_path: Path, partitions: int) -> None:
    write_rows(tmp_path, ROWS[:1], partitions=partitions)
    with Program("-c", COMMAND, "journal", "cat", str(tmp_path), "-f", "--json") as following:
        first = json.loads(following.says('"offset": 0'))
        assert (first["key"], first["partition"]) == ("a/b", partition_of("a/b", partitions))
        write_rows(tmp_path, ROWS[2:], partitions=partitions)
        following.says('"offset": 1')
        assert following.interrupt() == 130


def test_verify_says_what_is_sound(folder: str) -> None:
    code, lines = run_alone("journal", "verify", folder)
    assert code == 0
    assert any("3 rows in 1 segments" in line and "sound" in line for line in lines)
    assert any("2 missing" in line for line in lines)


def test_verify_ends_with_one_when_something_is_wrong(folder: str) -> None:
    (Path(folder) / "watermark.json").write_text("{}")
    code, lines = run_alone("journal", "verify", folder, "--json")
    assert code == 1
    assert lines


def test_rows_go_out_and_come_back(folder: str, tmp_path: Path) -> None:
    for form in ("parquet", "mcap"):
        file = str(tmp_path / f"x.{form}")
        assert run_alone("journal", "export", folder, f"--{form}", file)[0] == 0
        code, lines = run_alone("journal", "import", str(tmp_path / form), file)
        assert (code, lines) == (0, [f"3 rows from {file}"])
        assert "imported" in run_alone("journal", "cat", str(tmp_path / form))[1][0]


def test_an_export_needs_one_kind_of_file(folder: str) -> None:
    assert run_alone("journal", "export", folder)[0] == 2


def test_the_ledger_lists_gaps_and_what_cannot_be_proved(folder: str) -> None:
    code, lines = run_alone("ledger", folder)
    assert code == 1, "something is missing"
    assert any(line.startswith("b0a:7") for line in lines)
    assert any("missing 1..2" in line for line in lines)
    assert any(line.split() == ["1", "c"] for line in lines)
    total = next(line for line in lines if line.startswith("total"))
    assert total.split() == ["total", "4", "2", "2", "0", "0", "0", "1", "source"]
    assert lines[-1] == "2 of 4 numbered samples are missing"
    assert all(len(line) <= 200 for line in lines)
    _, lines = run_alone("ledger", folder, "--json")
    assert json.loads(lines[0])["totals"]["missing"] == 2


def test_a_folder_that_is_no_journal_is_told_in_one_line(tmp_path: Path) -> None:
    code, lines = run_alone("journal", "ls", str(tmp_path))
    assert code == 1
    assert "is not a journal" in lines[0]


def test_what_is_not_installed_is_named_with_the_extra_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("zenlake.journal")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, lines = run_alone("journal", "ls", str(tmp_path))
    assert code == 1
    assert lines == [
        "zenlake: this needs pyarrow, which is not installed: pip install 'zenlake[journal]'"
    ]


def test_a_ledger_is_that_of_the_usual_journal_unless_another_is_named(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, lines = run_alone("ledger")
    assert code == 1
    assert "zenlake-data/journal is not a journal" in lines[0]
    (tmp_path / "zenlake-data").mkdir()
    (tmp_path / "zenlake-data" / "journal").symlink_to(folder)
    code, lines = run_alone("ledger", "--totals")
    assert code == 1
    assert lines[-1] == "2 of 4 numbered samples are missing"
    assert run_alone("ledger", folder, "--name", "flight")[0] == 2


@pytest.mark.parametrize(
    ("option", "text"),
    [("--segment-size", "much"), ("--retain-age", "5 moons"), ("--retain", "camera")],
)
def test_quantities_that_make_no_sense_are_refused(tmp_path: Path, option: str, text: str) -> None:
    code, lines = run_alone("record", "-k", "a", "--to", str(tmp_path), option, text)
    assert code == 2
    assert any(text in line for line in lines)
