"""A fixture of pytest for pipelines written with `pyspark.pipelines`.

    pytest_plugins = ["zenlake.testing.pipeline"]

    def test_low_batteries_are_found(pipeline):
        pipeline.feed("battery", [{"id": "7", "percent": 12.0}, {"id": "8", "percent": 80.0}])
        pipeline.step()
        pipeline.table("low").assert_rows([{"id": "7", "percent": 12.0}])

Each test has a lake of its own in a temporary folder; all tests share one Spark. Where the project
has a fixture `spark`, that is the Spark. The files of the pipeline are those of the nearest folder
above the test that has a `spark-pipeline.yml`, or of the test's own folder (that above `tests`); a
project that has them elsewhere defines a fixture `pipeline_folder`.

A test may import this module before pytest loads the plugin (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pytest

from zenlake.errors import LocalError
from zenlake.testing.row_difference import row_difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zenlake.lake import LakeConfig
    from zenlake.lake.pipelines.runner import PipelineRunner, RunReport

__all__ = ["PipelineHarness", "PipelineTable", "pipeline", "pipeline_folder", "pipeline_spark"]

START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
"""The time of samples, and of the begin of a simulated fleet, if a test does not say."""
STEP_SECONDS: Final = 10.0
"""What passes between two steps of ingest by the lake's clock: longer than new keys wait."""


@pytest.fixture(scope="session")
def pipeline_spark() -> Iterator[SparkSession]:
    """The Spark of tests whose project has no fixture `spark`: started once, for all of them."""
    from zenlake.spark import jvm
    from zenlake.spark.session import spark_session, stop_spark

    was_running = jvm.active_context() is not None
    session = spark_session("tests of pipelines", "local[2]")
    yield session
    if not was_running:
        stop_spark(session)


@pytest.fixture
def pipeline_folder(request: pytest.FixtureRequest) -> Path:
    """The folder with the files of the pipeline that a test is about."""
    from zenlake.lake.pipelines.project import SPEC_NAMES

    own = request.path.parent
    for folder in (own, *own.parents):
        if any((folder / name).is_file() for name in SPEC_NAMES):
            return folder
        if folder == request.config.rootpath:
            break
    return own.parent if own.name == "tests" else own


@pytest.fixture
def pipeline(
    request: pytest.FixtureRequest, pipeline_folder: Path, tmp_path: Path
) -> Iterator[PipelineHarness]:
    """A pipeline over a lake of its own: fed, stepped, and its tables compared."""
    harness = PipelineHarness(pipeline_folder, tmp_path / "lake", _spark_of(request))
    yield harness
    harness.close()


def _spark_of(request: pytest.FixtureRequest) -> SparkSession:
    """Return the project's own Spark, or else the Spark of all tests."""
    try:
        given: Any = request.getfixturevalue("spark")
    except pytest.FixtureLookupError as error:
        if error.argname != "spark":
            raise
        given = request.getfixturevalue("pipeline_spark")
    from pyspark.sql.classic.dataframe import DataFrame

    if not isinstance(given.range(1), DataFrame):
        raise LocalError(
            f"the fixture `spark` gives a {type(given).__module__}.{type(given).__name__}; "
            "pipelines are tested on a Spark of this process: zenlake.spark.spark_session()"
        )
    session: SparkSession = given
    return session


