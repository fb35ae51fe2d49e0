"""Tables that appear by themselves, from the journal to their rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.lake.crashing import dying
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake import LakeConfig, Pipeline, read_config

AUTOMATIC = read_config("{}")
NO_ENCODING = 0
CBOR = 8
UNKNOWN = 4000


def put(key: str, value: object, at: int = 0, encoding: int = NO_ENCODING) -> Row:
    payload = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Row(key, payload, at=at, encoding=encoding)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "lake", tmp_path / "journal"


def fill(lake: Path, journal: Path, config: LakeConfig = AUTOMATIC) -> Pipeline:
    """Fill all tables, with those that are found on the way."""
    pipeline = Pipeline(str(lake), str(journal), Here(), config)
    while pipeline.step().behind or pipeline.settle(0.0):
        pass
    pipeline.finish()
    return pipeline


def found(lake: Path) -> set[str]:
    fixed = {"samples", "latest", "gaps", "quarantine"}
    return {one.name for one in lake.iterdir() if not one.name.startswith(".")} - fixed


def test_keys_that_nobody_configured_become_tables_with_their_first_rows(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    rows = [put(f"robot/{n}/battery", {"percent": 40 + n}) for n in range(3)]
    rows += [put("plant/a/line/3/motor/temp", 71.5), put("hello/world", b"good morning")]
    rows.append(put("car/x1/state", bytes.fromhex("a16573706565640c"), encoding=CBOR))
    write(journal, rows)
    fill(lake, journal)
    assert found(lake) == {"battery", "temp", "world", "state"}
    battery = {(row["id"], row["percent"]) for row in rows_of(lake, "battery")}
    assert battery == {("0", 40), ("1", 41), ("2", 42)}
    (temp,) = rows_of(lake, "temp")
    assert (temp["plant"], temp["line"], temp["number"]) == ("a", "3", 71.5)
    assert [row["text"] for row in rows_of(lake, "world")] == ["good morning"]
    assert [(row["id"], row["speed"]) for row in rows_of(lake, "state")] == [("x1", 12)]
    assert DeltaTable(str(lake / "battery")).metadata().description == (
        "Samples of robot/${id:*}/battery."
    )


def test_a_new_key_waits_two_seconds_for_its_siblings(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [put("home/kitchen/temp", 20), put("home/kitchen/temp", 21)])
    pipeline = Pipeline(str(lake), str(journal), Here(), AUTOMATIC)
    pipeline.step(10.0)
    assert (found(lake), pipeline.found.waiting) == (set(), 1)
    assert not pipeline.retries(11.9)
    write(journal, [put("home/garage/temp", 5)])
    pipeline.step(11.0)
    assert pipeline.retries(12.0)
    while pipeline.step(12.0).behind:
        pass
    # One of them was new a moment ago: both are of one family all the same.
    assert found(lake) == {"temp"}
    numbers = sorted((row["id"], row["number"]) for row in rows_of(lake, "temp"))
    assert numbers == [("garage", 5.0), ("kitchen", 20.0), ("kitchen", 21.0)]


def test_a_table_begins_where_its_first_key_came(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [put("robot/1/pose", {"x": n}) for n in range(50)])
    fill(lake, journal)
    write(journal, [put("robot/1/fault", {"code": n}) for n in range(3)])
    since = fill(lake, journal).found.since("fault")
    assert sorted(row["code"] for row in rows_of(lake, "fault")) == [0, 1, 2]
    assert sum(since.values()) == 50


def test_what_was_found_stays_as_it_is_after_a_restart(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [put("robot/1/battery", {"percent": 1})])
    first = fill(lake, journal).found.specs
    write(journal, [put("truck/1/battery", {"percent": 2}), put("robot/2/battery", {"percent": 3})])
    again = fill(lake, journal).found.specs
    assert {name: again[name] for name in first} == first
    assert again.keys() - first.keys() == {"truck_battery"}
    assert {row["percent"] for row in rows_of(lake, "battery")} == {1, 3}


def test_configured_tables_win_and_families_can_be_switched_off(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    lake, journal = folders
    write(journal, [put("robot/1/battery", {"percent": 1}), put("robot/1/pose", {"x": 1})])
    fill(lake, journal, read_config('{tables: {level: {format: "robot/${id}/battery"}}}'))
    assert found(lake) == {"level", "pose"}
    for number, text in enumerate(('{tables: "configured"}', "{families: false}")):
        fill(tmp_path / str(number), journal, read_config(text))
        assert found(tmp_path / str(number)) == set()


def test_payloads_that_nobody_reads_make_no_table_and_are_named(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    write(
        journal,
        [
            put("robot/1/camera", b"\xff\xd8\x00\x01"),
            put("robot/1/firmware", b"\x01\x02", encoding=UNKNOWN),
            put("1/2/3", {"a": 1}),
        ],
    )
    pipeline = fill(lake, journal)
    assert found(lake) == set()
    named = {one.reason.split(";")[0]: one.examples for one in pipeline.found.refusals}
    assert named == {
        "payloads that no decoder reads": ("robot/1/camera", "robot/1/firmware"),
        "keys of which every chunk varies": ("1/2/3",),
    }
    write(journal, [put("robot/1/camera", {"exposure": 3})])
    fill(lake, journal)
    assert found(lake) == {"camera"}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("count", range(1, 6))
def test_killed_at_any_commit_each_row_is_in_its_table_once(
    folders: tuple[Path, Path], count: int, after: bool
) -> None:
    lake, journal = folders
    keys = ("robot/1/pose", "robot/2/pose", "home/kitchen/temp", "home/attic/temp")
    write(journal, [put(keys[n % 4], {"n": n}) for n in range(20)])
    with dying(count, after=after):
        fill(lake, journal)
    fill(lake, journal)
    assert found(lake) == {"pose", "temp"}
    for name, places in (("pose", (0, 1)), ("temp", (2, 3))):
        mine = sorted(row["n"] for row in rows_of(lake, name))
        assert mine == [n for n in range(20) if n % 4 in places]
