"""A lake, opened for questions: its tables by name, SQL over them, and their upkeep.

>>> lake = zenlake.lake.open("zenlake-data/lake")            # doctest: +SKIP
>>> lake.sql("SELECT key, count(*) FROM samples GROUP BY key").show()  # doctest: +SKIP
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import LocalError
from zenlake.lake.config import LakeConfig, Retention
from zenlake.lake.delta import Table
from zenlake.lake.place import Place
from zenlake.lake.tasks import SparkTasks, Tasks
from zenlake.lake.upkeep import Progress, compact, promised, retain, vacuum
from zenlake.lake.views import frame_of, narrowed
from zenlake.lake.work import QUARANTINED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Lake", "open"]

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@final
class Lake:
    """The tables in one folder."""

    def __init__(self, place: Place, spark: SparkSession | None, config: LakeConfig) -> None:
        """Use `zenlake.lake.open`."""
        self.place = place
        self.config = config
        self._spark = spark

    @property
    def spark(self) -> SparkSession:
        """The Spark that answers; started when it is first needed."""
        if self._spark is None:
            from zenlake.spark.session import spark_session

            self._spark = spark_session()
        return self._spark

    def tables(self) -> dict[str, Table]:
        """The tables by name, as they are now."""
        found = {name: Table.open(self.place, name) for name in self.place.folders()}
        return {name: table for name, table in found.items() if table is not None}

    def table(self, name: str, version: int | None = None) -> DataFrame:
        """One table as a Spark frame, now or as it was in a version."""
        table = Table.open(self.place, name)
        if table is None:
            known = ", ".join(self.tables()) or "none"
            raise LocalError(f"the lake at {self.place.uri} has no table '{name}'; it has {known}")
        if version is not None:
            table.at(version)
        return frame_of(self.spark, table, table.actions()["path"].to_pylist())

    def sql(self, query: str, versions: Mapping[str, int] | None = None) -> DataFrame:
        """The answer to a question, as a Spark frame.

        `versions` asks tables as they were: `{"latest": 12}`. The answer is of one moment: the
        tables are looked at once, when this is called.
        """
        words = {word.lower() for word in _WORD.findall(query)}
        tables = {name: table for name, table in self.tables().items() if name.lower() in words}
        for name, version in (versions or {}).items():
            if name in tables:
                tables[name].at(version)
        for name, table in tables.items():
            self._show(name, table, table.actions()["path"].to_pylist())
        frame = self.spark.sql(query)
        if not tables:
            return frame
        for name, paths in narrowed(frame, tables).items():
            self._show(name, tables[name], paths)
        return self.spark.sql(query)

    def _show(self, name: str, table: Table, paths: list[str]) -> None:
        frame_of(self.spark, table, paths).createOrReplaceTempView(name)

    # --- upkeep ---------------------------------------------------------------------------------

    def compact(
        self, *, full: bool = True, tasks: Tasks | None = None, progress: Progress | None = None
    ) -> dict[str, int]:
        """Merge the small files of every table; gives how many files each has fewer."""
        where = tasks or SparkTasks(self.spark)
        return {
            name: compact(table, where, self.config, full=full, progress=progress)
            for name, table in self.tables().items()
        }

    def retain(
        self,
        rules: tuple[Retention, ...] | None = None,
        *,
        tasks: Tasks | None = None,
        progress: Progress | None = None,
        now: float | None = None,
    ) -> dict[str, int]:
        """Drop rows that are too old, by these rules or those of the configuration."""
        where = tasks or SparkTasks(self.spark)
        chosen = self.config.retain if rules is None else rules
        return {
            name: retain(table, where, chosen, now=now, progress=progress)
            for name, table in self.tables().items()
        }

    def vacuum(self, age: float | None = None, *, dry: bool = False) -> dict[str, list[str]]:
        """Delete files that no table needs any more."""
        tables = self.tables()
        old = self.config.vacuum_age if age is None else age
        keep = promised(tables)
        return {
            name: vacuum(table, old, keep if name == QUARANTINED else (), dry=dry)
            for name, table in tables.items()
        }

    def status(self) -> list[dict[str, Any]]:
        """For each table: version, files, bytes, rows."""
        told = []
        for name, table in self.tables().items():
            files = table.files()
            told.append(
                {
                    "table": name,
                    "version": table.version,
                    "files": len(files),
                    "bytes": sum(file.size for file in files),
                    "rows": sum(file.rows for file in files),
                    "columns": len(table.schema.names),
                }
            )
        return told


def open(
    path: str | Path, spark: SparkSession | None = None, config: LakeConfig | None = None
) -> Lake:
    """The lake in a folder or at an address; Spark starts when a question needs it."""
    place = Place(path)
    if not any(Table.open(place, name) for name in place.folders()):
        raise LocalError(
            f"{place.uri} is no lake: there is no table in it; fill one with "
            "`zenlake lake run --journal DIR --lake DIR`"
        )
    return Lake(place, spark, config or LakeConfig())
