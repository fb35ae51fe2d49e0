"""A journal as files that other tools read: Parquet for tables, MCAP for robotics.

In an MCAP file a key is a topic, a sample a message, logged when it was received and published at
its own time. What a message has no place for (exact times, sources, attachments, quality of
service) lies in attachments of the file, as Arrow, in the order of the messages; `imports` finds
it there, and rows come back as they were.
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
from zenlake.values import Encoding

__all__ = ["BESIDE", "to_mcap", "to_parquet"]

BESIDE: Final = "zenlake.rows"
"""The name of the attachments with all that messages have no place for."""

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


def to_mcap(journal: Journal | RemoteJournal, file: str | os.PathLike[str], **chosen: Any) -> int:
    """Write rows to an MCAP file, whole or not at all; gives how many."""
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
        channels: dict[tuple[str, int, str | None], int] = {}
        for batch in journal.scan(**chosen):
            received = batch.column("received").cast(pa.int64()).to_pylist()
            published = hlc_nanos(batch.column("hlc").to_numpy(zero_copy_only=False)).tolist()
            for row, logged, stamped in zip(batch.to_pylist(), received, published, strict=True):
                writer.add_message(
                    channel_id=_channel(writer, channels, row),
                    log_time=logged * 1000,
                    publish_time=stamped,
                    data=row["value"],
                    sequence=rows & 0xFFFFFFFF,
                )
                rows += 1
            writer.add_attachment(0, 0, BESIDE, ARROW, stream_of(_beside(batch)))
        writer.finish()
    return rows


def _channel(
    writer: Any, channels: dict[tuple[str, int, str | None], int], row: dict[str, Any]
) -> int:
    """The channel of a key and an encoding."""
    name = (row["key"], row["encoding_id"], row["encoding_schema"])
    channel = channels.get(name)
    if channel is None:
        schema = row["encoding_schema"]
        encoding = Encoding.from_wire(
            row["encoding_id"], None if schema is None else schema.encode()
        )
        plain = str(Encoding.from_wire(row["encoding_id"], None))
        channel = channels[name] = writer.register_channel(
            topic=row["key"],
            message_encoding=MCAP_NAMES.get(plain, str(encoding)),
            schema_id=0,
            metadata={"zenoh.encoding": str(encoding)},
        )
    return channel


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
