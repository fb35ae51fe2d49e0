"""Publishes the rows of a DataFrame: each becomes a put or a delete.

**At least once.** A task that fails is run again from its first row, and Spark runs a batch again
whose end it has not noted; what was published before that is published a second time. Rows of one
task go out in their order; tasks go out side by side, each through a session of its own. A task
has ended well only when the node it is connected to has taken everything it said.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, ByteType, DataType, StringType, StructType

from zenlake.api.outcome import PutOutcome
from zenlake.api.publish import Publisher
from zenlake.config.nearest import nearest
from zenlake.errors import LinkError, LocalError
from zenlake.recorded.encoding import recorded_encoding
from zenlake.recorded.words import KINDS
from zenlake.spark.network import open_session
from zenlake.spark.options import OptionError, SourceOptions
from zenlake.spark.schema import COLUMNS
from zenlake.values import CongestionControl, Priority

if TYPE_CHECKING:
    from zenlake.api.session import Session

__all__ = ["PublishedRows", "Sink", "StreamSink", "checked_rows"]

log = logging.getLogger("zenlake.spark")

_TEXT: Final[tuple[type[DataType], ...]] = (StringType,)
_BYTES: Final[tuple[type[DataType], ...]] = (BinaryType, StringType)
_TAKEN: Final[dict[str, tuple[type[DataType], ...]]] = {
    "key": _TEXT,
    "value": _BYTES,
    "kind": (StringType, ByteType),
    "encoding": _TEXT,
    "attachment": _BYTES,
}
_CONGESTIONS: Final = {"block": CongestionControl.BLOCK, "drop": CongestionControl.DROP}
_PRIORITIES: Final = {priority.name.lower(): priority for priority in Priority}
#: Whether a kind is a delete.
_KINDS: Final[dict[object, bool]] = {
    name: word == "delete" for number, word in enumerate(KINDS) for name in (number, word)
}
#: How many keys are declared at once in a task.
MOST_DECLARED: Final = 4096

PUTS, DELETES = "puts", "deletes"
NO_ROOM = "no room on the way"
UNKNOWN_KIND = "a kind is neither put nor delete"


class Unpublishable(LocalError):
    """A row that cannot be published; the message is why."""


@dataclass
class PublishedRows(WriterCommitMessage):
    """What a task did: rows published by kind, and rows dropped by reason."""

    done: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def as_json(self, **more: object) -> str:
        """One line for the report."""
        return json.dumps(
            {
                **more,
                PUTS: self.done[PUTS],
                DELETES: self.done[DELETES],
                "dropped": dict(self.dropped),
            }
        )


class _Voice:
    """Says rows on a session. A key that comes again is declared, which makes it cheap to say."""

    def __init__(
        self,
        session: Session,
        congestion: CongestionControl,
        priority: Priority,
        express: bool,
        encoding: str | None,
    ) -> None:
        self._session = session
        self._waits = congestion is CongestionControl.BLOCK
        self._qos: dict[str, Any] = {
            "congestion_control": congestion,
            "priority": priority,
            "express": express,
        }
        # What is gone must not stay for want of room.
        self._patient = self._qos | {"congestion_control": CongestionControl.BLOCK}
        self._encoding = encoding
        self._declared: dict[tuple[str, str | None], Publisher] = {}

    def put(
        self, key: str, value: bytes | str, encoding: str | None, attachment: bytes | str | None
    ) -> bool:
        """Publish a value; whether it was not dropped."""
        publisher = self._declared.get((key, encoding))
        if publisher is None:
            publisher = self._session.declare_publisher(
                key, encoding=recorded_encoding(encoding or self._encoding or ""), **self._qos
            )
            if len(self._declared) >= MOST_DECLARED:
                for old in self._declared.values():
                    old.undeclare()
                self._declared.clear()
            self._declared[key, encoding] = publisher
        if self._waits:
            publisher.put(value, attachment=attachment)
            return True
        return publisher.try_put(value, attachment=attachment) is not PutOutcome.QUEUE_FULL

    def delete(self, key: str, attachment: bytes | str | None) -> None:
        """Publish that a value is gone."""
        self._session.delete(key, attachment=attachment, **self._patient)


class _Publishing:
    """What both sinks do."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.names = checked_rows(schema)
        self.congestion = options.one_of("congestion", _CONGESTIONS, "block")
        self.priority = options.one_of("priority", _PRIORITIES, "data")
        self.express = options.flag("express", False)
        self.on_invalid = options.one_of("onInvalid", {"fail": 0, "drop": 0}, "fail")
        self.encoding = options.text("encoding") or None
        if options.text("path"):
            raise OptionError("rows are published to the network, not to a path; use zenoh.connect")
        if not options.connects():
            raise OptionError("say where to: option('zenoh.connect', 'tcp/localhost:7447')")

    def publish(self, batches: Iterator[Any]) -> PublishedRows:
        """Publish all rows of a task, and wait until they have arrived next door."""
        published = PublishedRows()
        with open_session(self.options) as session:
            neighbours = _neighbours(session)
            voice = _Voice(
                session,
                _CONGESTIONS[self.congestion],
                _PRIORITIES[self.priority],
                self.express,
                self.encoding,
            )
            for batch in batches:
                self._publish(voice, batch, published)
            self._settle(session, neighbours)
        return published

    def _publish(self, voice: _Voice, batch: Any, published: PublishedRows) -> None:
        nothing = [None] * batch.num_rows
        given = {name: batch.column(name).to_pylist() for name in self.names}
        puts = deletes = 0
        for key, value, kind, encoding, attachment in zip(
            given["key"],
            given.get("value", nothing),
            given.get("kind", nothing),
            given.get("encoding", nothing),
            given.get("attachment", nothing),
            strict=True,
        ):
            try:
                if _is_delete(key, value, kind):
                    voice.delete(key, attachment)
                    deletes += 1
                elif voice.put(key, b"" if value is None else value, encoding, attachment):
                    puts += 1
                else:
                    published.dropped[NO_ROOM] += 1
            except LocalError as error:
                if self.on_invalid == "fail":
                    raise
                published.dropped[_reason(error)] += 1
        published.done[PUTS] += puts
        published.done[DELETES] += deletes

    def _settle(self, session: Session, neighbours: frozenset[str]) -> None:
        """Wait for everything that was said: a question behind it in the same lane is answered."""
        nobodys = f"zenlake/spark/{uuid.uuid4().hex}"
        timeout = self.options.seconds("timeout", 10.0)
        for _ in session.get(nobodys, priority=_PRIORITIES[self.priority], timeout=timeout):
            pass
        lost = neighbours - _neighbours(session)
        if lost or not neighbours:
            raise LinkError(
                f"the connection to {', '.join(sorted(lost)) or 'anybody'} was lost while rows "
                "were being published; the task has to run again"
            )

    def settled(self, messages: Sequence[WriterCommitMessage | None], **more: object) -> None:
        """Count what all tasks did, in the driver."""
        total = PublishedRows()
        for message in messages:
            if isinstance(message, PublishedRows):
                total.done += message.done
                total.dropped += message.dropped
        if total.dropped:
            log.warning("rows were dropped instead of published: %s", dict(total.dropped))
        report = self.options.text("report")
        if report:
            line = total.as_json(**more) + "\n"
            # One write: lines of two queries do not mix.
            file = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)


