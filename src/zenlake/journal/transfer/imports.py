"""Files of other tools into a journal: Parquet and MCAP, written here or elsewhere.

Rows that were exported from a journal come back as they were, but for their offsets, and marked
as imported. From other files comes what they tell: MCAP topics become keys, those of ROS 2 the keys
that rmw_zenoh would give them, so that a lake knows their types; a Parquet file needs the columns
`key` and `value`, and may have the others as a journal or as a table of a lake has them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zenlake.clock import NTP64
from zenlake.errors import DecodeError, JournalError, KeyExprError
from zenlake.journal.disk.layout import partition_of
from zenlake.journal.ingest.rows import hlc_nanos, hlc_of_micros, unnumbered_batch
from zenlake.journal.schema import IMPORTED, SCHEMA, UNNUMBERED
from zenlake.journal.serving.parts import batches_in
from zenlake.journal.transfer.export import BESIDE, KEY, MCAP_NAMES
from zenlake.journal.transfer.taken_in import taking_in
from zenlake.journal.writing.writer import JournalWriter
from zenlake.keys import canonize
from zenlake.recorded.columns import numbers_for_words
from zenlake.recorded.encoding import recorded_parts
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.ros2.definitions import described_by_text
from zenlake.ros2.names import DataKey

__all__ = ["from_mcap", "from_parquet"]

ROWS: Final = 10_000
"""How many rows are written at once."""


def from_parquet(
    writer: JournalWriter, file: str | os.PathLike[str], *, again: bool = False
) -> int:
    """Append the rows of a Parquet file; gives how many.

    Raises `JournalError` if the same file was imported before, unless `again`.
    """
    try:
        parquet = pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise JournalError(f"{os.fspath(file)} is no Parquet file: {error}") from error
    missing = {"key", "value"} - set(parquet.schema_arrow.names)
    if missing:
        raise JournalError(
            f"{os.fspath(file)} has no column {', '.join(sorted(missing))}: rows have at least a "
            "key and a value"
        )
    with taking_in(writer, file, again) as taken:
        for batch in parquet.iter_batches(ROWS):
            taken.rows += _append(writer, _completed(batch, bytes.fromhex(writer.id)))
    return taken.rows


def from_mcap(writer: JournalWriter, file: str | os.PathLike[str], *, again: bool = False) -> int:
    """Append the messages of an MCAP file; gives how many.

    Raises `JournalError` if the same file was imported before, unless `again`.
    """
    try:
        from mcap.exceptions import McapError
        from mcap.reader import make_reader
    except ImportError as error:
        raise JournalError(
            "MCAP files need a library that is not installed: pip install 'zenlake[mcap]'"
        ) from error
    with open(file, "rb") as data, taking_in(writer, file, again) as taken:
        try:
            reader = make_reader(data)
            beside = [
                batch
                for attachment in reader.iter_attachments()
                if attachment.name == BESIDE
                for batch in batches_in(attachment.data)
            ]
        except (McapError, struct.error) as error:
            raise JournalError(f"{os.fspath(file)} is no MCAP file: {error}") from error
        messages = _in_order(reader)
        if beside:
            for batch in beside:
                taken.rows += _append(writer, _joined(batch, messages))
            return taken.rows
        stamp_id = bytes.fromhex(writer.id)
        keys: dict[int, str] = {}
        rows: list[dict[str, object]] = []
        for schema, channel, message in messages:
            if channel.id not in keys:
                keys[channel.id] = _ros_key(schema, channel) or _key_of(channel.topic)
            rows.append(_foreign(keys[channel.id], channel, message, stamp_id))
            if len(rows) == ROWS:
                taken.rows += _append(writer, unnumbered_batch(rows))
                rows = []
        if rows:
            taken.rows += _append(writer, unnumbered_batch(rows))
    return taken.rows


def _in_order(reader: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Messages as they were written: that is the order of what lies beside them."""
    messages: Iterator[tuple[Any, Any, Any]] = reader.iter_messages(log_time_order=False)
    return messages


def _append(writer: JournalWriter, batch: Any) -> int:
    """Hand rows to the partitions of their keys."""
    key = batch.column("key")
    names = key.dictionary.to_pylist()
    of_name = np.array([partition_of(name, writer.partitions) for name in names])
    parts = of_name[key.indices.to_numpy(zero_copy_only=False)]
    for partition in np.unique(parts).tolist():
        chosen = batch if len(names) == 1 else batch.filter(pa.array(parts == partition))
        writer.append(partition, chosen)
    return int(batch.num_rows)


