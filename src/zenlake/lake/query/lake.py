"""A lake, opened for questions: its tables by name, SQL over them, and their upkeep.

>>> lake = zenlake.lake.open("zenlake-data/lake")            # doctest: +SKIP
>>> lake.sql("SELECT key, count(*) FROM samples GROUP BY key").show()  # doctest: +SKIP
"""

from __future__ import annotations

import importlib.util
import re
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import LocalError
from zenlake.lake.ingest.latest_overlay import fresh, marks_of, tail_of
from zenlake.lake.ingest.rollups import IDENTITY, ROLLUPS, added_up
from zenlake.lake.ingest.spark_tasks import Tasks, tasks_on
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.maintain.forget import forget_everywhere
from zenlake.lake.maintain.overview import looked_at
from zenlake.lake.maintain.rebuild import Rebuilt, known_table, rebuild
from zenlake.lake.maintain.upkeep import Progress, compact, promised, retain, vacuum
from zenlake.lake.model.config import LakeConfig, Retention
from zenlake.lake.model.location import LakeLocation
from zenlake.lake.model.row_access import EVERYTHING, RowAccess
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.model.status import LakeStatus
from zenlake.lake.query.file_pruning import conditions_of
from zenlake.lake.query.plan_policy import Limits, judge_analysed, judge_parsed, parsed
from zenlake.lake.query.referenced_tables import Question, Unanswerable, ask, only_counts
from zenlake.lake.query.row_filter import visible_rows
from zenlake.lake.query.table_frames import frame_of, matching
from zenlake.lake.table.delta import CorruptTable, Table
from zenlake.lake.table.iceberg import mirror_where_it_is
from zenlake.spark import jvm
from zenlake.spark.session import session_conf

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
        self._session: SparkSession | None = None
        #: Held while a question is planned: the views of the session are those of one question.
        self._planning = threading.RLock()
        self._tables: dict[str, Table] = {}
        self._known: dict[str, tuple[int, Any]] = {}
        self._shared: dict[str, tuple[str, int, int]] = {}
        self._shown: dict[str, tuple[int, int | None, tuple[str, ...], RowAccess]] = {}

    @property
    def spark(self) -> SparkSession:
        """The Spark that answers; started when it is first needed."""
        if self._spark is None:
            from zenlake.spark.session import spark_session

            self._spark = spark_session()
        return self._spark

    def tables(self) -> dict[str, Table]:
        """The tables by name, as they are now."""
        return self._opened()[0]

    def _opened(self) -> tuple[dict[str, Table], dict[str, CorruptTable]]:
        """The tables by name, and those whose log cannot be read."""
        tables: dict[str, Table] = {}
        damaged: dict[str, CorruptTable] = {}
        for name in self.place.folders():
            try:
                table = Table.open(self.place, name)
            except CorruptTable as error:
                damaged[name] = error
                continue
            if table is not None:
                tables[name] = table
        return tables, damaged

    def table(self, name: str, version: int | None = None) -> DataFrame:
        """One table as a Spark frame, now or as it was in a version."""
        table = Table.open(self.place, name)
        if table is None:
            known = ", ".join(self.tables()) or "none"
            raise LocalError(f"the lake at {self.place.uri} has no table '{name}'; it has {known}")
        if version is not None:
            table.at(version)
        else:
            samples = Table.open(self.place, "samples") if name == "latest" else None
            if samples is not None:
                base = table.actions()["path"].to_pylist()
                with self._planning:
                    return self._framed(self._fresh(self.spark, table, samples, base))
        return self._framed(_frame(self.spark, table, table.actions()["path"].to_pylist()))

    def ask(self, query: str, asof: datetime | str | None = None) -> Question:
        """The tables that a question reads; raises `Unanswerable` without Spark if it can."""
        return self._named(query, *(self._opened() if asof is None else self.at_time(asof)))

    def _named(
        self,
        query: str,
        every: Mapping[str, Table],
        damaged: Mapping[str, CorruptTable],
        *,
        strange: bool = False,
    ) -> Question:
        """`strange`: views of the caller's Spark mean nothing in this question."""
        columns = {name: table.schema.names for name, table in every.items()}
        try:
            return ask(query, columns, _nowhere if strange else self._elsewhere)
        except Unanswerable:
            for name, error in damaged.items():
                if re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE):
                    raise error from None
            raise

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
        return self._asked(query, versions, EVERYTHING, None, asof)

    def judged(
        self,
        query: str,
        access: RowAccess,
        limits: Limits,
        versions: Mapping[str, int] | None = None,
        asof: datetime | str | None = None,
    ) -> DataFrame:
        """The answer to a stranger's question, on a session of its own; for `lake/query/gate`.

        Raises `Refused` for whatever is no single SELECT over tables of this lake.
        """
        alone = Lake(self.place, self.spark, self.config)
        return alone._asked(query, versions, access, limits, asof)

    def _asked(
        self,
        query: str,
        versions: Mapping[str, int] | None,
        access: RowAccess,
        limits: Limits | None,
        asof: datetime | str | None,
    ) -> DataFrame:
        """`limits`: judge the question, as `lake/query/gate` says."""
        with self._planning:
            every, damaged = self._looked() if asof is None else self.at_time(asof)
            asked = self._named(query, every, damaged, strange=limits is not None)
            if limits is not None:
                parser = jvm.sql_parser(self.session)
                judge_parsed(parsed(parser, query), frozenset(every), limits)
            tables = {name: every[name] for name in asked.tables}
            then = dict(versions or {})
            for name, version in then.items():
                if name in tables:
                    tables[name] = self._at(name, version)
            samples = every.get("samples") if "latest" in tables and "latest" not in then else None
            self._show(tables, samples, self._needed(asked, tables), access)
            for name in asked.others:
                self._lend(name)
            frame = self.session.sql(query)
            if limits is not None:
                judge_analysed(
                    jvm.analysed_plan(frame),
                    self.place.address("").rstrip("/"),
                    limits,
                )
            return self._framed(frame)

    def counted(self, query: str) -> pa.Table | None:
        """The answer to a question that only counts the rows of a table; None if it is another."""
        count_query = only_counts(query)
        if count_query is None:
            return None
        asked, column = count_query
        names = {name.lower(): name for name in self.place.folders()}
        name = names.get(asked.lower(), "latest")
        if name == "latest":  # which has what was heard since it was written, too
            return None
        with self._planning:
            try:
                table = self._tables.get(name) or Table.open(self.place, name)
                if table is None:
                    return None
                table.refresh()
            except CorruptTable:
                return None  # what is wrong with it is told where the question is planned
            self._tables[name] = table
            rows = self._actions(table)["num_records"]
        count = pc.sum(rows).as_py() or 0
        return None if rows.null_count else pa.table({column: pa.array([count], pa.int64())})

    @property
    def session(self) -> SparkSession:
        """The session that questions are asked in: the lake's own, with its tables as views."""
        if self._session is None:
            self._session = self.spark.newSession()
            for name, value in session_conf().items():
                self._session.conf.set(name, value)
        return self._session

    def share(self) -> None:
        """Make the tables views that every session of this Spark sees, as they are now."""
        with self._planning:
            every, _ = self._looked()
            for name, table in every.items():
                other = every.get("samples") if name == "latest" else None
                # What was said of a table tells a view from a later one of the same name.
                state = table.described, table.version, -1 if other is None else other.version
                if self._shared.get(name) == state:
                    continue
                paths = self._actions(table)["path"].to_pylist()
                if other is not None:
                    frame = self._fresh(self.session, table, other, paths)
                else:
                    frame = _frame(self.session, table, paths)
                frame.createOrReplaceGlobalTempView(name)
                self._shared[name] = state

    def _looked(self) -> tuple[dict[str, Table], dict[str, CorruptTable]]:
        """As `_opened`; tables that were seen before are only looked at again."""
        tables: dict[str, Table] = {}
        damaged: dict[str, CorruptTable] = {}
        for name in self.place.folders():
            table = self._tables.get(name)
            try:
                if table is None:
                    table = Table.open(self.place, name)
                else:
                    table.refresh()
            except CorruptTable as error:
                damaged[name] = error
                continue
            if table is not None:
                tables[name] = table
        self._tables = tables
        return tables, damaged

    def at_time(self, asof: datetime | str) -> tuple[dict[str, Table], dict[str, CorruptTable]]:
        """The tables that there were at a time, as they were, and those that cannot tell."""
        instant = instant_of(asof)
        every, damaged = self._opened()
        tables: dict[str, Table] = {}
        for name, table in every.items():
            try:
                if table.at_time(instant):
                    tables[name] = table
            except CorruptTable as error:
                damaged[name] = error
        return tables, damaged

    def _at(self, name: str, version: int) -> Table:
        table = Table.open(self.place, name)
        assert table is not None
        table.at(version)
        return table

    def _needed(self, asked: Question, tables: Mapping[str, Table]) -> dict[str, list[str]]:
        """The files that a question can find something in, of each table."""
        schemas = {name: table.schema for name, table in tables.items()}
        wanted: dict[str, set[str]] = {}
        conditions_by_table = conditions_of(list(asked.trees), schemas, datetime.now(UTC))
        for name, places in conditions_by_table.items():
            actions = self._actions(tables[name])
            for conditions in places:
                if name == "latest":
                    # Of a row that is left out, an older one of its key must not take the place.
                    conditions = [one for one in conditions if one[0] == "key"]
                if name == ROLLUPS:
                    # The parts of a row are in several files.
                    conditions = [one for one in conditions if one[0] in (*IDENTITY, DAY)]
                wanted.setdefault(name, set()).update(matching(actions, conditions))
        return {name: sorted(paths) for name, paths in wanted.items()}

    def _actions(self, table: Table) -> Any:
        """The files of a table with their statistics; remembered for as long as it stays so."""
        known = self._known.get(table.name)
        if known is None or known[0] != table.version:
            known = self._known[table.name] = table.version, table.actions()
        return known[1]

    def _elsewhere(self, name: str) -> bool:
        """Whether Spark itself knows a table or view of this name."""
        return self._spark is not None and bool(self._spark.catalog.tableExists(name))

    def _lend(self, name: str) -> None:
        """Let a view of the caller's session be seen in the lake's own."""
        jvm.copy_view(name, self.spark, self.session)

    def _show(
        self,
        tables: Mapping[str, Table],
        samples: Table | None,
        only: Mapping[str, list[str]],
        access: RowAccess,
    ) -> None:
        """Make views of tables, of some of their files only where that is known to do."""
        for name, table in tables.items():
            paths = only.get(name)
            if paths is None:
                paths = self._actions(table)["path"].to_pylist()
            other = samples if name == "latest" else None
            state = (table.version, None if other is None else other.version, tuple(paths), access)
            if self._shown.get(name) == state:
                continue
            if other is not None:
                frame = self._fresh(self.session, table, other, paths)
            else:
                frame = _frame(self.session, table, paths)
            visible_rows(frame, access).createOrReplaceTempView(name)
            self._shown[name] = state

    def _fresh(
        self, spark: SparkSession, latest: Table, samples: Table, base: list[str]
    ) -> DataFrame:
        """`latest` with what `samples` has heard since it was written."""
        marks = marks_of(latest)
        tail = tail_of(self._actions(samples), marks)
        rows = frame_of(spark, latest, base)
        if not tail:
            return rows
        return fresh(spark, rows, frame_of(spark, samples, tail), latest, marks)

    def _framed(self, frame: DataFrame) -> DataFrame:
        """A frame that says what to install where pandas is missing."""
        if importlib.util.find_spec("pandas") is None:
            frame.toPandas = _no_pandas  # type: ignore[method-assign]
        return frame

    # --- upkeep ---------------------------------------------------------------------------------

    def compact(
        self, *, full: bool = True, tasks: Tasks | None = None, progress: Progress | None = None
    ) -> dict[str, int]:
        """Merge the small files of every table; gives how many files each has fewer."""
        where = tasks or tasks_on(self.spark)
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
        return forget_everywhere(
            self.place, self.tables(), keys, journals, lambda: tasks or tasks_on(self.spark)
        )

    def status(self, *journals: Journal) -> LakeStatus:
        """What can be said of the lake now, and of the pipeline that fills it, if one runs."""
        return looked_at(self.place, self.tables(), journals)