class Sink(_Publishing, DataSourceArrowWriter):
    """Publishes a DataFrame."""

    def __init__(self, options: SourceOptions, schema: StructType, overwrite: bool) -> None:
        """`overwrite` is refused: there is nothing to replace on a network."""
        if overwrite:
            raise OptionError("rows are published, not stored: use mode('append')")
        super().__init__(options, schema)

    def write(self, iterator: Iterator[Any]) -> PublishedRows:
        """Publish the rows of a task."""
        return self.publish(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Count what was published."""
        self.settled(messages)


class StreamSink(_Publishing, DataSourceStreamArrowWriter):
    """Publishes a stream, one micro-batch after another."""

    def write(self, iterator: Iterator[Any]) -> PublishedRows:
        """Publish the rows of a task."""
        return self.publish(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Count what was published."""
        self.settled(messages, batch=batchId)


def checked_rows(schema: StructType) -> list[str]:
    """The columns of a DataFrame that are published; those of a read that are not are let go."""
    names = []
    for column in schema.fields:
        types = _TAKEN.get(column.name)
        if types is None:
            if column.name in COLUMNS:
                continue
            meant = nearest(column.name, _TAKEN)
            hint = f"did you mean '{meant}'? " if meant else ""
            raise OptionError(
                f"column '{column.name}' cannot be published; {hint}select some of "
                f"{', '.join(_TAKEN)} first"
            )
        if not isinstance(column.dataType, types):
            wanted = " or ".join(type.typeName() for type in types)
            raise OptionError(
                f"column '{column.name}' is {column.dataType.simpleString()}; cast it to {wanted}"
            )
        names.append(column.name)
    if "key" not in names:
        raise OptionError("there is no column 'key': every row needs one to be published under")
    if "value" not in names and "kind" not in names:
        raise OptionError("there is no column 'value', and no 'kind' that says delete")
    return names


def _is_delete(key: object, value: object, kind: object) -> bool:
    """Put or delete. Without a kind it is a put, and with no value a delete, as in Kafka."""
    if not key:
        raise Unpublishable("a row has no key")
    if kind is None:
        return value is None
    said = _KINDS.get(kind.lower() if isinstance(kind, str) else kind)
    if said is None:
        raise Unpublishable(UNKNOWN_KIND)
    return said


def _reason(error: LocalError) -> str:
    """Few words for many rows: the count of reasons must not grow with the data."""
    return str(error) if isinstance(error, Unpublishable) else type(error).__name__


def _neighbours(session: Session) -> frozenset[str]:
    info = session.info
    return frozenset(str(zid) for zid in (*info.routers_zid(), *info.peers_zid()))
