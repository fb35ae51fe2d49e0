"""Definitions of views and alerts: read from a request, kept, and taken away with their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zenlake.errors import LocalError
from zenlake.lake.continuous.result_table import described_as
from zenlake.lake.continuous.running_query import judged
from zenlake.lake.model.config import seconds_of
from zenlake.lake.model.continuous_query import (
    ContinuousQuery,
    ContinuousQueryStore,
    Kind,
    demand_name,
)
from zenlake.lake.model.owner import asker_of
from zenlake.lake.table.delta import CorruptTable, Table

if TYPE_CHECKING:
    from zenlake.lake.model.location import LakeLocation
    from zenlake.lake.query.lake import Lake

__all__ = ["accepted", "asked", "forgotten", "kept", "swept"]


def accepted(lake: Lake, definition: ContinuousQuery) -> None:
    """Keep a definition that is let through; raises if it does not."""
    judged(lake, definition)
    kept(lake, definition)


def kept(lake: Lake, definition: ContinuousQuery) -> None:
    """Keep a definition whose question was judged; raises if its name is not free."""
    taken = {*lake.place.folders(), *(spec.name for spec in lake.config.tables)}
    definitions = ContinuousQueryStore(lake.place)
    if definition.name in definitions.all():
        raise LocalError(f"there is '{definition.name}' already; drop it first, or choose a name")
    demand_name(definition.name, taken)
    definitions.write(definition)


def forgotten(place: LakeLocation, name: str, kind: Kind) -> None:
    """Take away a definition with its table."""
    definitions = ContinuousQueryStore(place)
    definitions.find(name, kind)
    # The definition first: a table without one is swept up when a lake starts.
    definitions.remove(name)
    place.remove_folder(name)


def swept(place: LakeLocation) -> None:
    """Take away tables of views and alerts that were dropped."""
    known = {described_as(one) for one in ContinuousQueryStore(place).all().values()}
    for name in place.folders():
        try:
            table = Table.open(place, name)
        except CorruptTable:
            continue
        if table is None or not table.is_continuous:
            continue
        if table.described not in known:
            place.remove_folder(name)


def asked(request: Mapping[str, Any]) -> ContinuousQuery:
    """The definition in a request; raises `LocalError` for what is none."""
    kind = request.get("kind")
    if kind not in ("view", "alert"):
        raise LocalError(f"'{kind}' is neither a view nor an alert")
    name, sql = request.get("name"), request.get("sql", "")
    if not isinstance(name, str) or not isinstance(sql, str):
        raise LocalError("name and sql are texts")
    owner = asker_of(request)
    late = seconds_of(request.get("late", 10.0), "how late data may come")
    hold = seconds_of(request.get("for", 0.0), "how long a condition must hold")
    return ContinuousQuery(name, kind, sql, late, hold, bool(request.get("history")), owner=owner)
