"""A lake, opened for questions: its tables by name, SQL over them, and their upkeep.

>>> lake = zenlake.lake.open("zenlake-data/lake")            # doctest: +SKIP
>>> lake.sql("SELECT key, count(*) FROM samples GROUP BY key").show()  # doctest: +SKIP
"""

from __future__ import annotations

import importlib.util
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Never, final

from zenlake.config.nearest import nearest
from zenlake.errors import LocalError
from zenlake.lake.config import LakeConfig, Retention
from zenlake.lake.delta import Damaged, Table
from zenlake.lake.folds import missing_in
from zenlake.lake.judge import Limits, judge_analysed, judge_parsed, parsed
from zenlake.lake.place import Place
from zenlake.lake.question import Question, Unanswerable, ask
from zenlake.lake.rebuild import Rebuilt, rebuild
from zenlake.lake.sight import EVERYTHING, Sight
from zenlake.lake.status import LakeStatus, TableStatus, read_status
from zenlake.lake.tail import fresh, marks_of, tail_of
from zenlake.lake.tasks import SparkTasks, Tasks
from zenlake.lake.upkeep import Progress, compact, promised, retain, vacuum
from zenlake.lake.views import frame_of, narrowed
from zenlake.lake.work import QUARANTINED
from zenlake.spark.session import session_conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from zenlake.journal import Journal

