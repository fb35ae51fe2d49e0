"""The options of `format("zenoh")`: declared once, read from text, refused by name.

Where Spark's Kafka source has an option for the same thing it has the same name here, so that
who knows one knows the other. `FormatOptions` reads the options of any format that declares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from zenlake.clock.unix_time import micros_of
from zenlake.config.nearest import nearest
from zenlake.errors import LocalError, ZError
from zenlake.keys import KeyExpr

__all__ = [
    "FILTER_PUSHDOWN",
    "OPTIONS",
    "READ",
    "STREAM",
    "WRITE",
    "WRITE_STREAM",
    "FormatOptions",
    "OptionError",
    "SourceOption",
    "SourceOptions",
    "documented",
]


class OptionError(LocalError, ValueError):
    """An option of a format that does not exist, or a value it cannot have."""


@dataclass(frozen=True, slots=True)
class SourceOption:
    """One option: its name, where it means something, its default and what it does."""

    name: str
    used_by: frozenset[str]
    default: str
    text: str


READ, STREAM, WRITE, WRITE_STREAM = "read", "readStream", "write", "writeStream"
_READS = frozenset({READ, STREAM})
_ALL = frozenset({READ, STREAM, WRITE})

FILTER_PUSHDOWN: Final = SourceOption(
    "filterPushdown",
    frozenset({READ}),
    "false",
    "whether conditions of a WHERE clause are decided before rows are read, for a DataFrame that "
    "is asked once: Spark 4.3 gives its next question the rows of the first",
)

OPTIONS: Final = (
    SourceOption(
        "path",
        _READS,
        "",
        "the journal's folder, or a URI that pyarrow knows (`s3://…`, `gs://…`); "
        "`load(path)` sets it",
    ),
    SourceOption(
        "journal", _READS, "", "the name of a journal that is served on the bus (`zenoh.connect`)"
    ),
    SourceOption(
        "get",
        frozenset({READ}),
        "",
        "a selector, asked once: the rows are what answers now (`zenoh.connect`)",
    ),
    SourceOption(
        "subscribe",
        _READS,
        "`**`",
        "key expressions with commas between them; only matching rows are read",
    ),
    SourceOption(
        "columns",
        _READS,
        "",
        "names of columns with commas between them, when the usual ones are too many or too few",
    ),
    FILTER_PUSHDOWN,
    SourceOption("includeAttachment", _READS, "false", "whether there is a column `attachment`"),
    SourceOption(
        "startingOffsets",
        _READS,
        "`earliest`; `latest` for a stream",
        'where to begin: `earliest`, `latest` or an offset a partition, `{"0": 23, "1": -2}` '
        "(-2 is earliest, -1 latest)",
    ),
    SourceOption(
        "startingTimestamp",
        _READS,
        "",
        "begin with the first row of this time in each partition: ISO 8601, or milliseconds "
        "since 1970; goes before `startingOffsets`",
    ),
    SourceOption(
        "endingOffsets",
        frozenset({READ}),
        "`latest`",
        "where to end, exclusive, written as for `startingOffsets`",
    ),
    SourceOption(
        "endingTimestamp",
        frozenset({READ}),
        "",
        "end before the first row of this time in each partition",
    ),
    SourceOption(
        "failOnDataLoss",
        _READS,
        "true",
        "whether rows that are no longer kept are an error, or passed over",
    ),
    SourceOption(
        "maxRecordsPerTrigger",
        frozenset({STREAM}),
        "",
        "at most so many rows a micro-batch; `maxOffsetsPerTrigger` is the same",
    ),
    SourceOption("maxOffsetsPerTrigger", frozenset({STREAM}), "", "see `maxRecordsPerTrigger`"),
    SourceOption(
        "maxBytesPerTrigger",
        frozenset({STREAM}),
        "",
        "about so many bytes of the journal a micro-batch at most; `64m`, `2g`",
    ),
    SourceOption(
        "minOffsetsPerTrigger",
        frozenset({STREAM}),
        "",
        "wait until so many rows are there, but no longer than `maxTriggerDelay`",
    ),
    SourceOption("maxTriggerDelay", frozenset({STREAM}), "15m", "`500ms`, `30s`, `15m`, `1h`"),
    SourceOption(
        "minPartitions",
        _READS,
        "one for each core",
        "into how many tasks a read is cut, if it has enough rows",
    ),
    SourceOption("timeout", _ALL, "10s", "how long to wait for the network"),
    SourceOption("encoding", frozenset({WRITE}), "", "the encoding of rows that name none"),
    SourceOption(
        "congestion",
        frozenset({WRITE}),
        "block",
        "what a row does that finds no room on the way: `block` waits, `drop` is counted",
    ),
    SourceOption("priority", frozenset({WRITE}), "data", "the priority of what is published"),
    SourceOption("express", frozenset({WRITE}), "false", "do not wait for company in a batch"),
    SourceOption(
        "onInvalid",
        frozenset({WRITE}),
        "fail",
        "what becomes of a row that cannot be published (no key, no such kind): `fail` or "
        "`drop`, which counts it",
    ),
    SourceOption(
        "report",
        frozenset({WRITE}),
        "",
        "a file on the driver that gets a line of JSON for every batch: puts, deletes, drops by "
        "reason",
    ),
    SourceOption(
        "zenoh.connect",
        _ALL,
        "",
        "endpoints to connect to, with commas between them: `tcp/localhost:7447`",
    ),
    SourceOption("zenoh.config", _ALL, "", "a file to take the session's configuration from"),
    SourceOption(
        "zenoh.*",
        _ALL,
        "",
        "any other key of the configuration, dots for slashes: `zenoh.mode`, "
        "`zenoh.transport.auth.usrpwd.user`",
    ),
)

# Spark's own, which it hands to every sink.
_SPARKS: Final = frozenset({"checkpointlocation", "queryname"})
_ZENOH: Final = "zenoh."
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


class FormatOptions:
    """The options of one read or write, each checked when it is asked for."""

    def __init__(
        self,
        given: Mapping[str, str],
        use: str,
        declared: Sequence[SourceOption],
        format: str,
        prefix: str = "",
    ) -> None:
        """`use`: `read`, `readStream` or `write`; options that mean nothing there are refused.

        `declared`: all options of the format. Names that begin with `prefix` are not checked.
        """
        self._given = {name.lower(): value for name, value in given.items()}
        self.use = use
        by_name = {option.name.lower(): option for option in declared}
        for name in self._given:
            if name in _SPARKS or (prefix and name.startswith(prefix) and len(name) > len(prefix)):
                continue
            self._check(name, by_name, format)

    def _check(self, name: str, declared: Mapping[str, SourceOption], format: str) -> None:
        option = declared.get(name)
        if option is None:
            meant = nearest(name, declared)
            hint = f"; did you mean '{declared[meant].name}'?" if meant else "."
            known = ", ".join(one.name for one in declared.values() if self.use in one.used_by)
            raise OptionError(
                f"format(\"{format}\") has no option '{name}'{hint} Options of {self.use}: {known}"
            )
        if self.use not in option.used_by and not (name == "path" and self.use == WRITE):
            where = " and ".join(sorted(option.used_by))
            raise OptionError(f"option '{option.name}' is for {where}; it means nothing here")

    def text(self, name: str, default: str = "") -> str:
        """An option as it was written."""
        return self._given.get(name.lower(), default).strip()

    def one_of(self, name: str, choices: Mapping[str, object], default: str) -> str:
        """An option with few possible values."""
        said = self.text(name, default).lower()
        if said not in choices:
            raise OptionError(f"{name}={said!r}: write one of {', '.join(choices)}")
        return said

    def flag(self, name: str, default: bool) -> bool:
        """An option that is true or false."""
        said = self.text(name, str(default)).lower()
        if said not in {"true", "false"}:
            raise OptionError(f"{name}={said!r}: write true or false")
        return said == "true"

    def count(self, name: str) -> int | None:
        """A number of things, at least one; None if it was not said."""
        said = self.text(name)
        if not said:
            return None
        if not said.isascii() or not said.isdigit() or int(said) < 1:
            raise OptionError(f"{name}={said!r}: write a whole number above zero")
        return int(said)

    def size(self, name: str) -> int | None:
        """A number of bytes."""
        said = self.text(name).lower()
        if not said:
            return None
        match = re.fullmatch(r"([0-9]{1,18})([kmgt]?)i?b?", said)
        if match is None or int(match[1]) < 1:
            raise OptionError(f"{name}={said!r}: write a number of bytes, such as 1000000 or 64m")
        return int(match[1]) * _UNITS[match[2]]

    def seconds(self, name: str, default: float) -> float:
        """A length of time."""
        said = self.text(name).lower()
        if not said:
            return default
        match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h|)", said)
        if match is None:
            raise OptionError(f"{name}={said!r}: write a time, such as 500ms, 30s or 15m")
        return float(match[1]) * _SECONDS[match[2]]

    def instant(self, name: str) -> int | None:
        """A moment, in microseconds since 1970."""
        said = self.text(name)
        if not said:
            return None
        if re.fullmatch(r"-?[0-9]{1,15}", said):
            return int(said) * 1000
        try:
            when = datetime.fromisoformat(said)
        except ValueError as error:
            raise OptionError(
                f"{name}={said!r}: write a time like 2026-01-31T12:00:00Z, or milliseconds "
                "since 1970"
            ) from error
        # A time without a zone is one of UTC, as everywhere in the session.
        return micros_of(when if when.tzinfo else when.replace(tzinfo=UTC))

    def names(self, name: str) -> list[str]:
        """Words with commas between them."""
        return [word.strip() for word in self.text(name).split(",") if word.strip()]


class SourceOptions(FormatOptions):
    """The options of one read or write of `format("zenoh")`."""

    def __init__(self, given: Mapping[str, str], use: str) -> None:
        """`use`: `read`, `readStream` or `write`; options that mean nothing there are refused."""
        super().__init__(given, use, OPTIONS, "zenoh", _ZENOH)

    def keys(self) -> list[str] | None:
        """The key expressions of `subscribe`; None for all."""
        names = self.names("subscribe")
        try:
            return [str(KeyExpr(key)) for key in names] or None
        except ZError as error:
            raise OptionError(f"subscribe={self.text('subscribe')!r}: {error}") from error

    def offsets(self, name: str, default: str) -> str | dict[int, int]:
        """`earliest`, `latest`, or an offset for each partition that is named."""
        said = self.text(name, default)
        if said.lower() in {"earliest", "latest"}:
            return said.lower()
        try:
            document = json.loads(said)
            # Kafka's form has the topic around it; here that is the journal.
            if isinstance(document, dict) and len(document) == 1:
                (inner,) = document.values()
                document = inner if isinstance(inner, dict) else document
            offsets = {int(partition): offset for partition, offset in document.items()}
        except (ValueError, AttributeError) as error:
            raise OptionError(
                f'{name}={said!r}: write earliest, latest or JSON such as {{"0": 23, "1": -2}}'
            ) from error
        for partition, offset in offsets.items():
            if type(offset) is not int or offset < -2 or partition < 0:
                raise OptionError(
                    f"{name}: partition {partition} has {offset!r}; an offset is a whole number "
                    "from 0, or -1 for latest, -2 for earliest"
                )
        return offsets

    def connects(self) -> bool:
        """Whether a session is asked for."""
        return any(name.startswith(_ZENOH) for name in self._given)

    def zenoh(self) -> Iterator[tuple[str, str]]:
        """The keys of the session's configuration and their values, as written."""
        for name, value in self._given.items():
            if name.startswith(_ZENOH):
                yield name.removeprefix(_ZENOH).replace(".", "/"), value.strip()


def documented(declared: Sequence[SourceOption] = OPTIONS) -> str:
    """The table of all options, in Markdown."""
    lines = ["| option | for | default | meaning |", "| --- | --- | --- | --- |"]
    for option in declared:
        uses = (READ, STREAM, WRITE, WRITE_STREAM)
        used_by = ", ".join(use for use in uses if use in option.used_by)
        lines.append(f"| `{option.name}` | {used_by} | {option.default} | {option.text} |")
    return "\n".join(lines) + "\n"
