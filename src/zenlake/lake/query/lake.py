"""A lake, opened for questions: its tables by name, SQL over them, and their upkeep.

>>> lake = zenlake.lake.open("zenlake-data/lake")            # doctest: +SKIP
>>> lake.sql("SELECT key, count(*) FROM samples GROUP BY key").show()  # doctest: +SKIP
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, final

from zenlake.errors import LocalError
from zenlake.lake.decode.table_store import key_tables
from zenlake.lake.ingest.deletions import purge_all
from zenlake.lake.ingest.spark_tasks import Tasks, tasks_on
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.maintain.forget import forget_everywhere
from zenlake.lake.maintain.overview import looked_at
from zenlake.lake.maintain.rebuild import Rebuilt, known_table, rebuild
from zenlake.lake.maintain.upkeep import Progress, compact, promised, retain, vacuum
from zenlake.lake.model.config import LakeConfig, Retention
from zenlake.lake.model.row_access import RowAccess
from zenlake.lake.model.status import LakeStatus
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.planner import Planner, framed, references, table_frame
from zenlake.lake.query.referenced_tables import Question
from zenlake.lake.table.delta import Table
from zenlake.lake.table.iceberg import mirror_where_it_is
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from zenlake.journal import Journal

__all__ = ["Lake", "open"]


@final
class Lake:
    """The tables in one folder."""

    def __init__(self, place: LakeLocation, spark: SparkSession | None, config: LakeConfig) -> None:
        """Use `zenlake.lake.open`."""
        self.place = place
        self.config = config
        self._spark = spark
        self.catalog = Catalog(place)
        self._planner: Planner | None = None

    @property
    def spark(self) -> SparkSession:
        """The Spark that answers; started when it is first needed."""
        if self._spark is None:
            from zenlake.spark.session import spark_session

            self._spark = spark_session()
        return self._spark

    def tables(self) -> dict[str, Table]:
        """The tables by name, as they are now."""
        return self.catalog.opened()[0]

    def key_tables(self) -> tuple[TypedTable, ...]:
        """Return what the typed tables of keys are for, as configured, found or made by command."""
        return key_tables(self.place, self.config)

    def table(self, name: str, version: int | None = None) -> DataFrame:
        """One table as a Spark frame, now or as it was in a version."""
        # A table of its own: nobody else goes to another version with it.
        table = Table.open(self.place, name)
        if table is None:
            known = ", ".join(self.tables()) or "none"
            raise LocalError(f"the lake at {self.place.uri} has no table '{name}'; it has {known}")
        samples = None
        if version is not None:
            table.at(version)
        elif name == "latest":
            samples = self.catalog.table("samples")
        shown = table.snapshot()
        return framed(table_frame(self.spark, self.catalog, shown, shown.paths, samples))

    def ask(self, query: str, asof: datetime | str | None = None) -> Question:
        """The tables that a question reads; raises `Unanswerable` without Spark if it can."""
        known = self._spark.catalog.tableExists if self._spark is not None else (lambda name: False)
        return references(self.catalog, query, asof, known)[0]

    def sql(
        self,
        query: str,
        versions: Mapping[str, int] | None = None,
        *,
        asof: datetime | str | None = None,
    ) -> DataFrame:
        """The answer to a question, as a Spark frame.

        `versions` asks tables as they were: `{"latest": 12}`; `asof` asks all of them as they were
        at a time (ISO 8601; without a zone, UTC), for as long as `history` keeps it. The answer is
        of one moment: the tables are looked at once, when this is called. Raises `Unanswerable`
        for a table or a column that does not exist. The tables are views of a session of the
        lake's own; views and settings of the Spark that it was opened with stay as they are.
        """
        return self.planner.plan(query, versions=versions, asof=asof)

    def judged(self, query: str, access: RowAccess) -> DataFrame:
        """The answer to a question of a stranger, who sees these rows; for what shall run later.

        Raises `Refused` for whatever is no single SELECT over tables of this lake.
        """
        planner = Planner(self.spark, self.catalog, self.key_tables)
        return planner.plan(query, access=access, limits=QueryLimits())

    @property
    def planner(self) -> Planner:
        """What plans the questions of the lake's owner, in a session of the lake's own."""
        if self._planner is None:
            self._planner = Planner(self.spark, self.catalog)
        return self._planner

    # --- upkeep ---------------------------------------------------------------------------------

    def compact(
        self, *, full: bool = True, tasks: Tasks | None = None, progress: Progress | None = None
    ) -> dict[str, int]:
        """Merge the small files of every table; gives how many files each has fewer.

        Rows that deletion vectors delete go first, with the vectors.
        """
        where = tasks or tasks_on(self.spark)
        purge_all(self.place, where)
        tables = self.tables()
        done = {
            name: compact(table, where, self.config, full=full, progress=progress)
            for name, table in tables.items()
        }
        mirror_where_it_is(tables.values())
        return done

    def retain(
        self,
        rules: tuple[Retention, ...] | None = None,
        *,
        tasks: Tasks | None = None,
        progress: Progress | None = None,
        now: float | None = None,
    ) -> dict[str, int]:
        """Drop rows that are too old, by these rules or those of the configuration."""
        where = tasks or tasks_on(self.spark)
        chosen = self.config.retain if rules is None else rules
        tables = self.tables()
        done = {
            name: retain(table, where, chosen, now=now, progress=progress)
            for name, table in tables.items()
        }
        mirror_where_it_is(tables.values())
        return done

    def vacuum(self, age: float | None = None, *, dry: bool = False) -> dict[str, list[str]]:
        """Delete files that no table needs any more."""
        tables = self.tables()
        if not dry:
            mirror_where_it_is(tables.values())
        old = self.config.kept if age is None else age
        keep = promised(tables)
        return {
            name: vacuum(table, old, keep if name == QUARANTINED else (), dry=dry)
            for name, table in tables.items()
        }

    def rebuild(self, name: str, *, tasks: Tasks | None = None) -> Rebuilt:
        """Make a typed table again from `samples`, as the configuration is now.

        Those of topics of ROS 2 are read by the definitions that are known now.
        """
        spec = known_table(self.place, self.config, name)
        done = rebuild(self.place, spec, tasks or tasks_on(self.spark))
        changed = (Table.open(self.place, one) for one in (name, QUARANTINED))
        mirror_where_it_is([table for table in changed if table is not None])
        return done

    def forget(
        self, keys: str, *journals: str | Path, tasks: Tasks | None = None
    ) -> dict[str, int]:
        """Take keys out of journals and of all tables, old versions included.

        Gives the rows that each had of them, all journals together. Nothing may record into them or
        fill the lake meanwhile. Updates with wildcards go if all that they may mean does. Views and
        alerts begin anew.
        """
        tables, unreadable = self.catalog.opened()
        for error in unreadable.values():  # it may have such rows, too
            raise error
        return forget_everywhere(
            self.place, tables, keys, journals, lambda: tasks or tasks_on(self.spark)
        )

    def status(self, *journals: Journal) -> LakeStatus:
        """What can be said of the lake now, and of the pipeline that fills it, if one runs."""
        return looked_at(self.place, self.tables(), journals)


def open(
    path: str | Path, spark: SparkSession | None = None, config: LakeConfig | None = None
) -> Lake:
    """The lake in a folder or at an address; Spark starts when a question needs it."""
    place = LakeLocation(path)
    lake = Lake(place, spark, config or LakeConfig())
    if lake.catalog.is_empty():
        raise LocalError(
            f"{place.uri} is no lake: there is no table in it; fill one with "
            "`zenlake lake run --journal DIR --lake DIR`"
        )
    return lake
