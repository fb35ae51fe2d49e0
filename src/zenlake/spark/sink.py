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

from zenlake.config.nearest import nearest
from zenlake.errors import LinkError, LocalError
from zenlake.spark.network import open_session
from zenlake.spark.options import OptionError, Options
from zenlake.spark.schema import COLUMNS
from zenlake.values import CongestionControl, Priority

if TYPE_CHECKING:
    from zenlake.api.session import Session

__all__ = ["Published", "Sink", "StreamSink", "checked_rows"]

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
_KINDS: Final = {"put": "put", "delete": "delete", 0: "put", 1: "delete"}

PUTS, DELETES = "puts", "deletes"
NO_ROOM = "no room on the way"


class Unpublishable(LocalError):
    """A row that cannot be published; the message is why."""


@dataclass
class Published(WriterCommitMessage):
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


class _Publishing:
    """What both sinks do."""

    def __init__(self, options: Options, schema: StructType) -> None:
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

    def publish(self, batches: Iterator[Any]) -> Published:
        """Publish all rows of a task, and wait until they have arrived next door."""
        published = Published()
        with open_session(self.options) as session:
            neighbours = _neighbours(session)
            for batch in batches:
                self._publish(session, batch, published)
            self._settle(session, neighbours)
        return published

    def _publish(self, session: Session, batch: Any, published: Published) -> None:
        nothing = [None] * batch.num_rows
        given = {name: batch.column(name).to_pylist() for name in self.names}
        keys, values = given["key"], given.get("value", nothing)
        kinds, encodings = given.get("kind", nothing), given.get("encoding", nothing)
        attachments = given.get("attachment", nothing)
        qos: dict[str, Any] = {
            "congestion_control": _CONGESTIONS[self.congestion],
            "priority": _PRIORITIES[self.priority],
            "express": self.express,
        }
        waits = self.congestion == "block"
        for key, value, kind, encoding, attachment in zip(
            keys, values, kinds, encodings, attachments, strict=True
        ):
            try:
                if _kind_of(key, value, kind) == "delete":
                    # What is gone must not stay for want of room.
                    patient = qos | {"congestion_control": CongestionControl.BLOCK}
                    session.delete(key, attachment=attachment, **patient)
                    published.done[DELETES] += 1
                    continue
                send = session.put if waits else session.try_put
                told = send(
                    key,
                    value if value is not None else b"",
                    encoding=encoding or self.encoding,
                    attachment=attachment,
                    **qos,
                )
            except LocalError as error:
                if self.on_invalid == "fail":
                    raise
                published.dropped[_reason(error)] += 1
                continue
            if told is not None and told.name == "QUEUE_FULL":
                published.dropped[NO_ROOM] += 1
            else:
                published.done[PUTS] += 1

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
        total = Published()
        for message in messages:
            if isinstance(message, Published):
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

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        """`overwrite` is refused: there is nothing to replace on a network."""
        if overwrite:
            raise OptionError("rows are published, not stored: use mode('append')")
        super().__init__(options, schema)

    def write(self, iterator: Iterator[Any]) -> Published:
        """Publish the rows of a task."""
        return self.publish(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Count what was published."""
        self.settled(messages)


class StreamSink(_Publishing, DataSourceStreamArrowWriter):
    """Publishes a stream, one micro-batch after another."""

    def write(self, iterator: Iterator[Any]) -> Published:
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


def _kind_of(key: object, value: object, kind: object) -> str:
    """Put or delete. Without a kind it is a put, and with no value a delete, as in Kafka."""
    if not key:
        raise Unpublishable("a row has no key")
    if kind is None:
        return "delete" if value is None else "put"
    said = _KINDS.get(kind.lower() if isinstance(kind, str) else kind)
    if said is None:
        raise Unpublishable(f"kind {kind!r} is neither put nor delete")
    return str(said)


def _reason(error: LocalError) -> str:
    """Few words for many rows: the count of reasons must not grow with the data."""
    return str(error)[:80] if isinstance(error, Unpublishable) else type(error).__name__


def _neighbours(session: Session) -> frozenset[str]:
    info = session.info
    return frozenset(str(zid) for zid in (*info.routers_zid(), *info.peers_zid()))