__all__ = ["Lake", "open"]


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
        return self._opened()[0]

    def _opened(self) -> tuple[dict[str, Table], dict[str, Damaged]]:
        """The tables by name, and those whose log cannot be read."""
        found: dict[str, Table] = {}
        damaged: dict[str, Damaged] = {}
        for name in self.place.folders():
            try:
                table = Table.open(self.place, name)
            except Damaged as error:
                damaged[name] = error
                continue
            if table is not None:
                found[name] = table
        return found, damaged

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
                return self._framed(self._fresh(table, samples, None))
        return self._framed(frame_of(self.spark, table, table.actions()["path"].to_pylist()))

    def ask(self, query: str) -> Question:
        """The tables that a question reads; raises `Unanswerable` without Spark if it can."""
        return Question(self._named(query, *self._opened()))

    def _named(
        self, query: str, every: Mapping[str, Table], damaged: Mapping[str, Damaged]
    ) -> frozenset[str]:
        columns = {name: table.schema.names for name, table in every.items()}
        try:
            return ask(query, columns, self._elsewhere).tables
        except Unanswerable:
            for name, error in damaged.items():
                if re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE):
                    raise error from None
            raise

    def sql(self, query: str, versions: Mapping[str, int] | None = None) -> DataFrame:
        """The answer to a question, as a Spark frame.

        `versions` asks tables as they were: `{"latest": 12}`. The answer is of one moment: the
        tables are looked at once, when this is called. Raises `Unanswerable` for a table or a
        column that does not exist.
        """
        return self._asked(query, versions, EVERYTHING, None)

    def judged(
        self, query: str, sight: Sight, limits: Limits, versions: Mapping[str, int] | None = None
    ) -> DataFrame:
        """The answer to a stranger's question, on a session of its own; for `lake/gate`.

        Raises `Refused` for whatever is no single SELECT over tables of this lake.
        """
        session = self.spark.newSession()
        for name, value in session_conf().items():
            session.conf.set(name, value)
        alone = Lake(self.place, session, self.config)
        return alone._asked(query, versions, sight, limits)

    def _asked(
        self,
        query: str,
        versions: Mapping[str, int] | None,
        sight: Sight,
        limits: Limits | None,
    ) -> DataFrame:
        """`limits`: judge the question, as `lake/gate` says."""
        every, damaged = self._opened()
        names = self._named(query, every, damaged)
        if limits is not None:
            parser = self.spark._jsparkSession.sessionState().sqlParser()
            judge_parsed(parsed(parser, query), frozenset(every), limits)
        then = dict(versions or {})
        tables = {name: table for name, table in every.items() if name in names}
        for name, version in then.items():
            if name in tables:
                tables[name].at(version)
        samples = every.get("samples") if "latest" in tables and "latest" not in then else None
        if samples is not None and "samples" in then:
            samples = Table.open(self.place, "samples")
        looked = dict(tables) if samples is None else {"samples": samples, **tables}
        self._show(tables, samples, {}, sight)
        frame = self.spark.sql(query)
        if limits is not None:
            judge_analysed(
                frame._jdf.queryExecution().analyzed(), self.place.address("").rstrip("/"), limits
            )
        if not tables:
            return self._framed(frame)
        self._show(tables, samples, narrowed(frame, looked), sight)
        return self._framed(self.spark.sql(query))

    def _elsewhere(self, name: str) -> bool:
        """Whether Spark itself knows a table or view of this name."""
        return self._spark is not None and bool(self._spark.catalog.tableExists(name))

    def _show(
        self,
        tables: Mapping[str, Table],
        samples: Table | None,
        only: Mapping[str, list[str]],
        sight: Sight,
    ) -> None:
        """Make views of tables, of some of their files only where that is known to do."""
        for name, table in tables.items():
            if name == "latest" and samples is not None:
                frame = self._fresh(table, samples, only)
            else:
                paths = only.get(name)
                paths = table.actions()["path"].to_pylist() if paths is None else paths
                frame = frame_of(self.spark, table, paths)
            sight.through(frame).createOrReplaceTempView(name)

    def _fresh(
        self, latest: Table, samples: Table, only: Mapping[str, list[str]] | None
    ) -> DataFrame:
        """`latest` with what `samples` has heard since it was written."""
        marks = marks_of(latest)
        base = (only or {}).get("latest")
        base = latest.actions()["path"].to_pylist() if base is None else base
        tail = tail_of(samples.actions(), marks)
        rows = frame_of(self.spark, latest, base)
        if not tail:
            return rows
        if only is not None and "samples" in only:
            wanted = set(only["samples"])
            tail = [path for path in tail if path in wanted]
        return fresh(self.spark, rows, frame_of(self.spark, samples, tail), latest, marks)

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

    def rebuild(self, name: str, *, tasks: Tasks | None = None) -> Rebuilt:
        """Make a typed table again from `samples`, as the configuration is now."""
        specs = {spec.name: spec for spec in self.config.tables}
        if name not in specs:
            near = nearest(name, specs)
            advice = f"did you mean '{near}'? " if near else ""
            raise LocalError(
                f"the configuration has no typed table '{name}'; {advice}"
                f"It has {', '.join(specs) or 'none'}, and only these can be made again"
            )
        return rebuild(self.place, specs[name], tasks or SparkTasks(self.spark))

    def status(self, journal: Journal | None = None) -> LakeStatus:
        """What can be said of the lake now, and of the pipeline that fills it, if one runs."""
        said = read_status(self.place.uri) or LakeStatus(state="stopped")
        running = said.fresh(time.time())
        tables = tuple(self._table_status(table, journal, said) for table in self.tables().values())
        by_name = {table.name: table for table in tables}
        gaps = Table.open(self.place, "gaps")
        return replace(
            said,
            state=said.state if running else "stopped",
            rows=by_name["samples"].rows if "samples" in by_name else 0,
            lag=max((table.behind for table in tables if table.name != "gaps"), default=0),
            freshness=said.freshness if running else 0.0,
            quarantine=by_name[QUARANTINED].rows if QUARANTINED in by_name else 0,
            gaps=0 if gaps is None else missing_in(gaps),
            files=sum(table.files for table in tables),
            bytes_live=sum(table.bytes for table in tables),
            bytes_total=sum(size for _, size, _ in self.place.files()),
            tables=tables,
        )

    def _table_status(self, table: Table, journal: Journal | None, said: LakeStatus) -> TableStatus:
        """Facts about a table; of a journal it lacks only rows that it wants."""
        totals = table.totals()
        behind, at = 0, {}
        if journal is not None and table.name != QUARANTINED:
            # `latest` is answered from the tail of `samples`, so it is as far as that.
            fed = table
            if table.name == "latest":
                fed = Table.open(self.place, "samples") or table
            known = next((one.at for one in said.tables if one.name == table.name), {})
            before = known.get(journal.id, ())
            ends = journal.watermark().offsets
            has = tuple(
                max(fed.committed(f"{journal.id}/{p}") or 0, before[p] if p < len(before) else 0)
                for p in range(len(ends))
            )
            behind = sum(max(0, end - mine) for end, mine in zip(ends, has, strict=True))
            at = {journal.id: has}
        return TableStatus(
            table.name, table.version, totals.rows, totals.files, totals.bytes, behind, at
        )


def _no_pandas() -> Never:
    raise LocalError("toPandas() needs pandas; run: pip install 'zenlake[all]'")


def open(
    path: str | Path, spark: SparkSession | None = None, config: LakeConfig | None = None
) -> Lake:
    """The lake in a folder or at an address; Spark starts when a question needs it."""
    place = Place(path)
    lake = Lake(place, spark, config or LakeConfig())
    if not any(lake._opened()):
        raise LocalError(
            f"{place.uri} is no lake: there is no table in it; fill one with "
            "`zenlake lake run --journal DIR --lake DIR`"
        )
    return lake
