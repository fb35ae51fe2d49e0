"""The tables of a lake by the names that a pipeline's files use, and those that a pipeline makes.

Spark's catalog has every table of the lake in one database, which is the current one of the
pipeline's session: `spark.table("battery")`, `spark.readStream.table("battery")`,
`… FROM STREAM battery`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from zenlake.errors import LocalError
from zenlake.lake.pipelines.definitions import PipelineError
from zenlake.lake.pipelines.expected_rows import marked
from zenlake.lake.pipelines.expecting_sink import FORMAT, counters_of, register, sink_options
from zenlake.lake.pipelines.refused_rows import replace_refused
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.spark_source.columns import table_columns
from zenlake.lake.spark_source.named_tables import forget_name, name_table
from zenlake.lake.spark_source.tasks import spark_columns
from zenlake.lake.table.delta import Table
from zenlake.spark import jvm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.pipelines.output import Output
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from zenlake.lake.pipelines.graph import Graph, PlannedFlow, PlannedTable
    from zenlake.lake.table.location import LakeLocation
    from zenlake.pipelines import Expectation

__all__ = ["OWNER_PROPERTY", "PipelineTables"]

OWNER_PROPERTY: Final = "zenlake.pipeline"
"""The property of a table that names the pipeline which fills it."""
_SETTINGS: Final = {
    # ${id} in a property of a table is for zenlake, not a variable of Spark.
    "spark.sql.variable.substitute": "false",
    # State on disk, and the only provider that transformWithState has.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@final
class PipelineTables:
    """The tables of one lake in a session of their own."""

    def __init__(self, place: LakeLocation, spark: SparkSession, database: str = "lake") -> None:
        """`spark`: whose Java is used; `database`: where the catalog has the tables."""
        self.place = place
        self.database = database
        self.spark = spark.newSession()
        register(self.spark)
        self._catalog = Catalog(place)
        #: The tables whose counts of expectations were asked for, by name.
        self._counted: dict[str, Table] = {}
        #: The columns that Spark knows, by table.
        self._shown: dict[str, StructType] = {}
        for name, value in _SETTINGS.items():
            self.spark.conf.set(name, value)
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS `{database}`")
        self.spark.catalog.setCurrentDatabase(database)

    # --- the names that Spark knows ---------------------------------------------------------------

    def refresh(self) -> None:
        """Let Spark know every table of the lake as it is now."""
        tables, _ = self._catalog.tables()
        self.hide(self._shown.keys() - tables.keys())
        for name, table in tables.items():
            self.show(name, spark_columns(table.schema))

    def hide(self, names: Iterable[str]) -> None:
        """Let Spark know no tables of these names; the tables stay."""
        for name in tuple(names):
            forget_name(self.spark, self.database, name)
            self._shown.pop(name, None)

    def show(self, name: str, schema: StructType) -> None:
        """Let Spark know a table with these columns, whether it is there yet or not."""
        if self._shown.get(name) == schema:
            return
        self.hide([name])
        name_table(self.spark, self.database, name, self.path(name), schema)
        self._shown[name] = schema

    def names(self) -> set[str]:
        """Return the names that Spark knows."""
        return set(self._shown)

    def have_moved(self, graph: Graph) -> bool:
        """Return True if a table that the pipeline reads has other columns than Spark knows."""
        inputs = {name for one in graph.flows for name in one.inputs} - graph.tables.keys()
        for name in inputs & self._shown.keys():
            table = self._catalog.table(name)
            if table is not None and spark_columns(table.schema) != self._shown[name]:
                return True
        return False

    # --- the tables themselves --------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Return where a table is, or will be."""
        return (self.place / name).uri

    def versions(self, names: Iterable[str]) -> dict[str, int]:
        """Return the newest versions of tables."""
        found = {name: self._catalog.table(name) for name in sorted(names)}
        return {name: table.version for name, table in found.items() if table is not None}

    def demand_free(self, outputs: Mapping[str, Output], pipeline: str) -> None:
        """Raise `PipelineError` if another program fills a table that a pipeline defines."""
        for name, output in outputs.items():
            table = Table.open(self.place, name)
            owner = None if table is None else table.properties.get(OWNER_PROPERTY, "")
            if owner not in (None, pipeline):
                filled = f"the pipeline '{owner}'" if owner else "the lake or another program"
                raise PipelineError(
                    f"there is a table '{name}' already, which {filled} fills; choose another name",
                    output.source_code_location,
                )

    def make(self, name: str, planned: PlannedTable, pipeline: str) -> None:
        """Make a table of a pipeline if it is not there, and give it the columns that it lacks."""
        output = planned.output
        table = Table.create(
            self.place,
            name,
            table_columns(planned.schema),
            tuple(output.partition_cols or ()),
            output.comment or "",
            by_programs=True,
        )
        table.set_properties({**output.table_properties, OWNER_PROPERTY: pipeline})

    def empty(self, name: str) -> None:
        """Remove all rows of a table in one version, those in quarantine too."""
        replace_refused(self.place, name, [])
        table = self._demanded(name)
        files = table.files()
        if files:
            table.rewrite([], files, True)

    def overwrite(self, name: str, planned: PlannedFlow, application: str) -> None:
        """Put the rows of a flow in the place of those of a table, in one version.

        `application`: what its counts are called in the log of the table.
        """
        writer = planned.frame.write.format("zenlake")
        if planned.expectations:
            writer = marked(planned.frame, planned.expectations).write.format(FORMAT)
            writer = writer.options(**sink_options(planned.expectations, application))
        # Spark looks for a registered format in the session that is active on the thread.
        with jvm.active(self.spark):
            writer.option("mergeSchema", True).mode("overwrite").save(self.path(name))

    def counted(
        self, name: str, application: str, expectations: Iterable[Expectation]
    ) -> dict[str, tuple[int, int]]:
        """Return how many rows of a flow met each expectation, and how many did not."""
        table = self._counted.get(name)
        if table is not None and table.is_where_it_was():
            table.refresh()
        else:
            table = Table.open(self.place, name)
        if table is None:
            return {}
        self._counted[name] = table
        return {
            one.name: (table.committed(passed) or 0, table.committed(failed) or 0)
            for one in expectations
            for passed, failed in [counters_of(application, one.name)]
        }

    def _demanded(self, name: str) -> Table:
        table = Table.open(self.place, name)
        if table is None:
            raise LocalError(f"there is no table '{name}' in {self.place.uri} any more")
        return table
