"""Tables that all questions share: opened when they are first named, and looked at again."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lake.opened_tables import note_opened_tables
from zenlake.lake.history.samples import History
from zenlake.lake.model.sample_rows import DAY, SAMPLES
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.query.planner import count_of, references
from zenlake.lake.query.referenced_tables import Unanswerable
from zenlake.lake.table.delta import CorruptTable, Table
from zenlake.lake.table.location import LakeLocation

SCHEMA = pa.schema([("n", pa.int64()), ("day", pa.date32())])
NAMES = ("first", "second", "third")


@pytest.fixture
def place(tmp_path: Path) -> LakeLocation:
    place = LakeLocation(tmp_path)
    for name in NAMES:
        Table.create(place, name, SCHEMA, "day")
    return place


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return note_opened_tables(monkeypatch)


def test_a_question_loads_the_tables_that_it_names_once(
    place: LakeLocation, opened: list[str]
) -> None:
    catalog = Catalog(place)
    for _ in range(3):
        question, tables = references(catalog, "SELECT n FROM Second")
        assert (set(question.tables), set(tables)) == ({"second"}, {"second"})
    assert opened == ["second"]


def test_a_question_about_a_time_loads_the_tables_that_it_names_once(
    place: LakeLocation, opened: list[str]
) -> None:
    now = datetime.now(UTC)
    question, tables = references(Catalog(place), "SELECT a.n FROM second a, Second b", now)
    assert (set(question.tables), set(tables)) == ({"second"}, {"second"})
    assert opened == ["second"]


def test_a_lake_is_not_empty_once_a_table_is_found(place: LakeLocation, opened: list[str]) -> None:
    assert not Catalog(place).is_empty()
    assert opened == ["first"]


def test_what_cannot_be_read_by_its_names_may_be_about_any_table(
    place: LakeLocation, opened: list[str]
) -> None:
    _, tables = references(Catalog(place), "FROM first |> AGGREGATE ((")
    assert sorted(tables) == sorted(opened) == sorted(NAMES)


def test_a_commit_is_seen_by_the_next_question(place: LakeLocation) -> None:
    catalog = Catalog(place)
    before = catalog.table("first")
    assert before is not None
    assert catalog.table("first") is before
    other = Table.open(place, "first")
    assert other is not None
    other.remember(86400.0 * 30)
    after = catalog.table("first")
    assert after is not None
    assert (before.version, after.version) == (0, 1)


def test_history_and_sql_share_a_table(place: LakeLocation, opened: list[str]) -> None:
    Table.create(place, "samples", SAMPLES, DAY)
    opened.clear()
    catalog = Catalog(place)
    history = History(catalog, [])
    first = history.look()
    _, tables = references(catalog, "SELECT key FROM samples")
    assert tables["samples"].actions is first.files is history.look().files
    assert opened == ["samples"]


def test_a_table_that_was_made_again_under_its_name_is_another(
    place: LakeLocation, tmp_path: Path
) -> None:
    catalog = Catalog(place)
    assert catalog.table("first") is not None
    shutil.rmtree(tmp_path / "first")
    Table.create(place, "first", pa.schema([*SCHEMA, ("more", pa.string())]), "day")
    _, tables = references(catalog, "SELECT more FROM first")
    assert "more" in tables["first"].schema.names
    shutil.rmtree(tmp_path / "first")
    with pytest.raises(Unanswerable, match="there is no table 'first'"):
        references(catalog, "SELECT more FROM first")


def test_a_folder_without_a_log_is_no_table(place: LakeLocation, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for rows in ("empty", "empty, range(3)"):
        with pytest.raises(Unanswerable, match="there is no table 'empty'"):
            references(Catalog(place), f"SELECT * FROM {rows}")
    assert count_of(Catalog(place), "SELECT count(*) FROM empty") is None


def test_a_corrupt_table_stops_only_the_questions_that_name_it(
    place: LakeLocation, tmp_path: Path
) -> None:
    (tmp_path / "second" / "_delta_log" / f"{0:020}.json").write_text("{")
    catalog = Catalog(place)
    _, tables = references(catalog, "SELECT n FROM first")
    assert list(tables) == ["first"]
    with pytest.raises(CorruptTable):
        references(catalog, "SELECT n FROM second")
    found, corrupt = catalog.tables()
    assert (sorted(found), sorted(corrupt)) == (["first", "third"], ["second"])
