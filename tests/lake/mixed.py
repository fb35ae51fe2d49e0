"""A journal with JSON, protobuf and ROS 2 in it, and the proof that a lake has each row once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.lake.counts import (
    Counts,
    by_table,
    counted,
    heard,
    published,
    rolled_up,
    seen_whole,
    without_distincts,
)
from tests.lake.journals import write
from tests.lake.numbered import (
    FIELDS,
    ROLLED,
    ROS2_KEY,
    attached,
    encoding_of,
    payload_of,
)
from tests.lake.rowsof import Row
from zenlake.journal import Journal
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation
from zenlake.values.encoding import ENCODING_NAMES

Numbers = dict[str, list[int]]

KEYS = (*(f"count/{n}" for n in range(4)), *(f"proto/{n}" for n in range(4)), ROS2_KEY)


def mixed(journal: Path, count: int) -> Numbers:
    """Write so many numbers, each under one key; gives those of each."""
    rows = []
    said: Numbers = {}
    for n in range(count):
        key = KEYS[n % len(KEYS)]
        name, _, schema = encoding_of(key).partition(";")
        rows.append(
            Row(
                key,
                payload_of(key, n),
                float(n),
                encoding=ENCODING_NAMES.index(name),
                schema=schema or None,
                attachment=attached(n) if key == ROS2_KEY else None,
            )
        )
        said.setdefault(key, []).append(n)
    write(journal, rows)
    return said


def proven_once(lake: str, journal: str, said: Numbers, **where: str) -> None:
    """Journal, samples, typed tables, rollups and Iceberg have what was said, each number once."""
    whole, typed = counted(said), by_table(said)
    recorded: Numbers = {}
    opened = Journal.open(journal)
    for partition, end in enumerate(opened.watermark().offsets):
        for row in heard(opened, partition, 0, end):
            recorded.setdefault(row.key, []).append(row.number)
    assert counted(recorded) == whole
    assert _whole(rows_at(lake, "samples")) == _whole(published(lake, "samples", **where)) == whole
    for table in FIELDS:
        assert _typed(table, rows_at(lake, table)) == typed[table], table
        assert _typed(table, published(lake, table, **where)) == typed[table], f"Iceberg's {table}"
    assert _whole(rows_at(lake, "quarantine")) == typed["quarantine"]
    assert {row["key"] for row in rows_at(lake, "latest").to_pylist()} == said.keys()
    totals = without_distincts(typed)
    rolled = rolled_up(rows_at(lake, "rollups").to_pylist())
    assert rolled == {"minute": totals, "hour": totals}


def rows_at(lake: str, name: str) -> pa.Table:
    """All rows of a table, wherever the lake is."""
    table = Table.open(LakeLocation(lake), name)
    assert table is not None
    return table._table.to_pyarrow_table()


def _whole(rows: pa.Table) -> Counts:
    columns = ("key", "partition", "offset", "value")
    return seen_whole(zip(*(rows[name].to_pylist() for name in columns), strict=True))


def _typed(table: str, rows: pa.Table) -> Counts:
    found: dict[str, list[int]] = {}
    for row in rows.to_pylist():
        value: Any = row
        for part in ROLLED[table].split("."):
            value = value[part]
        found.setdefault(row["key"], []).append(int(value))
    return counted(found)
