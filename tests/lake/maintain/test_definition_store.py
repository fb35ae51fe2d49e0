"""How the definitions of views and alerts are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from zenlake.errors import LocalError
from zenlake.lake.maintain.definition_store import ContinuousQueryStore, new_definition
from zenlake.lake.model import continuous_query
from zenlake.lake.model.continuous_query import demand_name
from zenlake.lake.table.location import LakeLocation


def test_definitions_are_kept_bounded_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous_query, "MOST", 2)
    kept = ContinuousQueryStore(LakeLocation(tmp_path))
    assert kept.all() == {}
    one = new_definition("low", "alert", "SELECT …", hold=10.0)
    kept.write(one)
    (tmp_path / ".standing" / "broken.json").write_text("{")
    assert ContinuousQueryStore(LakeLocation(tmp_path)).all() == {"low": one}
    assert LakeLocation(tmp_path).folders() == []
    with pytest.raises(LocalError, match="no view 'low'; there are none"):
        kept.find("low", "view")
    kept.write(new_definition("two", "view", "SELECT …"))
    with pytest.raises(LocalError, match="2 views and alerts already"):
        kept.write(new_definition("three", "view", "SELECT …"))
    kept.aside(one).joinpath("start.json").write_text("{}")
    kept.remove("low")
    assert list(kept.all()) == ["two"]
    assert not (tmp_path / ".standing" / "low").exists()
    for name in ("Big", "1st", "a-b", "../x", "samples", "taken"):
        with pytest.raises(LocalError):
            demand_name(name, {"taken"})


def test_notes_of_what_is_not_kept_are_taken_away_and_those_of_others_stay(tmp_path: Path) -> None:
    store = ContinuousQueryStore(LakeLocation(tmp_path))
    kept, refused = (new_definition("low", "view", "SELECT …") for _ in range(2))
    for one in (kept, refused):
        store.aside(one).joinpath("start.json").write_text("{}")
    assert (tmp_path / ".standing").stat().st_mode & 0o77 == 0
    store.discard(refused)
    assert [path.name for path in (tmp_path / ".standing" / "low").iterdir()] == [kept.id]
    store.discard(kept)
    assert not (tmp_path / ".standing" / "low").exists()
