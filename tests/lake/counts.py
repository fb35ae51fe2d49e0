"""How many, how much and how many different numbers are under each key, as each reader sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
from deltalake import DeltaTable, QueryBuilder

import zenlake.lake
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
    columns = ["offset", "key", "value", "source_sn", "origin"]
    rows: list[Heard] = []
    for batch in journal.scan(start, end, partition=partition, columns=columns):
        offset, key, value, sn, origin = (batch.column(name).to_pylist() for name in columns)
        assert offset == list(range(start + len(rows), start + len(rows) + batch.num_rows))
        numbers = [json.loads(one)["n"] for one in value]
        rows += map(Heard, key, numbers, sn, origin)
    assert len(rows) == end - start
    return rows


# ------------------------------------------------------------------------------------ readers

#: The number in a payload, in words that every engine knows.
NUMBER = """CAST(replace(replace({text}, '{{"n":', ''), '}}', '') AS BIGINT)"""
QUESTION = """SELECT t.key, count({n}), sum({n}), count(DISTINCT {n}), count(*),
    count(DISTINCT t.offset), count(DISTINCT t.partition) FROM {table} t GROUP BY t.key"""

Ask = Callable[[str, str], list[tuple[Any, ...]]]


def readers(lake: Path, spark: SparkSession) -> dict[str, tuple[str, Ask]]:
    """Engines by name: how each makes text of bytes, and how it is asked about a table."""
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

    return {
        "Spark": ("CAST(t.value AS STRING)", ask_spark),
        "delta-rs": ("arrow_cast(t.value, 'Utf8')", ask_delta),
        "DuckDB": ("decode(t.value)", ask_duck),
    }


def seen(text: str, ask: Ask, table: str) -> Counts:
    """The counts of one table, by one reader; no row of the journal is in it twice."""
    number = "t.n" if table == "counter" else NUMBER.format(text=text)
    found: Counts = {}
    for key, *numbers, rows, offsets, partitions in ask(
        QUESTION.format(n=number, table=table), table
    ):
        found[key] = Count(*map(int, numbers))
        # A key is in one partition, so its offsets are identities.
        assert (rows, partitions) == (offsets, 1), f"{key} has a row of the journal twice"
        assert rows == found[key].rows
    return found
