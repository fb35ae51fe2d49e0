"""A journal as files that other tools read: Parquet for tables, MCAP for robotics.

In an MCAP file a key is a topic, a sample a message, logged when it was received and published at
its own time. Keys of ROS 2 are topics of ROS 2 there, with the definition of their type where one
is known, so that tools of ROS read the messages. What a message has no place for (exact times,
sources, attachments, quality of service) lies in attachments of the file, as Arrow, in the order of
the messages; `imports` finds it there, and rows come back as they were.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from zenlake.errors import JournalError
from zenlake.journal.ingest.rows import hlc_nanos
from zenlake.journal.reading.reader import Journal
from zenlake.journal.schema import SCHEMA
from zenlake.journal.serving.bus import RemoteJournal
from zenlake.journal.serving.parts import ARROW, stream_of
from zenlake.recorded.encoding import recorded_text
from zenlake.ros2.definitions import Definitions
from zenlake.ros2.message_text import message_text
from zenlake.ros2.names import DataKey, parse_key

__all__ = ["BESIDE", "KEY", "to_mcap", "to_parquet"]

BESIDE: Final = "zenlake.rows"
"""The name of the attachments with all that messages have no place for."""

KEY: Final = "zenoh.key"
"""Beside a channel whose topic is not the key."""

#: What MCAP calls the encodings that it has names for.
MCAP_NAMES: Final = {
    "application/json": "json",
    "text/json": "json",
    "application/cbor": "cbor",
    "application/protobuf": "protobuf",
    "application/cdr": "cdr",
}


def to_parquet(
    journal: Journal | RemoteJournal, file: str | os.PathLike[str], **chosen: Any
) -> int:
    """Write rows to a Parquet file, whole or not at all; gives how many.

    `chosen`: what to scan, as `Journal.scan` takes it.
    """
    rows = 0
    schema = SCHEMA.with_metadata({"zenlake.journal": journal.id, "zenlake.name": journal.name})
    with _replaced(file) as aside, pq.ParquetWriter(aside, schema, compression="zstd") as writer:
        for batch in journal.scan(**chosen):
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
            rows += batch.num_rows
    return rows


def to_mcap(
    journal: Journal | RemoteJournal,
    file: str | os.PathLike[str],
    definitions: Definitions | None = None,
    **chosen: Any,
) -> int:
    """Write rows to an MCAP file, whole or not at all; gives how many.

    `definitions`: types of ROS 2 that no installed package describes.
    """
    try:
        from mcap.writer import Writer
    except ImportError as error:
        raise JournalError(
            "MCAP files need a library that is not installed: pip install 'zenlake[mcap]'"
        ) from error
    rows = 0
    with _replaced(file) as aside, open(aside, "wb") as out:
        writer: Any = Writer(out)
        writer.start(profile="", library="zenlake")
        channels = _Channels(writer, definitions or Definitions())
        for batch in journal.scan(**chosen):
            received = batch.column("received").cast(pa.int64()).to_pylist()
            published = hlc_nanos(batch.column("hlc").to_numpy(zero_copy_only=False)).tolist()
            for row, logged, stamped in zip(batch.to_pylist(), received, published, strict=True):
                writer.add_message(
                    channel_id=channels.of(row),
                    log_time=logged * 1000,
                    publish_time=stamped,
                    data=row["value"],
                    sequence=rows & 0xFFFFFFFF,
                )
                rows += 1
            writer.add_attachment(0, 0, BESIDE, ARROW, stream_of(_beside(batch)))
        writer.finish()
    return rows


class _Channels:
    """The channels of a file: one for each key and encoding."""

    def __init__(self, writer: Any, definitions: Definitions) -> None:
        self._writer = writer
        self._definitions = definitions
        self._known: dict[tuple[str, int, str | None], int] = {}
        self._schemas: dict[str, int] = {}

    def of(self, row: dict[str, Any]) -> int:
        """The channel of a row."""
        name = (row["key"], row["encoding_id"], row["encoding_schema"])
        if name not in self._known:
            self._known[name] = self._made(*name)
        return self._known[name]

    def _made(self, key: str, id: int, schema: str | None) -> int:
        encoding = recorded_text(id, schema)
        plain = recorded_text(id, None)
        metadata = {"zenoh.encoding": encoding}
        topic, written, schema_id = key, MCAP_NAMES.get(plain, encoding), 0
        of_ros = parse_key(key)
        if of_ros is not None and of_ros.buffer in ("", "cpu"):
            topic, written = of_ros.topic, "cdr"
            schema_id = self._schema(of_ros)
            metadata[KEY] = key
        channel: int = self._writer.register_channel(
            topic=topic, message_encoding=written, schema_id=schema_id, metadata=metadata
        )
        return channel

    def _schema(self, key: DataKey) -> int:
        """The schema of a type, or none where nobody describes it."""
        description = self._definitions.find(key.type, key.hash)
        if description is None:
            return 0
        if description.hash not in self._schemas:
            text = message_text(description).encode()
            made = self._writer.register_schema(key.type, "ros2msg", text)
            self._schemas[description.hash] = made
        return self._schemas[description.hash]


def _beside(batch: Any) -> Any:
    """All but what the messages carry."""
    names: Sequence[str] = [name for name in batch.schema.names if name not in ("key", "value")]
    return batch.select(names)


@contextmanager
def _replaced(file: str | os.PathLike[str]) -> Iterator[Path]:
    """A file that appears under its name when it is whole, and not before."""
    place = Path(file)
    aside = place.with_name(f"{place.name}.part")
    try:
        yield aside
        os.replace(aside, place)
    finally:
        aside.unlink(missing_ok=True)
