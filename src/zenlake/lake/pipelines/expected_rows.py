"""Rows of a flow with expectations, separated in one pass.

The frame of the flow gets a column for each expectation, true where a row meets it, and one column
with the row as JSON where the row is refused. The tasks that write the rows take these columns off,
count, give the rows that are kept to the table's writer, and write the others as files of
`quarantine`. So rows are computed once, nothing is cached, and no row comes to the driver. A second
pass over the same micro-batch (`foreachBatch` with `persist`) would hold every batch in memory to
count a few rows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import ZError
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.model.decoder import Reason
from zenlake.lake.model.sample_rows import DAY, QUARANTINE
from zenlake.lake.table.data_files import DataFile, write_file
from zenlake.lake.table.location import LakeLocation
from zenlake.pipelines import FAILED_PREFIX, Expectation, Violation, failed_message, is_met

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ExpectationFailed", "RowChecks", "as_text", "from_text", "marked", "without_marks"]

MARK: Final = "zenlake expectation {}"
"""The column that says which rows meet an expectation."""
ROW: Final = "zenlake row"
"""The column with the rows that are refused, as JSON."""
MOST_EXAMPLE_CHARACTERS: Final = 1000
"""Characters of the row that a message shows."""
FILE_BYTES: Final = 64 << 20
"""Bytes of refused rows after which a task writes a file."""


class ExpectationFailed(ZError):
    """A row that does not meet an expectation whose violation ends the flow."""


def as_text(expectations: Sequence[Expectation]) -> str:
    """Return expectations as an option of a writer."""
    return json.dumps([[one.name, one.condition, one.violation] for one in expectations])


def from_text(text: str) -> tuple[Expectation, ...]:
    """Return what `as_text` wrote."""
    return tuple(Expectation(name, told, Violation(how)) for name, told, how in json.loads(text))


def marked(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """Return the rows of a frame with the columns that `RowChecks` takes off."""
    from pyspark.sql import functions as f

    marks = [is_met(one).alias(MARK.format(n)) for n, one in enumerate(expectations)]
    refused = f.lit(False)
    for one in expectations:
        if one.violation is not Violation.WARN:
            refused = refused | ~is_met(one)
    row = f.when(refused, f.to_json(f.struct("*"))).cast("string").alias(ROW)
    return frame.select("*", *marks, row)


def without_marks(names: Sequence[str], expectations: int) -> list[str]:
    """Return the names of columns without those that `marked` added."""
    return list(names[: len(names) - expectations - 1])


@final
class RowChecks:
    """Checks the rows of one task: counts them, keeps some, writes the others to quarantine."""

    def __init__(self, expectations: Sequence[Expectation], lake: str, table: str) -> None:
        """`lake`: the address of the lake; `table`: the name of the table that gets the rows."""
        self.expectations = tuple(expectations)
        self.failed = [0] * len(self.expectations)
        self.rows = 0
        self.refused: list[DataFile] = []
        self._table = table
        self._quarantine = LakeLocation(lake) / QUARANTINED
        self._held: list[pa.Table] = []
        self._held_bytes = 0

    def kept(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the rows that the table gets, without marks."""
        for batch in batches:
            yield self._checked(batch)
        self._write()

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = batch.columns
        count = len(self.expectations)
        marks, rows = columns[-count - 1 : -1], columns[-1]
        names = without_marks(batch.schema.names, count)
        self.rows += batch.num_rows
        reasons = pa.nulls(batch.num_rows, pa.int32())
        for n, (one, mark) in enumerate(zip(self.expectations, marks, strict=True)):
            fails = pc.invert(mark)
            failed = pc.sum(fails).as_py() or 0
            self.failed[n] += failed
            if failed and one.violation is Violation.FAIL:
                self._fail(one, rows.filter(fails)[0].as_py())
            if failed and one.violation is Violation.DROP:
                first = pc.and_(fails, pc.is_null(reasons))
                reasons = pc.if_else(first, pa.scalar(n, pa.int32()), reasons)
        plain = pa.RecordBatch.from_arrays(
            columns[: len(names)],
            schema=pa.schema([batch.schema.field(i) for i in range(len(names))]),
        )
        if reasons.null_count == batch.num_rows:
            return plain
        dropped = pc.is_valid(reasons)
        self._hold(reasons.filter(dropped), rows.filter(dropped))
        return plain.filter(pc.invert(dropped))

    def _fail(self, expectation: Expectation, row: str) -> None:
        shown = row if len(row) <= MOST_EXAMPLE_CHARACTERS else row[:MOST_EXAMPLE_CHARACTERS] + "…"
        self.discard()
        # Spark shows the class of the exception in front of the message.
        raise ExpectationFailed(failed_message(expectation).removeprefix(FAILED_PREFIX) + shown)

    def discard(self) -> None:
        """Remove the files that were written."""
        for file in self.refused:
            self._quarantine.remove(file.path)
        self.refused = []
        self._held = []

    def _hold(self, reasons: pa.Array, rows: pa.Array) -> None:
        part = refused_rows(reasons, rows, self.expectations, self._table)
        self._held.append(part)
        self._held_bytes += part.nbytes
        if self._held_bytes >= FILE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._held:
            rows = pa.concat_tables(self._held)
            self._held, self._held_bytes = [], 0
            for day in sorted({str(one) for one in rows[DAY].unique().to_pylist()}):
                mine = rows.filter(pc.equal(rows[DAY].cast(pa.string()), day)).drop_columns([DAY])
                file = write_file(self._quarantine, mine, {DAY: day}, uuid.uuid4().hex)
                self.refused.append(file)


def refused_rows(
    reasons: pa.Array,
    rows: pa.Array,
    expectations: Sequence[Expectation],
    table: str,
) -> pa.Table:
    """Return rows of `quarantine`: which expectation each does not meet, and the row as JSON.

    `reasons`: the place of the expectation in the list. `key` is null: nobody knows which samples a
    row was made of, so it is for those who may see everything, whatever its own `key` says.
    """
    count = len(rows)
    now = datetime.now(UTC)
    names = pa.array([one.name for one in expectations], pa.string())
    conditions = pa.array([one.condition for one in expectations], pa.string())
    given: Mapping[str, Any] = {
        "table": pa.repeat(pa.scalar(table), count),
        "reason": pa.repeat(pa.scalar(str(Reason.EXPECTATION)), count),
        "field": names.take(reasons),
        "detail": conditions.take(reasons),
        "value": rows.cast(pa.binary()),
        "encoding": pa.repeat(pa.scalar("application/json"), count),
        "kind": pa.repeat(pa.scalar("put"), count),
        "received": pa.repeat(pa.scalar(now, pa.timestamp("us", "UTC")), count),
        DAY: pa.repeat(pa.scalar(now.date(), pa.date32()), count),
    }
    columns = [
        given[one.name].cast(one.type) if one.name in given else pa.nulls(count, one.type)
        for one in QUARANTINE
    ]
    return pa.table(columns, schema=QUARANTINE)
