"""The live state, asked once: `option("get", "robot/**")`.

All that have something under the selector at this moment answer: queryables, storages,
publishers with a cache. The rows are of one task, since one question is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from zenlake.errors import RemoteError
from zenlake.keys import Selector
from zenlake.spark.network import open_session
from zenlake.spark.options import OptionError, SourceOptions
from zenlake.spark.schema import Maker

__all__ = ["LiveReader"]

TIMEOUT = 10.0


class LiveReader(DataSourceReader):
    """Asks the network when it is read."""

    def __init__(self, options: SourceOptions, names: Sequence[str]) -> None:
        """`names`: of the columns."""
        for name in ("path", "journal", "startingOffsets", "endingOffsets", "subscribe"):
            if options.text(name):
                raise OptionError(f"get and {name} are both set: what answers now has no {name}")
        if not options.connects():
            raise OptionError("get needs to know where: option('zenoh.connect', 'tcp/HOST:7447')")
        self.selector = options.text("get")
        try:
            Selector.of(self.selector)
        except ValueError as error:
            raise OptionError(f"get={self.selector!r}: {error}") from error
        self.options = options
        self.names = list(names)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """What answers, as one batch."""
        from zenlake.journal.ingest.rows import batches_of
        from zenlake.journal.schema import HEARD

        samples = []
        errors = []
        with open_session(self.options) as session:
            timeout = self.options.seconds("timeout", TIMEOUT)
            for reply in session.get(self.selector, timeout=timeout):
                if reply.ok is not None:
                    samples.append(reply.ok)
                elif reply.err is not None:
                    errors.append(reply.err.payload.to_bytes().decode(errors="replace"))
            if errors and not samples:
                raise RemoteError(f"get={self.selector!r} was answered by errors: {errors[0]!r}")
            now = time.time_ns() // 1000
            batches = batches_of(samples, 1, HEARD, now, lambda _: session.new_timestamp())
        maker = Maker(self.names)
        for _, batch in batches:
            yield maker.batch(_as_told(batch), None)


def _as_told(batch: Any) -> Any:
    """The rows as they were told: no number, and no time where there was none."""
    unstamped = batch.column("stamped")
    columns = {name: batch.column(name) for name in batch.schema.names}
    for name in ("time", "hlc", "stamp_id"):
        column = columns[name]
        columns[name] = pc.if_else(unstamped, pa.scalar(None, column.type), column)
    columns["offset"] = pa.nulls(batch.num_rows, pa.int64())
    return pa.record_batch(columns)