def instant_of(asof: datetime | str) -> datetime:
    """A moment that is in the past; one without a zone is of UTC."""
    try:
        instant = datetime.fromisoformat(asof) if isinstance(asof, str) else asof
    except ValueError as error:
        raise LocalError(f"'{asof}' is no time; write 2026-11-16T08:00 or …T08:00+01:00") from error
    instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
    if instant > datetime.now(UTC):
        raise LocalError(f"{instant.isoformat()} is in the future; ask again then")
    return instant


def _frame(spark: SparkSession, table: Table, paths: list[str]) -> DataFrame:
    """These files of a table, as a question sees them."""
    frame = frame_of(spark, table, paths)
    return added_up(frame) if table.name == ROLLUPS else frame


def _nowhere(name: str) -> bool:
    return False


def _no_pandas() -> Never:
    raise LocalError("toPandas() needs pandas; run: pip install 'zenlake[all]'")


def open(
    path: str | Path, spark: SparkSession | None = None, config: LakeConfig | None = None
) -> Lake:
    """The lake in a folder or at an address; Spark starts when a question needs it."""
    place = LakeLocation(path)
    lake = Lake(place, spark, config or LakeConfig())
    if not any(lake._opened()):
        raise LocalError(
            f"{place.uri} is no lake: there is no table in it; fill one with "
            "`zenlake lake run --journal DIR --lake DIR`"
        )
    return lake
