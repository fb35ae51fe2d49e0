"""The state of a lake as its tables show it, whether a pipeline fills it now or not.

What a running pipeline says of itself (`lake/model/status`) counts only while it is fresh; rows,
files and bytes are read off the tables.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from zenlake.lake.ingest.derived_tables import missing_in
from zenlake.lake.ingest.pipeline import MADE_OTHERWISE
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.maintain.status_file import read_status
from zenlake.lake.model.status import LakeStatus, TableStatus
from zenlake.lake.table.delta import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zenlake.journal import Journal
    from zenlake.lake.table.location import LakeLocation

__all__ = ["looked_at"]


def looked_at(
    place: LakeLocation, tables: Mapping[str, Table], journals: Sequence[Journal] = ()
) -> LakeStatus:
    """What can be said of these tables of a lake, and of the pipeline that fills them."""
    said = read_status(place.uri) or LakeStatus(state="stopped")
    running = said.fresh(time.time())
    samples = tables.get("samples")
    shown = tuple(_table_status(samples, table, journals, said) for table in tables.values())
    by_name = {table.name: table for table in shown}
    gaps = tables.get("gaps")
    return replace(
        said,
        state=said.state if running else "stopped",
        rows=by_name["samples"].rows if "samples" in by_name else 0,
        lag=max((table.behind for table in shown if table.name != "gaps"), default=0),
        freshness=said.freshness if running else 0.0,
        quarantine=by_name[QUARANTINED].rows if QUARANTINED in by_name else 0,
        gaps=0 if gaps is None else missing_in(gaps),
        files=sum(table.files for table in shown),
        bytes_live=sum(table.bytes for table in shown),
        bytes_total=sum(size for _, size, _ in place.files()),
        tables=shown,
    )


def _table_status(
    samples: Table | None, table: Table, journals: Sequence[Journal], said: LakeStatus
) -> TableStatus:
    """Facts about a table; of a journal it lacks only rows that it wants."""
    totals = table.totals()
    behind, at = 0, {}
    is_fed = not table.is_continuous and not table.is_by_programs
    if is_fed and table.name not in MADE_OTHERWISE:
        # `latest` is answered from the tail of `samples`, so it is as far as that.
        fed = table
        if table.name == "latest":
            fed = samples or table
        known = next((one.at for one in said.tables if one.name == table.name), {})
        for journal in journals:
            before = known.get(journal.id, ())
            ends = journal.watermark().offsets
            has = tuple(
                max(fed.committed(f"{journal.id}/{p}") or 0, before[p] if p < len(before) else 0)
                for p in range(len(ends))
            )
            behind += sum(max(0, end - mine) for end, mine in zip(ends, has, strict=True))
            at[journal.id] = has
    return TableStatus(
        table.name, table.version, totals.rows, totals.files, totals.bytes, behind, at
    )
