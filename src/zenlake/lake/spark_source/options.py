"""The options of `format("zenlake")`: declared once, read from text, refused by name.

Where Delta's connector for Spark has an option for the same thing it has the same name here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, final

from zenlake.clock.unix_time import datetime_at
from zenlake.lake.table.location import absolute
from zenlake.spark.options import (
    FILTER_PUSHDOWN,
    READ,
    STREAM,
    WRITE,
    WRITE_STREAM,
    FormatOptions,
    OptionError,
    SourceOption,
)

__all__ = ["TABLE_OPTIONS", "TableOptions", "use_of"]

_READS: Final = frozenset({READ, STREAM})
_BATCH: Final = frozenset({READ})
_STREAMS: Final = frozenset({STREAM})
_WRITES: Final = frozenset({WRITE, WRITE_STREAM})
_ALL: Final = _READS | _WRITES

TABLE_OPTIONS: Final = (
    SourceOption(
        "path",
        _ALL,
        "",
        "the table's folder, or its address (`s3://…`, `gs://…`); `load(path)`, `save(path)` and "
        "`start(path)` set it",
    ),
    SourceOption("table", _ALL, "", "the name of a table, if `path` is the folder of its lake"),
    SourceOption(
        "columns", _READS, "all", "names of columns with commas between them; only these are read"
    ),
    FILTER_PUSHDOWN,
    SourceOption("version", _BATCH, "the newest", "the version of the table to read"),
    SourceOption(
        "timestamp",
        _BATCH,
        "",
        "read the version that was the newest at this time: ISO 8601, or milliseconds since 1970",
    ),
    SourceOption(
        "startingVersion",
        _STREAMS,
        "",
        "begin with what this version added; `latest` begins with the next one. Without it and "
        "`startingTimestamp` a new query first reads all rows that are there",
    ),
    SourceOption(
        "startingTimestamp",
        _STREAMS,
        "",
        "begin with what the first version since this time added: ISO 8601, or milliseconds "
        "since 1970",
    ),
    SourceOption(
        "maxRowsPerTrigger",
        _STREAMS,
        "",
        "end a micro-batch before the file with which it would have more rows; it has one file "
        "at least",
    ),
    SourceOption(
        "skipChangeCommits",
        _STREAMS,
        "false",
        "whether to pass over commits that change rows, or to stop with an error",
    ),
    SourceOption(
        "partitionBy",
        _WRITES,
        "none",
        "names of columns with commas between them: a table that is made has a folder for each of "
        "their values",
    ),
    SourceOption(
        "mergeSchema",
        _WRITES,
        "false",
        "whether columns that the table lacks are added to it, and columns that are too narrow "
        "become wider, or are refused",
    ),
    SourceOption(
        "mergeKeys",
        _WRITES,
        "",
        "names of columns with commas between them: a row takes the place of the row of the table "
        "with the same values there, and is added if there is none",
    ),
    SourceOption("description", _WRITES, "", "what a table that is made says of itself"),
    SourceOption(
        "txnAppId",
        _WRITES,
        "",
        "who writes; with `txnVersion` a batch is in the table once, however often it is written. "
        "A stream writes under its query's id, and needs none",
    ),
    SourceOption(
        "txnVersion",
        frozenset({WRITE}),
        "",
        "the number of the batch of `txnAppId`; nothing is written if the table has it, or a "
        "greater one",
    ),
)

_BY_NAME: Final = "or name a table that register_tables(spark, lake) knows"
_PATHLESS: Final = {
    READ: f'say which table to read: load("path/of/lake/battery"), {_BY_NAME}',
    STREAM: f'say which table to read: load("path/of/lake/battery"), {_BY_NAME}',
    WRITE: f'say which table to write: save("path/of/lake/battery"), {_BY_NAME}',
    WRITE_STREAM: f'say which table to write: start("path/of/lake/battery"), {_BY_NAME}',
}
"""What to write where no path is given."""


def use_of(given: Mapping[str, str]) -> str:
    """Return the use that options fit: Spark asks for the columns before it says which it is."""
    only = {option.name.lower() for option in TABLE_OPTIONS if option.used_by == _STREAMS}
    return STREAM if only & {name.lower() for name in given} else READ


@final
class TableOptions(FormatOptions):
    """The options of one read of a table."""

    def __init__(self, given: Mapping[str, str], use: str) -> None:
        """`use`: `read`, `readStream`, `write` or `writeStream`."""
        super().__init__(given, use, TABLE_OPTIONS, "zenlake")
        path = self.text("path")
        if not path:
            raise OptionError(_PATHLESS[use])
        self.path = absolute(path)
        """The table's folder or that of its lake, on every machine that has it."""
        if use == WRITE and bool(self.text("txnAppId")) != bool(self.text("txnVersion")):
            raise OptionError("write both txnAppId and txnVersion, or none of them")
        for one, other in (("version", "timestamp"), ("startingVersion", "startingTimestamp")):
            if self.text(one) and self.text(other):
                raise OptionError(f"{one} and {other} say the same thing: write one of them")

    def place(self) -> tuple[str, str]:
        """Return the address of the lake, and the name of the table in it."""
        name = self.text("table").strip("/")
        if name:
            return self.path, name
        # Addresses may have options of the store behind them.
        remote = "://" in self.path
        address, mark, query = self.path.partition("?") if remote else (self.path, "", "")
        lake, _, name = address.rstrip("/").rpartition("/")
        return f"{lake or '/'}{mark}{query}", name

    def version(self, name: str) -> int | None:
        """Return a version of the table; None if it was not said."""
        said = self.text(name)
        if not said:
            return None
        if not said.isascii() or not said.isdigit() or len(said) > 18:
            raise OptionError(f"{name}={said!r}: write the number of a version, such as 12")
        return int(said)

    def time(self, name: str) -> datetime | None:
        """Return a moment; None if it was not said."""
        micros = self.instant(name)
        return None if micros is None else datetime_at(micros)
