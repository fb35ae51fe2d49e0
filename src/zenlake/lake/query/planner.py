"""Makes frames of questions in SQL: exactly the files that each can find something in.

A question is read once by sqlglot, for the tables that it names and the files that they need of it,
and once by Spark. What a stranger asks is judged twice, by plans of Spark itself and not by its
text (`lake/query/plan_policy`):

* *as parsed*, because reading a plan on can open files, load classes or run commands: nodes,
  tables and functions from lists, one by one;
* *as analysed*, because only then is certain what a name means: every leaf must be a file of this
  lake, every expression one of Spark's own.

Rows whose keys the asker may not see are left out beneath everything else
(`lake/query/row_filter`).
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Never, final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import LocalError
from zenlake.expr.tree import fields_of
from zenlake.lake.ingest.latest_overlay import fresh, marks_of, tail_of
from zenlake.lake.ingest.rollups import IDENTITY, ROLLUPS, added_up
from zenlake.lake.model.config import FIXED
from zenlake.lake.model.row_access import EVERYTHING, RowAccess
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.query.catalog import Catalog, CatalogColumns
from zenlake.lake.query.document_column import (
    has_document,
    is_document_named,
    with_document,
)
from zenlake.lake.query.file_pruning import conditions_of
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.plan_policy import demand_text, judge_analysed, judge_parsed
from zenlake.lake.query.referenced_tables import Question, Unanswerable, ask, no_table, only_counts
from zenlake.lake.query.row_filter import visible_rows
from zenlake.lake.query.table_frames import frame_of, frame_with_documents
from zenlake.lake.query.visibility import table_keys
from zenlake.lake.table.delta import Table
from zenlake.lake.table.features import UnreadableTable
from zenlake.lake.table.pruning import matching
from zenlake.lake.table.table_version import TableVersion
from zenlake.spark import jvm
from zenlake.spark.session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Planner", "count_of", "instant_of", "references"]


CONF: Final = {
    # Otherwise rows of VALUES are computed while the text is read, before anybody judges it.
    "spark.sql.parser.eagerEvalOfUnresolvedInlineTable": "false",
}
"""What the sessions of questions want beside what all sessions do."""


def references(
    catalog: Catalog,
    query: str,
    asof: datetime | str | None = None,
    known: Callable[[str], bool] = lambda name: False,
    names: Sequence[str] | None = None,
) -> tuple[Question, dict[str, TableVersion]]:
    """Return what a question names, and the tables that it reads, without Spark.

    `known` says whether a name that is no table means something all the same. `names`: the tables
    that the asker is told of; without them all. Raises `Unanswerable` for a table or column that
    does not exist.
    """
    at = None if asof is None else instant_of(asof)
    columns = CatalogColumns(catalog, at, names)
    try:
        question = ask(query, columns, known)
        if not question.trees:  # it may read any of them
            every = (catalog.tables() if at is None else catalog.tables_at(at))[0]
            return question, {name: table for name, table in every.items() if name in columns}
        return question, {name: columns.table(name) for name in question.tables}
    except KeyError as error:  # a folder that is no table, or was none then
        name = str(error.args[0])
        if at is not None:
            raise Unanswerable(f"there was no table '{name}' at {at.isoformat()}") from None
        raise Unanswerable(no_table(name, columns)) from None


def count_of(catalog: Catalog, query: str) -> pa.Table | None:
    """Return the answer to a question that only counts the rows of a table; None: it is another."""
    count_query = only_counts(query)
    if count_query is None:
        return None
    asked, column = count_query
    names = {name.lower(): name for name in catalog.names()}
    name = names.get(asked.lower(), "latest")
    if name == "latest":  # which has what was heard since it was written, too
        return None
    try:
        table = catalog.table(name)
    except UnreadableTable:
        return None  # what is wrong with it is told where the question is planned
    if table is None:
        return None
    rows = table.actions["num_records"]
    count = pc.sum(rows).as_py() or 0
    return None if rows.null_count else pa.table({column: pa.array([count], pa.int64())})


@final
class Planner:
    """Plans questions in one session of Spark, whose views are the tables that they read."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        specs: Callable[[], Iterable[TypedTable]] = tuple,
    ) -> None:
        """Use a new session of `spark`; `specs` gives what typed tables of keys are for."""
        self._spark = spark
        self.catalog = catalog
        self._specs = specs
        self.session = spark.newSession()
        for name, value in (session_conf() | CONF).items():
            self.session.conf.set(name, value)
        #: Held while it plans: another plan would change the views that this one is read with.
        self._lock = threading.RLock()
        self._shown: dict[str, tuple[int, int | None, tuple[str, ...], RowAccess, bool]] = {}
        self._shared: dict[str, tuple[str, int, int]] = {}

    def plan(
        self,
        query: str,
        *,
        versions: Mapping[str, int] | None = None,
        asof: datetime | str | None = None,
        access: RowAccess = EVERYTHING,
        limits: QueryLimits | None = None,
    ) -> DataFrame:
        """Return the answer to a question as a frame; `limits`: a stranger asks, so judge it.

        `versions` and `asof` ask tables as they were. The answer is of one moment: the tables are
        looked at once, now. Raises `Unanswerable` for a table or column that does not exist, and
        `Refused` for what a stranger may not ask.
        """
        with self._lock:
            if limits is not None:
                demand_text(query, limits)
            # Views of the caller's own session mean nothing in a stranger's question.
            known = self._is_elsewhere if limits is None else (lambda name: False)
            names = self._names(access)
            try:
                plan = jvm.parsed_plan(self.session, query)
                if limits is not None:
                    judge_parsed(plan, frozenset(names), limits)
            except Exception:
                references(self.catalog, query, asof, known, names)  # which may know better why
                raise
            self._prepare(query, versions, asof, access, known, names)
            frame = jvm.frame_of_plan(self.session, plan)
            if limits is not None:
                lake = self.catalog.place.address("").rstrip("/")
                judge_analysed(jvm.analysed_plan(frame), lake, limits)
            return framed(frame)

    def _prepare(
        self,
        query: str,
        versions: Mapping[str, int] | None,
        asof: datetime | str | None,
        access: RowAccess,
        known: Callable[[str], bool],
        names: Sequence[str],
    ) -> None:
        """Make what a question names views of the session, all of one moment."""
        question, tables = references(self.catalog, query, asof, known, names)
        samples = None
        if "latest" in tables and "latest" not in (versions or {}):
            samples = tables["samples"] if "samples" in tables else self._samples(asof)
        for name, version in (versions or {}).items():
            if name in tables:
                tables[name] = self._at(name, version)
        schemas = {name: table.schema.names for name, table in tables.items()}
        documents = is_document_named(query, question.trees, schemas)
        self._show(tables, samples, self._needed(question, tables), access, documents)
        for name in question.others:
            jvm.copy_view(name, self._spark, self.session)

    def share(self) -> None:
        """Make the tables views that every session of this Spark sees, as they are now."""
        every, _ = self.catalog.tables()
        for name, table in every.items():
            other = every.get("samples") if name == "latest" else None
            # What was said of a table tells a view from a later one of the same name.
            state = table.described, table.version, -1 if other is None else other.version
            if self._shared.get(name) == state:
                continue
            paths = table.paths
            frame = table_frame(self.session, self.catalog, table, paths, other)
            frame.createOrReplaceGlobalTempView(name)
            self._shared[name] = state

    def _is_elsewhere(self, name: str) -> bool:
        """Whether Spark itself knows a table or view of this name."""
        return bool(self._spark.catalog.tableExists(name))

    def _names(self, access: RowAccess) -> list[str]:
        """Return the names of tables that an asker is told of: those with keys that it may see.

        Columns of a table come from payloads, and its name from keys.
        """
        names = self.catalog.names()
        if access.unrestricted:
            return names
        specs = {spec.name: spec for spec in self._specs()}
        return [name for name in names if self._is_told(name, specs, access)]

    def _is_told(self, name: str, specs: Mapping[str, TypedTable], access: RowAccess) -> bool:
        """Whether some of the keys that a table is made of may be seen, or all may be in it."""
        described = ""
        if name not in specs and name not in FIXED:  # a view, an alert, a topic of ROS 2
            try:
                table = self.catalog.table(name)
            except UnreadableTable:
                return False
            if table is None or table.is_by_programs:
                return False
            described = table.described
        keys = table_keys(name, described, specs.values())
        return keys == "" or access.may_see_some("**" if keys is None else keys)

    def _samples(self, asof: datetime | str | None) -> TableVersion | None:
        """The table that `latest` follows, of the same moment."""
        if asof is None:
            return self.catalog.table("samples")
        return self.catalog.table_at("samples", instant_of(asof))

    def _at(self, name: str, version: int) -> TableVersion:
        table = Table.open(self.catalog.place, name)
        assert table is not None
        table.at(version)
        return table.snapshot()

    def _needed(
        self, question: Question, tables: Mapping[str, TableVersion]
    ) -> dict[str, list[str]]:
        """The files that a question can find something in, of each table."""
        schemas = {name: table.schema for name, table in tables.items()}
        wanted: dict[str, set[str]] = {}
        conditions_by_table = conditions_of(list(question.trees), schemas, datetime.now(UTC))
        for name, places in conditions_by_table.items():
            actions = tables[name].actions
            for conditions in places:
                if name == "latest":
                    # Of a row that is left out, an older one of its key must not take the place.
                    conditions = [one for one in conditions if fields_of(one) <= {"key"}]
                if name == ROLLUPS:
                    # The parts of a row are in several files.
                    conditions = [one for one in conditions if fields_of(one) <= {*IDENTITY, DAY}]
                wanted.setdefault(name, set()).update(matching(actions, conditions))
        return {name: sorted(paths) for name, paths in wanted.items()}

    def _show(
        self,
        tables: Mapping[str, TableVersion],
        samples: TableVersion | None,
        only: Mapping[str, list[str]],
        access: RowAccess,
        documents: bool,
    ) -> None:
        """Make views of tables, of some of their files only where that is known to do.

        `documents`: with the column `json` where a table has one.
        """
        for name, table in tables.items():
            paths = only.get(name)
            if paths is None:
                paths = table.paths
            other = samples if name == "latest" else None
            other_version = None if other is None else other.version
            parsed = documents and has_document(name, table.schema.names)
            state = (table.version, other_version, tuple(paths), access, parsed)
            if self._shown.get(name) == state:
                continue
            frame = table_frame(self.session, self.catalog, table, paths, other, documents=parsed)
            visible = visible_rows(
                frame, access, published_root(table), is_by_programs=table.is_by_programs
            )
            if parsed:
                visible = with_document(visible)
            visible.createOrReplaceTempView(name)
            self._shown[name] = state


