"""Which tables of a lake have their logs loaded."""

from __future__ import annotations

import pytest

from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation


def note_opened_tables(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each table whose log is loaded from now on."""
    names: list[str] = []
    load = Table.open

    def open(lake: LakeLocation, name: str, *, refused: bool = False) -> Table | None:
        names.append(name)
        return load(lake, name, refused=refused)

    monkeypatch.setattr(Table, "open", open)
    return names