@final
class PipelineHarness:
    """A pipeline over a lake of its own."""

    def __init__(self, folder: Path, lake: Path, spark: SparkSession) -> None:
        """Run the files in `folder` over tables in `lake`; the fixture `pipeline` does."""
        from zenlake.lake.pipelines.project import open_project
        from zenlake.lake.pipelines.state import PipelineState, pipelines_folder
        from zenlake.lake.pipelines.tables import PipelineTables
        from zenlake.lake.table.location import LakeLocation

        self.folder = folder
        self.lake = lake
        """The folder of the temporary lake."""
        lake.mkdir(parents=True, exist_ok=True)
        self._project = open_project(folder)
        self._state = PipelineState(pipelines_folder(str(lake)) / self._project.name)
        self._tables = PipelineTables(LakeLocation(lake), spark)
        self.spark: SparkSession = self._tables.spark
        """The session of the pipeline: `pipeline.spark.table("low")`."""
        self._runner: PipelineRunner | None = None
        self._numbers = itertools.count()
        self.notes: list[str] = []
        """What the pipeline said of itself, such as that a definition has changed."""

    def close(self) -> None:
        """Stop the flows, and let Spark forget the tables."""
        if self._runner is not None:
            self._runner.close()
        self._tables.hide(self._tables.names())

    # --- what goes in -----------------------------------------------------------------------------

    def feed(self, table: str, rows: Any, schema: str | None = None) -> None:
        """Append rows to a table that the pipeline reads; it is made if it is not there.

        Args:
            table: The name of the table.
            rows: Dictionaries, a table or batch of Arrow, or a frame of Spark or pandas.
            schema: The columns as Spark writes them, `"id string, percent double"`: of a table
                that is made without rows, or where the rows do not tell the types.
        """
        from deltalake import write_deltalake

        from zenlake.lake.model.config import FIXED

        if table in FIXED:
            raise LocalError(
                f"the lake fills '{table}' itself, from its journal; record samples instead: "
                'pipeline.record([{"key": "robot/7/battery", "value": {"percent": 12}}])'
            )
        found = _arrow(rows, schema, self._columns_of(table))
        write_deltalake(str(self.lake / table), found, mode="append", schema_mode="merge")

    def record(self, samples: Sequence[Mapping[str, Any]]) -> None:
        """Put samples into the lake through its journal, as a recorder does.

        They are in `samples` then, and in the tables of their keys.

        Args:
            samples: Dictionaries with `key` and `value`: bytes, a text, or what becomes JSON;
                `None` deletes the key. They may have `time` and `encoding`.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [_sample(one, number) for number, one in enumerate(samples)]
        columns = {name: [row[name] for row in rows] for name in ("key", "encoding", "kind")}
        table = pa.table(
            {
                **{name: pa.array(values, pa.string()) for name, values in columns.items()},
                "value": pa.array([row["value"] for row in rows], pa.binary()),
                "time": pa.array([row["time"] for row in rows], pa.timestamp("us", "UTC")),
            }
        )
        file = self._recording()
        pq.write_table(table, file)
        self._ingest(file)

    def replay(
        self,
        recording: str | Path,
        *,
        keys: str | Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        """Put a recording into the lake: the folder of a journal, or a file of MCAP or Parquet.

        Args:
            recording: The folder or the file.
            keys: Key expressions of which one matches; of a journal only.
            since: The first moment; of a journal only.
            until: The moment before which it ends; of a journal only.
        """
        from zenlake.journal import Journal
        from zenlake.journal.transfer.export import to_parquet

        path = Path(recording)
        has_window = since is not None or until is not None
        if not path.exists():
            raise LocalError(f"there is no recording at {path.absolute()}")
        if path.is_dir():
            file = self._recording()
            to_parquet(
                Journal.open(path), file, keys=keys, time=(since, until) if has_window else None
            )
            self._ingest(file)
        elif keys is not None or has_window:
            raise LocalError(
                f"{path} is a file, of which all is taken; for a part of it make a journal of it: "
                "zenlake journal import"
            )
        else:
            self._ingest(path)

    def simulate(
        self,
        robots: int = 3,
        seconds: float = 60.0,
        *,
        seed: int = 1,
        start: datetime | None = None,
    ) -> None:
        """Put what a fleet of `zenlake demo` says into the lake; the same seed says the same.

        Args:
            robots: How many robots there are.
            seconds: For how long, by their clock; no time passes.
            seed: Where chance comes from.
            start: When it begins; noon of 31 January 2026, in UTC, if not said.
        """
        from zenlake.demo.fleet import Fleet

        fleet = Fleet.of(robots, rate=2.0, camera_bytes=0, seed=seed)
        samples: list[dict[str, Any]] = []
        while fleet.due <= seconds:
            now = fleet.due
            time = (start or START) + timedelta(seconds=now)
            for _, said in fleet.step(now):
                samples += [
                    {"key": one.key, "value": one.payload, "encoding": one.encoding, "time": time}
                    for one in said
                ]
        self.record(samples)

    def _recording(self) -> Path:
        folder = self.lake.parent / "recordings"
        folder.mkdir(exist_ok=True)
        return folder / f"{next(self._numbers)}.parquet"

    def _ingest(self, file: Path) -> None:
        """Append a file to the journal of the lake, and fill the tables from it."""
        from zenlake.journal import JournalWriter
        from zenlake.journal.transfer.imports import from_mcap, from_parquet
        from zenlake.lake import Pipeline
        from zenlake.lake.ingest.spark_tasks import tasks_on

        journal = self.lake.parent / "journal"
        writer = JournalWriter.open(journal, partitions=1, fsync="never")
        try:
            (from_mcap if file.suffix == ".mcap" else from_parquet)(writer, file, again=True)
            writer.flush()
        finally:
            writer.close()
        ingest = Pipeline(str(self.lake), str(journal), tasks_on(self.spark), self._config())
        now = 0.0
        while ingest.behind() or ingest.settle(now):
            ingest.step(now)
            now += STEP_SECONDS
        ingest.finish(now)

    def _config(self) -> LakeConfig:
        """Return the configuration of the lake: `lake.json5` of the project, if it is there."""
        from zenlake.lake import LakeConfig, read_config

        for folder in (self.folder, self.folder.parent):
            file = folder / "lake.json5"
            if file.is_file():
                return read_config(file.read_text("utf-8"), str(file))
        return LakeConfig()

    # --- what the pipeline does -------------------------------------------------------------------

    def step(self, full_refresh: Sequence[str] = ()) -> RunReport:
        """Process all rows that are there, each flow after those that it reads.

        Raises `PipelineError` if a file is wrong, and `LocalError` with the reason if a flow fails.

        Args:
            full_refresh: Names of tables that are emptied and computed from all rows again.
        """
        from zenlake.lake.pipelines.runner import PipelineRunner

        runner = self._runner
        if runner is not None and self._tables.have_moved(runner.graph):
            runner.close()
            runner = self._runner = None
        if runner is None:
            runner = PipelineRunner(self._project, self._tables, self._state, self.notes.append)
            runner.load()
            self._runner = runner
        report = runner.run_once(full_refresh)
        self.notes += runner.notes
        if report.failed:
            failures = report.failed.items()
            raise LocalError(
                "; ".join(f"the flow '{name}' failed: {why}" for name, why in failures)
            )
        return report

    # --- what comes out ---------------------------------------------------------------------------

    def table(self, name: str) -> PipelineTable:
        """Return a table of the lake; what is asked of it is answered as of that moment."""
        return PipelineTable(name, self.lake)

    def _columns_of(self, table: str) -> Any:
        from deltalake import DeltaTable

        path = str(self.lake / table)
        if not DeltaTable.is_deltatable(path):
            return None
        return DeltaTable(path).to_pyarrow_dataset().schema


@final
class PipelineTable:
    """A table of a pipeline, for comparisons."""

    def __init__(self, name: str, lake: Path) -> None:
        """`lake`: the folder of the lake."""
        self.name = name
        self._lake = lake

    def arrow(self) -> Any:
        """Return all rows as a table of Arrow."""
        from deltalake import DeltaTable

        path = str(self._lake / self.name)
        if not DeltaTable.is_deltatable(path):
            there = sorted(one.parent.name for one in self._lake.glob("*/_delta_log"))
            raise LocalError(
                f"there is no table '{self.name}'; there are {', '.join(there) or 'none'}. "
                "`pipeline.step()` makes the tables of a pipeline"
            )
        return DeltaTable(path).to_pyarrow_table()

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as dictionaries, in no order."""
        return list(self.arrow().to_pylist())

    def assert_rows(
        self,
        expected: Sequence[Mapping[str, Any]],
        *,
        by: str | Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> None:
        """Raise `AssertionError` with the difference unless the table has exactly these rows.

        Args:
            expected: The rows, in any order; values may be such as `pytest.approx(0.3)`.
            by: The columns that name a row, so that the difference says what changed in which.
            columns: The columns that are compared; all, if not said.
        """
        __tracebackhide__ = True
        found = self.arrow()
        if columns is not None:
            if lacking := [name for name in columns if name not in found.column_names]:
                raise LocalError(
                    f"table '{self.name}' has no column '{lacking[0]}'; it has "
                    f"{', '.join(found.column_names)}"
                )
            found = found.select(list(columns))
        keys = (by,) if isinstance(by, str) else tuple(by)
        difference = row_difference(found.to_pylist(), expected, keys)
        if difference:
            raise AssertionError(f"table '{self.name}': {difference}")


# --- rows -----------------------------------------------------------------------------------------


def _arrow(rows: Any, schema: str | None, had: Any) -> Any:
    """Return rows as Arrow, with the types that the table had, or else those of `schema`."""
    import pyarrow as pa

    known = {} if schema is None else _told(schema)
    known |= {} if had is None else {field.name: field.type for field in had}
    if isinstance(rows, pa.RecordBatch):
        found = pa.Table.from_batches([rows])
    elif isinstance(rows, pa.Table):
        found = rows
    elif hasattr(rows, "toArrow"):  # a frame of Spark
        found = rows.toArrow()
    elif hasattr(rows, "iloc"):  # a frame of pandas
        found = pa.Table.from_pandas(rows, preserve_index=False)
    else:
        found = _of_dictionaries(list(rows), known)
    fields = [
        pa.field(one.name, known.get(one.name, _as_tables_have(one.type))) for one in found.schema
    ]
    for field in fields:
        if pa.types.is_null(field.type):
            raise LocalError(
                f"no row has a value for '{field.name}', so nothing tells its type; write "
                f"schema='{field.name} string'"
            )
    return found.cast(pa.schema(fields))


def _of_dictionaries(rows: Sequence[Mapping[str, Any]], known: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    names = dict.fromkeys([*known, *(name for row in rows for name in row)])
    if not names:
        raise LocalError("without rows nothing tells the columns; write schema='id string, …'")
    columns = {}
    for name in names:
        try:
            columns[name] = pa.array([row.get(name) for row in rows], known.get(name))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise LocalError(f"the values of '{name}' are not of one type: {error}") from error
    return pa.table(columns)


def _told(schema: str) -> dict[str, Any]:
    """Return the columns that a text of Spark says."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    told = StructType.fromDDL(schema)
    if not isinstance(told, StructType):
        raise LocalError(f"schema={schema!r} has no columns; write such as 'id string, n int'")
    return {field.name: _as_tables_have(field.type) for field in to_arrow_schema(told)}


def _as_tables_have(kind: Any) -> Any:
    """Return a type as tables of Delta have it: times in microseconds, of UTC if of any zone."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    return kind


def _sample(given: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a sample as a row of a file that journals import."""
    more = given.keys() - {"key", "value", "time", "encoding"}
    if more or not given.keys() >= {"key", "value"}:
        raise LocalError(f"a sample has key and value, and may have time and encoding: {given!r}")
    value = given["value"]
    if value is None:
        payload, plain = b"", "zenoh/bytes"
    elif isinstance(value, bytes):
        payload, plain = value, "zenoh/bytes"
    elif isinstance(value, str):
        payload, plain = value.encode(), "zenoh/string"
    else:
        payload, plain = json.dumps(value).encode(), "application/json"
    return {
        "key": given["key"],
        "value": payload,
        "encoding": given.get("encoding") or plain,
        "kind": "delete" if value is None else "put",
        "time": given.get("time") or START + timedelta(seconds=number),
    }