def _joined(beside: Any, messages: Iterator[tuple[Any, Any, Any]]) -> Any:
    """Rows out of messages, and what lay beside them."""
    keys: list[str] = []
    values: list[bytes] = []
    for _ in range(beside.num_rows):
        _, channel, message = next(messages)
        keys.append(channel.metadata.get(KEY, channel.topic))
        values.append(message.data)
    columns = {
        "key": pa.array(keys, pa.string()).dictionary_encode(),
        "value": pa.array(values, pa.binary()),
    }
    return _imported(
        [columns[field.name] if field.name in columns else beside.column(field.name)
         for field in UNNUMBERED]
    )  # fmt: skip


def _foreign(key: str, channel: Any, message: Any, stamp_id: bytes) -> dict[str, object]:
    """A row out of a message that knows nothing of Zenoh."""
    encoding_text = channel.metadata.get("zenoh.encoding") or _encoding_named(
        channel.message_encoding
    )
    encoding_id, encoding_schema = recorded_parts(encoding_text)
    return {
        "key": key,
        "value": message.data,
        "kind": 0,
        "encoding_id": encoding_id,
        "encoding_schema": encoding_schema,
        "hlc": int(NTP64.from_nanos(message.publish_time)) - HLC_BIAS,
        "time": message.publish_time // 1000,
        "stamp_id": stamp_id,
        "stamped": True,
        "attachment": None,
        "source_zid": None,
        "source_eid": None,
        "source_sn": None,
        "priority": 5,
        "congestion": 0,
        "express": False,
        "reliable": True,
        "received": message.log_time // 1000,
        "origin": IMPORTED,
    }


def _ros_key(schema: Any, channel: Any) -> str | None:
    """The key that rmw_zenoh gives a topic of ROS 2; None if it is none, or cannot be read."""
    if channel.message_encoding != "cdr" or schema is None or schema.encoding != "ros2msg":
        return None
    try:
        described = described_by_text(schema.data.decode("utf-8", "replace"), schema.name)
        key = str(DataKey(0, channel.topic, schema.name, described.hash))
        return key if str(canonize(key)) == key else None
    except (ImportError, DecodeError, ValueError, KeyExprError):
        return None


def _encoding_named(name: str) -> str:
    for zenoh, mcap in MCAP_NAMES.items():
        if mcap == name:
            return zenoh
    return name


def _key_of(topic: str) -> str:
    """A topic as a key: without the slashes around it and what no key may hold."""
    plain = topic.strip("/")
    for mark in "*$?#":
        plain = plain.replace(mark, "_")
    try:
        return str(canonize("/".join([chunk for chunk in plain.split("/") if chunk])))
    except KeyExprError as error:
        raise JournalError(f"topic '{topic}' cannot be a key: {error}") from error


def _completed(batch: Any, stamp_id: bytes) -> Any:
    """A batch with every column of the journal; what a file does not tell is plain."""
    count = batch.num_rows
    given = numbers_for_words({name: batch.column(name) for name in batch.schema.names})
    if "hlc" in given:
        hlc = pc.fill_null(given["hlc"].cast(pa.int64()), -HLC_BIAS)
    else:
        times = given.get("time", pa.array([0] * count, pa.int64())).cast(SCHEMA.field("time").type)
        micros = pc.fill_null(times.cast(pa.int64()), 0)
        hlc = pa.array(hlc_of_micros(micros.to_numpy(zero_copy_only=False)))
    # Of the two columns of one time the exact one is believed.
    nanos = hlc_nanos(hlc.to_numpy(zero_copy_only=False))
    time = pa.array((nanos // np.uint64(1000)).astype(np.int64))
    absent: dict[str, object] = {
        "kind": 0, "encoding_id": 0, "stamp_id": stamp_id, "stamped": True, "priority": 5,
        "congestion": 0, "express": False, "reliable": True,
    }  # fmt: skip
    arrays = []
    for field in UNNUMBERED:
        if field.name == "key":
            key = given["key"]
            if not pa.types.is_dictionary(key.type):
                key = key.cast(pa.string()).dictionary_encode()
            arrays.append(key.cast(field.type))
        elif field.name == "hlc":
            arrays.append(hlc)
        elif field.name == "time" or (field.name == "received" and "received" not in given):
            arrays.append(time.cast(field.type))
        elif field.name in given:
            arrays.append(given[field.name].cast(field.type))
        else:
            arrays.append(pa.array([absent.get(field.name)] * count, field.type))
    return _imported(arrays)


def _imported(arrays: list[Any]) -> Any:
    """The rows, marked as imported."""
    names = UNNUMBERED.names
    count = len(arrays[0])
    arrays[names.index("origin")] = pc.cast(
        pa.array(np.full(count, IMPORTED, np.int8)), UNNUMBERED.field("origin").type
    )
    try:
        return pa.RecordBatch.from_arrays(arrays, schema=UNNUMBERED)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise JournalError(f"these rows are not those of a journal: {error}") from error
