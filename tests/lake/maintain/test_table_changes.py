"""Tables that commands make, change, rename, merge and remove."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.lake.ingest.test_found_tables import AUTOMATIC, fill, found, put
from tests.lake.journals import Here, rows_of, write
from zenlake.errors import ConfigError, LocalError
from zenlake.lake import Pipeline, read_config
from zenlake.lake.decode.table_store import TableStore
from zenlake.lake.maintain.definition_store import ContinuousQueryStore, new_definition
from zenlake.lake.maintain.suggest import keys_of, suggest
from zenlake.lake.maintain.table_changes import TableChanges
from zenlake.lake.table.location import LakeLocation

CONFIGURED = read_config('{tables: {pose: {format: "robot/${id}/pose"}}, families: false}')


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    rows = [put(f"robot/{n}/pose", {"x": n}) for n in range(3)]
    rows += [put("home/kitchen/temp", 20.5), put("home/attic/temp", 9)]
    rows.append(put("home/attic/temp", b"warm"))
    write(journal, rows)
    fill(lake, journal, CONFIGURED)
    return lake, journal


def changes(lake: Path) -> TableChanges:
    place = LakeLocation(lake)
    return TableChanges(place, CONFIGURED, TableStore(place))


def test_a_table_that_is_added_has_all_of_history_and_goes_on(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    entry = {"format": "home/${room}/temp", "columns": {"number": "double"}}
    done = changes(lake).add("climate", entry, Here())
    assert (done.name, done.format, done.rows) == ("climate", "home/${room:*}/temp", 3)
    write(journal, [put("home/cellar/temp", 12)])
    fill(lake, journal, CONFIGURED)
    numbers = {(row["room"], row["number"], row["text"]) for row in rows_of(lake, "climate")}
    assert numbers == {
        ("kitchen", 20.5, "20.5"),
        ("attic", 9.0, "9"),
        ("attic", None, "warm"),
        ("cellar", 12.0, "12"),
    }


def test_a_table_may_be_changed_renamed_and_removed(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    do = changes(lake)
    do.add("temp", {"format": "home/${id}/temp", "encoding": "application/json"}, Here())
    assert {row["table"] for row in rows_of(lake, "quarantine")} == {"temp"}
    assert do.set("temp", {"encoding": None}, Here()).refused == 0
    assert do.rename("temp", "climate", Here()).rows == 3
    assert found(lake) == {"pose", "climate"}
    do.remove("climate", Here())
    assert found(lake) == {"pose"}
    assert [one.name for one in do.listed()] == []
    # One of the same name and with what it refuses begins anew.
    again = do.add("temp", {"format": "home/${id}/temp", "encoding": "application/json"}, Here())
    assert (again.rows, again.refused) == (2, 1)
    write(journal, [put("home/x/temp", b"cold")])
    fill(lake, journal, CONFIGURED)
    assert {row["value"] for row in rows_of(lake, "quarantine")} == {b"warm", b"cold"}


def test_two_tables_become_one_with_the_keys_of_both(folders: tuple[Path, Path]) -> None:
    lake, _ = folders
    do = changes(lake)
    do.add("temp", {"format": "home/kitchen/temp"}, Here())
    do.add("other", {"format": "home/attic/temp"}, Here())
    done = do.merge("temp", "other", Here())
    assert (done.name, done.format, done.rows) == ("temp", "home/${id:*}/temp", 3)
    assert found(lake) == {"pose", "temp"}
    do.add("rooms", {"format": "home/${room}/pose"}, Here())
    assert do.merge("rooms", "temp", Here()).format == "home/${home:*}/${part2:*}"
    do.add("temp", {"format": "door/attic/temp"}, Here())
    with pytest.raises(LocalError, match="have no format in common"):
        do.merge("rooms", "temp", Here())
    do.add("wide", {"format": "robot/${rest:**}"}, Here())
    with pytest.raises(LocalError, match="say which by --format"):
        do.merge("temp", "wide", Here())


def test_what_cannot_be_done_is_said_before_anything_is_done(folders: tuple[Path, Path]) -> None:
    lake, _ = folders
    do, place = changes(lake), LakeLocation(lake)
    do.add("temp", {"format": "home/${id}/temp"}, Here())
    with pytest.raises(LocalError, match=r"'pose' is in lake\.json5; change it there"):
        do.set("pose", {"encoding": "application/json"}, Here())
    with pytest.raises(LocalError, match=r"no table 'tmp' .* did you mean 'temp'"):
        do.remove("tmp", Here())
    with pytest.raises(LocalError, match="there is a table 'temp' already"):
        do.add("temp", {"format": "a/${b}"}, Here())
    with pytest.raises(LocalError, match="there is a table 'samples' already"):
        do.rename("temp", "samples", Here())
    with pytest.raises(ConfigError, match="a table has no 'formt'"):
        do.add("other", {"formt": "a/${b}"}, Here())
    with pytest.raises(ConfigError, match="'integer' is not one of"):
        do.set("temp", {"columns": {"number": "integer"}}, Here())
    view = new_definition("warm", "view", "SELECT id FROM temp WHERE number > 9")
    ContinuousQueryStore(place).write(view)
    with pytest.raises(LocalError, match="the view 'warm' asks 'temp'; drop it first"):
        do.remove("temp", Here())
    assert found(lake) == {"pose", "temp"}


def test_a_running_pipeline_takes_changes_between_two_steps(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIGURED)
    over = threading.Event()

    def turn() -> None:
        while not over.wait(0.01):
            if pipeline.retries(0.0):
                pipeline.step()

    steps = threading.Thread(target=turn)
    steps.start()
    try:
        running = TableChanges(LakeLocation(lake), CONFIGURED, pipeline.found)
        assert running.add("temp", {"format": "home/${id}/temp"}, Here()).rows == 3
        assert {spec.name for spec in pipeline.specs} == {"pose", "temp"}
        running.rename("temp", "climate", Here())
        assert {spec.name for spec in pipeline.specs} == {"pose", "climate"}
        write(journal, [put("home/cellar/temp", 12)])
        running.set("climate", {"columns": {"number": "double"}}, Here())
    finally:
        over.set()
        steps.join()
    while pipeline.step().behind:
        pass
    assert len(rows_of(lake, "climate")) == 4
    assert found(lake) == {"pose", "climate"}


def test_a_pipeline_ends_after_a_table_that_lately_had_no_rows_was_removed(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    changes(lake).add("temp", {"format": "home/${id}/temp"}, Here())
    pipeline = Pipeline(str(lake), str(journal), Here(), CONFIGURED)
    write(journal, [put("robot/1/pose", {"x": 3})])
    pipeline.step()
    removing = threading.Thread(target=pipeline.found.remove, args=("temp",))
    removing.start()
    while removing.is_alive():
        pipeline.step()
    pipeline.finish()
    assert [spec.name for spec in pipeline.specs] == ["pose"]


def test_the_keys_of_a_removed_table_make_no_new_one(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [put("robot/1/fault", {"code": 1})])
    fill(lake, journal)
    assert "fault" in found(lake)
    changes(lake).remove("fault", Here())
    write(journal, [put("robot/1/fault", {"code": 2}), put("robot/2/fault", {"code": 3})])
    fill(lake, journal)
    assert "fault" not in found(lake)


def test_a_removal_that_was_cut_off_is_finished_later(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [put("robot/1/fault", {"code": 1})])
    fill(lake, journal)
    do = changes(lake)
    TableStore(LakeLocation(lake)).remove("fault")
    assert "fault" in found(lake)
    do.finish(Here())
    assert found(lake) == {"pose"}


def test_keys_from_before_there_were_families_get_their_tables_once(
    folders: tuple[Path, Path],
) -> None:
    lake, journal = folders
    write(journal, [put("robot/1/camera", b"\xff\xd8")])
    fill(lake, journal, CONFIGURED)
    do, store = changes(lake), TableStore(LakeLocation(lake))
    assert do.adopt(store, Here()) == ["temp"]
    assert len(rows_of(lake, "temp")) == 3
    do.remove("temp", Here())
    assert do.adopt(store, Here()) == []
    assert found(lake) == {"pose"}


def test_keys_that_wait_for_a_table_keep_the_journal(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    pipeline = Pipeline(str(lake), str(journal), Here(), AUTOMATIC)
    while pipeline.step().behind or pipeline.settle(0.0):
        pass
    before = pipeline.committed()
    write(journal, [put("garden/1/soil", {"wet": n}) for n in range(4)])
    pipeline.step(1.0)
    assert (pipeline.behind(), pipeline.committed()) == (0, before)
    while pipeline.step(4.0).behind:
        pass
    pipeline.fold(4.0, all=True)
    assert sum(pipeline.committed()) == sum(before) + 4


def test_suggestions_say_why_each_chunk_varies(folders: tuple[Path, Path]) -> None:
    lake, journal = folders
    write(journal, [put("plant/a/line/3/motor/temp", 1), put("1/2", 3)])
    fill(lake, journal, CONFIGURED)
    place = LakeLocation(lake)
    said = suggest(place, CONFIGURED, keys_of(place))
    assert {(one.name, one.format, one.made, one.keys) for one in said.tables} == {
        ("pose", "robot/${id:*}/pose", True, 3),
        ("temp", "home/${id:*}/temp", False, 2),
        ("motor_temp", "plant/${plant:*}/line/${line:*}/motor/temp", False, 1),
    }
    (motor,) = [one for one in said.tables if one.name == "motor_temp"]
    assert motor.why == (
        "plant: a, it is one letter",
        "line: 3, it is a number or an identifier",
    )
    assert [one.examples for one in said.without] == [("1/2",)]


def test_a_table_file_that_cannot_be_read_is_passed_over(folders: tuple[Path, Path]) -> None:
    lake, _ = folders
    changes(lake).add("temp", {"format": "home/${id}/temp"}, Here())
    (lake / ".tables" / "odd.json").write_text("{")
    (lake / ".tables" / "worse.json").write_text(json.dumps({"table": {"format": "//"}}))
    assert [one.name for one in changes(lake).listed()] == ["temp"]
