"""How many, how much and how many different numbers are under each key, as each reader sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import zenlake.lake
from tests.lake.numbered import FIELDS, ROLLED, number_in, table_of, table_of_key
from zenlake.journal import Journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Count(NamedTuple):
    """Of the numbers under one key."""

    rows: int
    sum: int
    distinct: int


Counts = dict[str, Count]


def counted(numbers: Mapping[str, Iterable[int]]) -> Counts:
    """The counts of numbers that are at hand."""
    held = {key: list(found) for key, found in numbers.items()}
    return {key: Count(len(ns), sum(ns), len(set(ns))) for key, ns in held.items()}


def by_table(numbers: Mapping[str, Iterable[int]]) -> dict[str, Counts]:
    """The counts of what belongs into each typed table, and into the quarantine."""
    parts: dict[str, dict[str, list[int]]] = {}
    for key, held in numbers.items():
        for number in held:
            mine = parts.setdefault(table_of(key, number), {})
            mine.setdefault(key, []).append(number)
    return {table: counted(mine) for table, mine in parts.items()}


def without_distincts(tables: Mapping[str, Counts]) -> Counts:
    """The counts of all typed tables, as rollups know them."""
    return {
        key: Count(count.rows, count.sum, 0)
        for table, counts in tables.items()
        if table in FIELDS
        for key, count in counts.items()
    }


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers as stretches, first and last, as the ledger tells gaps."""
    order = sorted(numbers)
    if not order:
        return []
    breaks = [(a, b) for a, b in pairwise(order) if b != a + 1]
    firsts = [order[0], *(b for _, b in breaks)]
    return [list(pair) for pair in zip(firsts, [*(a for a, _ in breaks), order[-1]], strict=True)]


class Said(NamedTuple):
    """What publishers wrote down."""

    numbers: dict[str, list[int]]
    sources: dict[str, str]
    """Of each key whose samples are numbered, who numbers them."""


def said(logs: Iterable[Path]) -> Said:
    """All that was sent, by the logs of those who did."""
    found = Said({}, {})
    for log in logs:
        for line in log.read_text().splitlines():
            key, number, source = json.loads(line)
            found.numbers.setdefault(key, []).append(number)
            if source is not None:
                found.sources[key] = source
    return found


class Heard(NamedTuple):
    """A row of a journal."""

    key: str
    number: int
    sn: int | None
    origin: int


def heard(journal: Journal, partition: int, start: int, end: int) -> list[Heard]:
    """The rows of a partition, by their offsets."""
    columns = ["offset", "key", "value", "source_sn", "origin", "attachment"]
    rows: list[Heard] = []
    for batch in journal.scan(start, end, partition=partition, columns=columns):
        offset, key, value, sn, origin, more = (batch.column(name).to_pylist() for name in columns)
        assert offset == list(range(start + len(rows), start + len(rows) + batch.num_rows))
        # The number of a publisher of ROS 2 is in front of what it attaches.
        sn = [
            n if a is None else int.from_bytes(a[:8], "little")
            for n, a in zip(sn, more, strict=True)
        ]
        rows += map(Heard, key, map(number_in, key, value), sn, origin)
    assert len(rows) == end - start
    return rows


# ------------------------------------------------------------------------------------ readers

WHOLE = "SELECT t.key, t.partition, t.offset, t.value FROM {table} t"
TYPED = """SELECT t.key, count({n}), sum({n}), count(DISTINCT {n}), count(*),
    count(DISTINCT t.offset), count(DISTINCT t.partition) FROM {table} t GROUP BY t.key"""

Ask = Callable[[str, str], list[tuple[Any, ...]]]


def readers(lake: Path, spark: SparkSession) -> dict[str, Ask]:
    """Engines by name: how each is asked about a table."""
    opened = zenlake.lake.open(lake, spark)

    def ask_spark(query: str, _: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in opened.sql(query).collect()]

    def ask_delta(query: str, table: str) -> list[tuple[Any, ...]]:
        builder = QueryBuilder().register(table, DeltaTable(str(lake / table)))
        answer = builder.execute(query).read_all()
        columns = [answer.column(n).to_pylist() for n in range(answer.num_columns)]
        return list(zip(*columns, strict=True))

    def ask_duck(query: str, table: str) -> list[tuple[Any, ...]]:
        files = DeltaTable(str(lake / table)).file_uris()
        with duckdb.connect() as duck:
            if not files:
                return []
            view = f"CREATE VIEW {table} AS SELECT * FROM read_parquet({files!r})"
            return duck.execute(view).execute(query).fetchall()

    def ask_iceberg(query: str, table: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as duck:
            return duck.register(table, published(str(lake), table)).execute(query).fetchall()

    return {
        "Spark": ask_spark,
        "delta-rs": ask_delta,
        "DuckDB": ask_duck,
        "DuckDB by Iceberg": ask_iceberg,
    }


def published(lake: str, table: str, **where: str) -> pa.Table:
    """The rows of a table as its Iceberg metadata has them."""
    return StaticTable.from_metadata(f"{lake}/{table}/_iceberg", where).scan().to_arrow()


def seen(ask: Ask, table: str) -> Counts:
    """The counts of one table, by one reader; no row of the journal is in it twice."""
    if table not in FIELDS:
        return seen_whole(ask(WHOLE.format(table=table), table))
    found: Counts = {}
    for key, *numbers, rows, offsets, partitions in ask(
        TYPED.format(n=FIELDS[table], table=table), table
    ):
        found[key] = Count(*map(int, numbers))
        # A key is in one partition, so its offsets are identities.
        assert (rows, partitions) == (offsets, 1), f"{key} has a row of the journal twice"
        assert rows == found[key].rows
    return found


def seen_whole(rows: Iterable[tuple[str, int, int, bytes]]) -> Counts:
    """The counts of rows with their payloads: key, partition, offset, value."""
    found: dict[str, list[int]] = {}
    places: set[tuple[int, int]] = set()
    for key, partition, offset, value in rows:
        assert (partition, offset) not in places, f"{key} has a row of the journal twice"
        places.add((partition, offset))
        found.setdefault(key, []).append(number_in(key, bytes(value)))
    return counted(found)


def rolled_up(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Count]]:
    """The counts by the rows of `rollups`, for minutes and for hours; they know no distincts."""
    found: dict[str, dict[str, Count]] = {"minute": {}, "hour": {}}
    for row in rows:
        if row["field"] == ROLLED[row["table"]]:
            before = found[row["width"]].get(row["key"], Count(0, 0, 0))
            assert row["table"] == table_of_key(row["key"])
            found[row["width"]][row["key"]] = Count(
                before.rows + row["count"], before.sum + int(row["sum"]), 0
            )
    return found
