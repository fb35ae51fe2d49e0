"""Definitions of views and alerts: read from a request, kept, and taken away with their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zenlake.errors import LocalError
from zenlake.lake.continuous.planning import judge_definition
from zenlake.lake.continuous.result_table import described_as
from zenlake.lake.maintain.definition_store import ContinuousQueryStore, new_definition
from zenlake.lake.model.config import seconds_of
from zenlake.lake.model.continuous_query import ContinuousQuery, Kind, demand_name
from zenlake.lake.model.owner import asker_of
from zenlake.lake.table.delta import Table
from zenlake.lake.table.features import UnreadableTable

if TYPE_CHECKING:
    from zenlake.lake.query.lake import Lake
    from zenlake.lake.table.location import LakeLocation

__all__ = [
    "create_definition",
    "definition_in",
    "demand_free",
    "drop_definition",
    "keep_definition",
    "remove_dropped_tables",
]


def create_definition(lake: Lake, definition: ContinuousQuery) -> None:
    """Judge a definition and keep it; raises if it may not run, or its name is not free."""
    judge_definition(lake, definition)
    keep_definition(lake, definition)


def demand_free(lake: Lake, definition: ContinuousQuery) -> None:
    """Refuse a definition whose name cannot be one, or is not free."""
    if definition.name in ContinuousQueryStore(lake.place).all():
        raise LocalError(f"there is '{definition.name}' already; drop it first, or choose a name")
    taken = {*lake.place.folders(), *(spec.name for spec in lake.key_tables())}
    demand_name(definition.name, taken)


def keep_definition(lake: Lake, definition: ContinuousQuery) -> None:
    """Keep a definition whose question was judged; raises if its name is not free."""
    demand_free(lake, definition)
    ContinuousQueryStore(lake.place).write(definition)


def drop_definition(place: LakeLocation, name: str, kind: Kind) -> None:
    """Take away a definition with its table."""
    definitions = ContinuousQueryStore(place)
    definitions.find(name, kind)
    # The definition first: a table without one is swept up when a lake starts.
    definitions.remove(name)
    place.remove_folder(name)


def remove_dropped_tables(place: LakeLocation) -> None:
    """Take away the tables of views and alerts that have no definition any more."""
    known = {described_as(one) for one in ContinuousQueryStore(place).all().values()}
    for name in place.folders():
        try:
            table = Table.open(place, name)
        except UnreadableTable:
            continue
        if table is None or not table.is_continuous:
            continue
        if table.described not in known:
            place.remove_folder(name)


def definition_in(request: Mapping[str, Any]) -> ContinuousQuery:
    """Return the definition in a request; raises `LocalError` for what is none."""
    kind = request.get("kind")
    if kind not in ("view", "alert"):
        raise LocalError(f"'{kind}' is neither a view nor an alert")
    name, sql = request.get("name"), request.get("sql", "")
    if not isinstance(name, str) or not isinstance(sql, str):
        raise LocalError("name and sql are texts")
    owner = asker_of(request)
    late = seconds_of(request.get("late", 10.0), "how late data may come")
    hold = seconds_of(request.get("for", 0.0), "how long a condition must hold")
    return new_definition(name, kind, sql, late, hold, bool(request.get("history")), owner=owner)
