"""`latest` as of now: what the table has, with what `samples` has heard since.

The table is written seldom. How far it is stands in the note of its newest commit; everything in
`samples` behind that is the tail, and a reader merges it in the way `lake/ingest/latest` does, in
SQL: the newest row of each key, unless that is a deletion, or a deletion with wildcards came after
it; with the value of the newest put with wildcards that came after it, if there is one. Merging is
a function of the set of rows, so a tail that is too long only costs time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.keys.pattern import END, spark_is_wild, spark_pattern_of
from zenlake.lake.decode.document_text import DOCUMENT_TEXT, document_text
from zenlake.lake.ingest.latest import BASE, MERGED
from zenlake.lake.ingest.latest_tasks import memory_of
from zenlake.lake.model.sample_rows import LATEST
from zenlake.lake.table.data_files import DataFile
from zenlake.lake.table.delta import Table
from zenlake.lake.table.table_version import TableVersion
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Marks", "fresh", "marks_of", "tail_files", "tail_of"]

Marks = Mapping[str, int]
"""By journal and partition, `id/0`: the offset up to which `latest` has all."""


def marks_of(latest: Table | TableVersion) -> dict[str, int]:
    """How far the table is, for every journal that ever flowed into it."""
    note = latest.last_note("append") or {}
    return {app: int(end) for app, end in note.get("at", {}).items()}


def tail_of(actions: Any, marks: Marks) -> list[str]:
    """The files of `samples` that may have rows which `latest` has not, by their statistics."""
    names = ("path", "min.journal", "max.journal", "min.partition", "max.partition", "max.offset")
    if not all(name in actions.column_names for name in names):
        return list(actions["path"].to_pylist())
    paths = []
    columns = [actions[name].to_pylist() for name in names]
    for path, journal, other, first, last, offset in zip(*columns, strict=True):
        known = None not in (journal, first, last, offset) and journal == other
        if not known or any(
            marks.get(f"{journal}/{p}", 0) <= offset for p in range(first, last + 1)
        ):
            paths.append(path)
    return paths


def tail_files(samples: Table, marks: Marks) -> list[DataFile]:
    """The files of the tail, with their sizes."""
    wanted = set(tail_of(samples.actions(), marks))
    return [file for file in samples.files() if file.path in wanted]


# --- the merge, in SQL --------------------------------------------------------------------------

_ID: Final = "coalesce(stamp_id, '')"
_EVEN: Final = f"if(length({_ID}) % 2 = 1, concat('0', {_ID}), {_ID})"
MOMENT: Final = f"regexp_replace(reverse({_EVEN}), '(.)(.)', '$2$1')"
"""The id of a clock by which ids are ordered: the bytes that it is sent as, first to last."""


def fresh(
    spark: SparkSession, base: DataFrame, heard: DataFrame, latest: TableVersion, marks: Marks
) -> DataFrame:
    """The rows of `latest` with the tail merged in.

    `base` are the files of the table, `heard` those of the tail, as they are in `samples`; both
    may have the column `document_text`.
    """
    from pyspark.sql.functions import expr

    buckets = int(latest.described.split()[0])
    names = [name for name in LATEST.names if name != "bucket"]
    if DOCUMENT_TEXT in base.columns:
        names.append(DOCUMENT_TEXT)
    since = " ".join(
        f"WHEN journal = '{app.rpartition('/')[0]}' AND partition = {app.rpartition('/')[2]} "
        f"THEN offset >= {end}"
        for app, end in marks.items()
    )
    tail = heard.where(f"CASE {since} ELSE true END") if since else heard
    rows = base.selectExpr(*names, "true AS shown").unionByName(
        tail.selectExpr(*names, "false AS shown")
    )
    notes: dict[str, tuple[int, str]] = {}
    if (aside := _memory(latest)) is not None:
        is_base = pc.equal(aside["kind"], BASE)
        for row in aside.filter(is_base).select(["key", "hlc", "stamp_id"]).to_pylist():
            notes[row["key"]] = (row["hlc"], row["stamp_id"])
        rest = aside.filter(pc.invert(is_base))
        if rest.num_rows:
            remembered = rest.to_pylist()
            if DOCUMENT_TEXT in names:
                for row in remembered:
                    row[DOCUMENT_TEXT] = document_text(row["value"], row["encoding"])
            tuples = [(*(row[name] for name in names), False) for row in remembered]
            rows = rows.unionByName(jvm.make_frame(spark, tuples, rows.schema))
    wild = f"contains(key, '*') AND {spark_is_wild('key')}"
    anchored = f"concat('^', {spark_pattern_of('key')}, r'{END}')"
    updates = rows.where(wild).selectExpr("*", f"{MOMENT} AS moment", f"{anchored} AS pattern")
    alive = _newest(spark, rows.where(f"NOT ({wild})"), notes).join(
        updates.where("kind = 'delete'").selectExpr("pattern", "hlc AS killed", "moment AS killer"),
        expr(
            "key RLIKE pattern AND (own_hlc < killed OR (own_hlc = killed AND own_moment < killer))"
        ),
        "left_anti",
    )
    given = updates.where("kind = 'put'").selectExpr(
        "pattern", "moment AS given_moment", *(f"{name} AS given_{name}" for name in names)
    )
    newest = (
        alive.join(
            given,
            expr(
                "key RLIKE pattern "
                "AND (hlc < given_hlc OR (hlc = given_hlc AND moment < given_moment))"
            ),
            "left",
        )
        .selectExpr(
            "*",
            "row_number() OVER (PARTITION BY key ORDER BY given_hlc DESC, given_moment DESC, "
            "given_offset DESC) AS gift",
        )
        .where("gift = 1")
    )
    bucket = f"cast((crc32(cast(key AS binary)) DIV 256) % {buckets} AS int) AS bucket"
    columns = [
        name if name == "key" else f"if(given_hlc IS NULL, {name}, given_{name}) AS {name}"
        for name in names
    ]
    return newest.selectExpr(*columns, bucket)


def _newest(
    spark: SparkSession, rows: DataFrame, notes: Mapping[str, tuple[int, str]]
) -> DataFrame:
    """The row of each key that has a value from updates of its own, and when it was itself put."""
    from pyspark.sql.functions import broadcast

    named = rows.selectExpr("*", f"{MOMENT} AS moment")
    order = "hlc DESC, moment DESC, offset DESC"
    if not notes:
        return named.selectExpr(
            "*",
            "hlc AS own_hlc",
            "moment AS own_moment",
            f"row_number() OVER (PARTITION BY key ORDER BY {order}) AS place",
        ).where("place = 1 AND kind = 'put'")
    based = jvm.make_frame(
        spark,
        [(key, hlc, id) for key, (hlc, id) in notes.items()],
        "noted string, base_hlc bigint, stamp_id string",
    ).selectExpr("noted", "base_hlc", f"{MOMENT} AS base_moment")
    # What is in the table has its value from a put with wildcards; what was heard is its own.
    own = named.join(broadcast(based), named["key"] == based["noted"], "left").selectExpr(
        *named.columns,
        "if(noted IS NOT NULL AND shown, base_hlc, hlc) AS own_hlc",
        "if(noted IS NOT NULL AND shown, base_moment, moment) AS own_moment",
    )
    by_own = "PARTITION BY key ORDER BY own_hlc DESC, own_moment DESC, offset DESC"
    return own.selectExpr(
        *named.columns,
        f"first_value(own_hlc) OVER ({by_own}) AS own_hlc",
        f"first_value(own_moment) OVER ({by_own}) AS own_moment",
        f"first_value(kind) OVER ({by_own}) AS own_kind",
        f"row_number() OVER (PARTITION BY key ORDER BY {order}) AS place",
    ).where("place = 1 AND kind = 'put' AND own_kind = 'put'")


def _memory(latest: TableVersion) -> pa.Table | None:
    """What the files of the table remember besides their rows."""
    remembered = [memory_of(latest.place, path) for path in latest.paths]
    parts = []
    for part in remembered:
        if part is not None:
            kinds = (
                part
                if "kind" in part.column_names
                else part.append_column("kind", pa.array(["delete"] * part.num_rows, pa.string()))
            )
            parts.append(kinds)
    if not parts:
        return None
    memory = pa.concat_tables(parts, promote_options="default")
    for field in MERGED:
        if field.name not in memory.column_names:
            memory = memory.append_column(field.name, pa.nulls(memory.num_rows, field.type))
    return memory
