"""Tables of a lake by name in the catalog of a Spark session.

Spark 4.3 hands the options of a table in its catalog (`CREATE TABLE … USING … OPTIONS (…)`) to a
Python data source when the table is made, and never again: readers and writers get the columns
that the catalog keeps, and no path. So each table gets a data source of its own, whose class has
the path.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from zenlake.errors import LocalError
from zenlake.lake.spark_source.source import LakeTableSource
from zenlake.lake.spark_source.tasks import spark_columns
from zenlake.lake.table.delta import LOG, Table
from zenlake.lake.table.features import UnreadableTable
from zenlake.lake.table.location import LakeLocation
from zenlake.spark import jvm
from zenlake.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["forget_name", "name_table", "register_tables"]

_NAME: Final = re.compile(r"\w+")


def register_tables(spark: SparkSession, lake: str, database: str = "lake") -> list[str]:
    """Let a session know the tables of a lake by their names: `spark.table("lake.battery")`.

    Call it again for tables and columns that have come since; what did not change stays as it is,
    and names of tables that are gone go, too. Nothing in the lake is touched, neither by this nor
    by `DROP TABLE` or `DROP DATABASE` of the session.

    Args:
        spark: The session, also one of Spark Connect.
        lake: The folder of the lake or its address, as every worker reaches it.
        database: The database of the session that gets the names; made if it is not there.

    Returns:
        The names that are registered, without those of tables that cannot be read.
    """
    place = LakeLocation(lake)
    if not _NAME.fullmatch(database):
        raise LocalError(f"database={database!r}: write a name of letters, digits and _")
    wanted = _schemas(place)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS `{database}`")
    known = _sources(spark, database)
    for name in sorted(known.keys() | wanted.keys()):
        full, source = f"`{database}`.`{name}`", f"zenlake.{database}.{name}"
        there = known.get(name, source)
        if there.partition(".")[0] != "zenlake":
            if name not in wanted:
                continue
            raise LocalError(
                f"database '{database}' has a table '{name}' that is not of a lake; choose "
                "another database: register_tables(spark, lake, database='…')"
            )
        # The class is the session's: another program may have made the table in a catalog.
        if name in wanted:
            source = _register(spark, database, name, (place / name).uri)
        if name in known:
            if name in wanted and there == source and spark.table(full).schema == wanted[name]:
                continue
            spark.sql(f"DROP TABLE {full}")
        if name in wanted:
            spark.catalog.createTable(full, source=source, schema=wanted[name])
    return sorted(wanted)


def name_table(
    spark: SparkSession, database: str, name: str, path: str, schema: StructType
) -> None:
    """Let a session know one table, whether it is there yet or not; the name must be free.

    Args:
        spark: The session.
        database: A database of the session.
        name: The name that the table gets there.
        path: The folder of the table, or its address.
        schema: The columns of the table.
    """
    source = _register(spark, database, name, path)
    spark.catalog.createTable(f"`{database}`.`{name}`", source=source, schema=schema)


def forget_name(spark: SparkSession, database: str, name: str) -> None:
    """Let a session know a table no more, whichever session made its name; the table stays.

    Args:
        spark: The session.
        database: A database of the session.
        name: The name of the table there; it may be unknown.
    """
    source = _sources(spark, database, name).get(name.lower())
    if source is None:
        return
    # Spark loads the source of a table before it drops the name.
    _know(spark, _source(source, ""))
    spark.sql(f"DROP TABLE IF EXISTS `{database}`.`{name}`")


def _register(spark: SparkSession, database: str, name: str, path: str) -> str:
    """Register the data source of one table in a session; return the name of the source."""
    source = f"zenlake.{database}.{name}"
    _know(spark, _source(source, path))
    return source


def _know(spark: SparkSession, source: type[LakeTableSource]) -> None:
    """Register a data source in a session, in the place of one that has its name there."""
    if is_connect(spark):
        spark.dataSource.register(source)
        return
    # Spark looks for one of the name in the session that is active on the thread.
    with jvm.active(spark):
        spark.dataSource.register(source)


def _source(name: str, path: str) -> type[LakeTableSource]:
    """Return the data source of one table."""
    return type("NamedTableSource", (LakeTableSource,), {"format_name": name, "path": path})


def _sources(spark: SparkSession, database: str, name: str = "*") -> dict[str, str]:
    """Return the names of the data sources of tables in a database."""
    rows: Any = spark.sql(f"SHOW TABLE EXTENDED IN `{database}` LIKE '{name}'").collect()
    found = {}
    for row in rows:
        provider = re.search(r"^Provider: (.*)$", row["information"], re.MULTILINE)
        if not row["isTemporary"]:
            found[row["tableName"]] = provider[1] if provider else ""
    return found


def _schemas(place: LakeLocation) -> dict[str, StructType]:
    """Return the columns of the tables of a lake that can be read."""
    found = {}
    for name in place.folders():
        try:
            table = Table.open(place, name)
        except UnreadableTable:
            continue
        if table is not None and _NAME.fullmatch(name):
            found[name.lower()] = spark_columns(table.schema)
    if not found:
        raise LocalError(f"there is no table in {place.uri}: no folder there has a {LOG}")
    return found
