"""The sink of flows with expectations: `format("zenlake")` for rows that `marked` has marked.

Tasks separate the rows (`expected_rows`); the driver commits the refused ones to `quarantine`
(`refused_rows`), then the others to the table together with the counts. Counts are applications of
the table's log, so a batch that comes again is counted once, and a total costs no reading of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql.datasource import DataSource, WriterCommitMessage
from pyspark.sql.types import StructType

from zenlake.lake.pipelines.expected_rows import RowChecks, as_text, from_text
from zenlake.lake.pipelines.refused_rows import append_refused, replace_refused
from zenlake.lake.spark_source.options import TableOptions
from zenlake.lake.spark_source.source import LakeTableStreamWriter, LakeTableWriter
from zenlake.lake.spark_source.table_writer import TableWriter, WrittenFiles
from zenlake.lake.table.data_files import DataFile
from zenlake.lake.table.location import LakeLocation
from zenlake.pipelines import Expectation
from zenlake.spark.options import WRITE, WRITE_STREAM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FORMAT", "ExpectingSink", "counters_of", "register", "sink_options"]

FORMAT: Final = "zenlake_expectations"
_EXPECTATIONS: Final = "expectations"
_APPLICATION: Final = "application"


def register(spark: SparkSession) -> None:
    """Let a session know the format."""
    spark.dataSource.register(ExpectingSink)


def sink_options(expectations: Sequence[Expectation], application: str) -> dict[str, str]:
    """Return the options of the format beside those of `format("zenlake")`."""
    return {_EXPECTATIONS: as_text(expectations), _APPLICATION: application}


def counters_of(application: str, expectation: str) -> tuple[str, str]:
    """Return the applications that count rows which met an expectation, and which did not."""
    begin = f"{application}/expectation/{expectation}"
    return f"{begin}/passed", f"{begin}/failed"


@dataclass
class CheckedFiles(WriterCommitMessage):
    """What a task wrote: files of the table, files of the quarantine, and counts."""

    written: WrittenFiles
    refused: list[DataFile]
    rows: int
    #: By the place of the expectation.
    failed: list[int]


@final
class ExpectingSink(DataSource):
    """A table of the lake that gets the rows which meet expectations."""

    @classmethod
    def name(cls) -> str:
        """What `format(…)` is given."""
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> LakeTableWriter:
        """For `df.write`."""
        return LakeTableWriter(CheckedTable(self.options, schema, overwrite, WRITE))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LakeTableStreamWriter:
        """For `df.writeStream`."""
        return LakeTableStreamWriter(CheckedTable(self.options, schema, overwrite, WRITE_STREAM))


@final
class CheckedTable:
    """Writes the rows of one DataFrame or stream; can be pickled."""

    def __init__(
        self, options: Mapping[str, str], schema: StructType, overwrite: bool, use: str
    ) -> None:
        """`schema`: with the columns of `marked`; `use`: `write` or `writeStream`."""
        given = {name: value for name, value in options.items()}
        own = {name: given.pop(name) for name in (_EXPECTATIONS, _APPLICATION)}
        self.expectations = from_text(own[_EXPECTATIONS])
        self.application = own[_APPLICATION]
        plain = StructType(schema.fields[: -len(self.expectations) - 1])
        self.table = TableWriter(TableOptions(given, use), plain, overwrite)
        self.lake: LakeLocation = self.table.lake

    def write(self, batches: Iterator[Any]) -> CheckedFiles:
        """Separate and write the rows of a task."""
        checks = RowChecks(self.expectations, self.lake.uri, self.table.name)
        try:
            written = self.table.write(checks.kept(batches))
        except BaseException:
            checks.discard()
            raise
        return CheckedFiles(written, checks.refused, checks.rows, checks.failed)

    def commit(self, messages: Sequence[Any], batch: int | None) -> None:
        """Commit what all tasks wrote; `batch`: the number of a stream's batch."""
        checked = [one for one in messages if isinstance(one, CheckedFiles)]
        written = [one.written for one in checked]
        refused = [file for one in checked for file in one.refused]
        if batch is None:
            replace_refused(self.lake, self.table.name, refused)
        elif refused:
            query = next((one.query for one in written if one.query), "")
            is_new = not self.table.has_batch(batch, query) and append_refused(
                self.lake, refused, f"{self.table.name}:{self.application}/{query}", batch
            )
            if not is_new:
                self._remove(refused)
        self.table.commit(written, batch, self._counts(checked))

    def _counts(self, checked: Sequence[CheckedFiles]) -> dict[str, int]:
        """Return by how much each counter moves on."""
        rows = sum(one.rows for one in checked)
        counts: dict[str, int] = {}
        for n, one in enumerate(self.expectations):
            failed = sum(part.failed[n] for part in checked)
            passed_counter, failed_counter = counters_of(self.application, one.name)
            counts[passed_counter] = rows - failed
            counts[failed_counter] = failed
        return counts if rows or self.table.overwrite else {}

    def abort(self, messages: Sequence[Any]) -> None:
        """Remove what tasks wrote."""
        checked = [one for one in messages if isinstance(one, CheckedFiles)]
        self.table.abort([one.written for one in checked])

    def _remove(self, refused: Sequence[DataFile]) -> None:
        from zenlake.lake.ingest.task import QUARANTINED

        for file in refused:
            (self.lake / QUARANTINED).remove(file.path)