def published_root(table: TableVersion) -> str:
    """Return the keys that results in a table are published below; empty for other tables."""
    return f"{table.described.partition(' ')[0]}/{table.name}" if table.is_continuous else ""


def table_frame(
    spark: SparkSession,
    catalog: Catalog,
    table: TableVersion,
    paths: list[str],
    samples: TableVersion | None,
    *,
    documents: bool = False,
) -> DataFrame:
    """Return these files of a table as a question sees them.

    `samples`: for `latest`, which gets what was heard since it was written. `documents`: with the
    column `document_text` if some payloads are CBOR or MessagePack.
    """
    marks = {} if samples is None else marks_of(table)
    tail = [] if samples is None else tail_of(samples.actions, marks)
    if documents:
        binary = catalog.binary_files(table, paths)
        heard_binary = [] if samples is None else catalog.binary_files(samples, tail)
        documents = bool(binary or heard_binary)
    rows = (
        frame_with_documents(spark, table, paths, binary)
        if documents
        else frame_of(spark, table, paths)
    )
    if samples is not None and tail:
        heard = (
            frame_with_documents(spark, samples, tail, heard_binary)
            if documents
            else frame_of(spark, samples, tail)
        )
        return fresh(spark, rows, heard, table, marks)
    return added_up(rows) if table.name == ROLLUPS else rows


def framed(frame: DataFrame) -> DataFrame:
    """Return a frame that says what to install where pandas is missing."""
    if importlib.util.find_spec("pandas") is None:
        frame.toPandas = _no_pandas  # type: ignore[method-assign]
    return frame


def _no_pandas() -> Never:
    raise LocalError("toPandas() needs pandas; run: pip install 'zenlake[all]'")


def instant_of(asof: datetime | str) -> datetime:
    """Return a moment that is in the past; one without a zone is of UTC."""
    try:
        instant = datetime.fromisoformat(asof) if isinstance(asof, str) else asof
    except ValueError as error:
        raise LocalError(f"'{asof}' is no time; write 2026-11-16T08:00 or …T08:00+01:00") from error
    instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
    if instant > datetime.now(UTC):
        raise LocalError(f"{instant.isoformat()} is in the future; ask again then")
    return instant
