"""`latest` as of now: what the table has, with what `samples` has heard since.

The table is written seldom. How far it is stands in the note of its newest commit; everything in
`samples` behind that is the tail, and a reader merges it in the way `lake/latest` does, in SQL:
the newest row of each key, unless that is a deletion, or a deletion with wildcards came after it.
Merging is a function of the set of rows, so a tail that is too long only costs time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from zenlake.lake.delta import Table
from zenlake.lake.files import DataFile
from zenlake.lake.latest import DEAD
from zenlake.lake.newest import tombstones
from zenlake.lake.rows import LATEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Marks", "fresh", "marks_of", "tail_files", "tail_of"]

Marks = Mapping[str, int]
"""By journal and partition, `id/0`: the offset up to which `latest` has all."""


def marks_of(latest: Table) -> dict[str, int]:
    """How far the table is, for every journal that ever flowed into it."""
    note = latest.last_note("append") or {}
    return {app: int(end) for app, end in note.get("at", {}).items()}


def tail_of(actions: Any, marks: Marks) -> list[str]:
    """The files of `samples` that may have rows which `latest` has not, by their statistics."""
    names = ("path", "min.journal", "max.journal", "min.partition", "max.partition", "max.offset")
    if not all(name in actions.column_names for name in names):
        return list(actions["path"].to_pylist())
    found = []
    columns = [actions[name].to_pylist() for name in names]
    for path, journal, other, first, last, offset in zip(*columns, strict=True):
        known = None not in (journal, first, last, offset) and journal == other
        if not known or any(
            marks.get(f"{journal}/{p}", 0) <= offset for p in range(first, last + 1)
        ):
            found.append(path)
    return found


def tail_files(samples: Table, marks: Marks) -> list[DataFile]:
    """The files of the tail, with their sizes."""
    wanted = set(tail_of(samples.actions(), marks))
    return [file for file in samples.files() if file.path in wanted]


# --- the merge, in SQL --------------------------------------------------------------------------

_ID: Final = "coalesce(stamp_id, '')"
_EVEN: Final = f"if(length({_ID}) % 2 = 1, concat('0', {_ID}), {_ID})"
MOMENT: Final = f"regexp_replace(reverse({_EVEN}), '(.)(.)', '$2$1')"
"""The id of a clock by which ids are ordered: the bytes that it is sent as, first to last."""

PATTERN: Final = r"""concat('^', array_join(transform(split(key, '/'), chunk -> CASE
    WHEN chunk = '**' THEN '(/[^/@][^/]*)*'
    WHEN chunk = '*' THEN '/[^/@][^/]*'
    WHEN contains(chunk, '$*') THEN
        concat('/(?!@)\\Q', replace(chunk, '$*', '\\E[^/]*\\Q'), '\\E')
    ELSE concat('/\\Q', chunk, '\\E') END), ''), '$')"""
"""A key expression as a regular one, over keys with a `/` before them."""


def fresh(
    spark: SparkSession, base: DataFrame, heard: DataFrame, latest: Table, marks: Marks
) -> DataFrame:
    """The rows of `latest` with the tail merged in.

    `base` are the files of the table, `heard` those of the tail, as they are in `samples`.
    """
    buckets = int(latest.described.split()[0])
    names = [name for name in LATEST.names if name != "bucket"]
    since = " ".join(
        f"WHEN journal = '{app.rpartition('/')[0]}' AND partition = {app.rpartition('/')[2]} "
        f"THEN offset >= {end}"
        for app, end in marks.items()
    )
    tail = heard.where(f"CASE {since} ELSE true END") if since else heard
    rows = base.select(names).unionByName(tail.select(names))
    dead = _dead(spark, latest)
    if dead is not None:
        rows = rows.unionByName(dead, allowMissingColumns=True)
    wild = "contains(key, '*')"
    killers = rows.where(f"kind = 'delete' AND {wild}").selectExpr(
        f"{PATTERN} AS pattern", "hlc AS killed", f"{MOMENT} AS killer"
    )
    newest = (
        rows.where(f"NOT {wild}")
        .selectExpr("*", f"{MOMENT} AS moment")
        .selectExpr(
            "*",
            "row_number() OVER (PARTITION BY key ORDER BY hlc DESC, moment DESC, offset DESC) "
            "AS place",
        )
        .where("place = 1 AND kind = 'put'")
    )
    from pyspark.sql.functions import expr

    alive = newest.join(
        killers,
        expr(
            "concat('/', key) RLIKE pattern "
            "AND (hlc < killed OR (hlc = killed AND moment < killer))"
        ),
        "left_anti",
    )
    bucket = f"cast((crc32(cast(key AS binary)) DIV 256) % {buckets} AS int) AS bucket"
    return alive.selectExpr(*names, bucket)


def _dead(spark: SparkSession, latest: Table) -> DataFrame | None:
    """What the files of the table remember of deletions."""
    found = [tombstones(latest.place, file.path) for file in latest.files()]
    rows = [
        (row["key"], row["hlc"], row["stamp_id"], row["offset"], "delete")
        for part in found
        if part is not None
        for row in part.select([n for n in DEAD.names if n != "received"]).to_pylist()
    ]
    if not rows:
        return None
    return spark.createDataFrame(
        rows, "key string, hlc bigint, stamp_id string, offset bigint, kind string"
    )
