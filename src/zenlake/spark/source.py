"""`format("zenoh")`: what Spark calls to read a journal or the live state, and to publish.

Objects of these classes are pickled and sent to other processes, so they hold options and
nothing that is open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from zenlake.expr.tree import And, Node, fields_of
from zenlake.spark.live import LiveReader
from zenlake.spark.network import absolute, open_journal
from zenlake.spark.offsets import Range, cut
from zenlake.spark.options import FILTER_PUSHDOWN, READ, STREAM, WRITE, SourceOptions
from zenlake.spark.position import begin, end
from zenlake.spark.pushdown import (
    ALWAYS,
    PushFilters,
    ScanRequest,
    condition_of,
    is_applied,
    partitions_meeting,
    segments_meeting,
)
from zenlake.spark.scan import rows
from zenlake.spark.schema import checked_names, chosen_columns, schema_of
from zenlake.spark.sink import Sink, StreamSink
from zenlake.spark.stream import JournalStream

__all__ = ["JournalReader", "ZenohSource"]


class ZenohSource(DataSource):
    """The data source itself: says the columns, and makes readers and writers."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return "zenoh"

    def schema(self) -> StructType:
        """The columns that the options ask for."""
        # Whether it will be a stream is not known yet: what both refuse is refused here.
        return schema_of(chosen_columns(SourceOptions(self._placed(), _either(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        options = SourceOptions(self._placed(), READ)
        names = checked_names(schema)
        if options.text("get"):
            return LiveReader(options, names)
        return JournalReader(options, names)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For `spark.readStream`."""
        return JournalStream(SourceOptions(self._placed(), STREAM), checked_names(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """For `df.write`."""
        return Sink(SourceOptions(self.options, WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """For `df.writeStream`."""
        return StreamSink(SourceOptions(self.options, WRITE), schema)

    def _placed(self) -> dict[str, str]:
        """The options, with a path that the workers will understand as well."""
        given = dict(self.options)
        if given.get("path"):
            given["path"] = absolute(given["path"])
        return given


class JournalReader(DataSourceReader):
    """Reads a journal from one offset to another."""

    def __init__(self, options: SourceOptions, names: Sequence[str]) -> None:
        """`names`: of the columns."""
        self.options = options
        self.names = list(names)
        #: What the journal knows of the WHERE clause.
        self.condition = ALWAYS
        self.subscribed = options.keys()

    @property
    def pushFilters(self) -> Callable[[list[Filter]], Iterable[Filter]]:
        """How Spark hands over the WHERE clause, if that is switched on."""
        return PushFilters(self.take_filters, self.options.flag(FILTER_PUSHDOWN.name, False))

    def take_filters(self, filters: list[Filter]) -> list[Filter]:
        """Take over what the journal can decide. Return the filters that Spark still applies."""
        left: list[Filter] = []
        conditions: list[Node] = []
        for filter in filters:
            condition = condition_of(filter)
            if condition is not None:
                conditions.append(condition)
            if condition is None or not is_applied(condition):
                left.append(filter)
        self.condition = And((*self.condition.nodes, *conditions))
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks: ranges of offsets, without the segments that cannot hold a wanted row."""
        with open_journal(self.options) as journal:
            ranges = self._ranges(journal)
        pieces = self.options.count("minPartitions") or os.cpu_count() or 1
        return [InputPartition(piece) for piece in cut(ranges, pieces)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        # Spark makes one task of an empty list.
        if partition.value is None:
            return iter(())
        request = ScanRequest.of(self.condition)
        return rows(self.options, self.names, partition.value, request, self.subscribed)

    def _ranges(self, journal: Any) -> list[Range]:
        first = begin(self.options, journal, "earliest")
        last = end(self.options, journal)
        offsets = ScanRequest.of(self.condition).offset
        ranges: list[Range] = []
        for partition in partitions_meeting(self.condition, journal.partitions):
            start, stop = first[partition], last[partition]
            start = start if offsets.low is None else max(start, offsets.low)
            stop = stop if offsets.high is None else min(stop, offsets.high)
            ranges += _overlapping(journal, self.condition, Range(partition, start, stop))
        return ranges


def _overlapping(journal: Any, condition: Node, piece: Range) -> list[Range]:
    """Return the parts of a range that are in segments with wanted rows; neighbours joined."""
    if piece.rows == 0 or not fields_of(condition) & {"key", "time", "hlc"}:
        return [piece] if piece.rows else []
    segments = [
        segment
        for segment in journal.segments(piece.partition)
        if max(piece.start, segment.first) < min(piece.end, segment.end)
    ]
    common: list[Range] = []
    for segment in segments_meeting(condition, segments):
        start, stop = max(piece.start, segment.first), min(piece.end, segment.end)
        if common and common[-1].end == start:
            start = common.pop().start
        common.append(Range(piece.partition, start, stop))
    return common


def _either(options: Any) -> str:
    """The use that these options fit, so far as they tell."""
    only_streams = {
        "maxrecordspertrigger",
        "maxoffsetspertrigger",
        "maxbytespertrigger",
        "minoffsetspertrigger",
        "maxtriggerdelay",
    }
    return STREAM if only_streams & {name.lower() for name in options} else READ
