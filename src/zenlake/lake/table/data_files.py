"""Data files of tables: written once, by a task, into a folder of the attempt's own.

A task that is tried again writes other files; only those of the attempt that succeeded are
committed, and the rest is swept up later.
"""

from __future__ import annotations

import io
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zenlake.lake.model.sample_rows import order_of
from zenlake.lake.table.file_statistics import statistics
from zenlake.lake.table.location import LakeLocation
from zenlake.lake.table.nan_columns import measurable

__all__ = [
    "WILD",
    "DataFile",
    "noted_file",
    "read_noted",
    "read_table",
    "write_file",
    "write_partitioned",
]

GROUP_ROWS: Final = 16 * 1024
GROUP_BYTES: Final = 32 * 1024 * 1024
"""A row group ends at the one or at the other: it is what a reader can pass over."""

WILD: Final = b"zenlake.wild"
"""Where the footer notes whether keys have wildcards: those sort anywhere, so that statistics do
not tell which keys they mean."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table, as the Delta log knows it."""

    path: str
    size: int
    rows: int
    partition: Mapping[str, str | None]
    stats: str
    modified: int

    def plain(self) -> dict[str, Any]:
        """As JSON can write it."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> DataFile:
        """What `plain` wrote."""
        return cls(**plain)


def write_partitioned(
    place: LakeLocation,
    rows: pa.Table,
    column: str,
    attempt: str,
    *,
    notes: Callable[[pa.Table], Mapping[bytes, bytes]] | None = None,
) -> list[DataFile]:
    """Write rows into one file for each value of a partition column, in the order of `order_of`.

    `notes`: what the footer of a file with these rows says beside them.
    """
    files: list[DataFile] = []
    values = pc.unique(rows[column]).to_pylist()
    for value in sorted(values):
        part = rows
        if len(values) > 1:
            part = rows.filter(pc.equal(rows[column], pa.scalar(value, rows[column].type)))
        part = part.drop_columns([column])
        part = part.take(pa.array(order_of(part)))
        metadata = None if notes is None else notes(part)
        files.append(write_file(place, part, {column: str(value)}, attempt, metadata=metadata))
    return files


def write_file(
    place: LakeLocation,
    rows: pa.Table,
    partition: Mapping[str, str | None],
    name: str,
    *,
    metadata: Mapping[bytes, bytes] | None = None,
) -> DataFile:
    """Write one file; its folder says the partition, its name the attempt."""
    folder = "/".join(f"{column}={value}" for column, value in partition.items())
    path = f"{folder}/{name}.parquet" if folder else f"{name}.parquet"
    each = max(1, rows.nbytes // max(1, rows.num_rows))
    footers: list[Any] = []
    repeating = [name for name in rows.column_names if _repeats(name, rows[name])]
    # In memory first: a filesystem of objects wants it whole, and the size is known at once.
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression="zstd",
        compression_level=1,
        store_schema=False,
        use_dictionary=repeating,
        # Times and offsets differ little from row to row: half the work, and hardly any bytes.
        column_encoding={
            field.name: "DELTA_BINARY_PACKED"
            for field in rows.schema
            if field.name not in repeating and _is_whole(field.type)
        },
        write_statistics=measurable(rows),
        metadata_collector=footers,
    ) as writer:
        writer.write_table(rows, max(1, min(GROUP_ROWS, GROUP_BYTES // each)))
        # The footer of a Parquet file has text there, and some readers insist on it.
        notes = {name: TEXT + b64encode(note) for name, note in (metadata or {}).items()}
        if "key" in rows.column_names and "hlc" in rows.column_names:
            notes[WILD] = b"1" if _any_wild(rows["key"]) else b"0"
        if notes:
            writer.add_key_value_metadata(notes)
    data = sink.getbuffer()
    place.make(folder)
    with place.filesystem.open_output_stream(place.path(path)) as out:
        out.write(data)
    return DataFile(
        path=path,
        size=len(data),
        rows=rows.num_rows,
        partition=dict(partition),
        stats=statistics(footers[0]),
        modified=int(time.time() * 1000),
    )


def _repeats(name: str, values: Any) -> bool:
    """Whether a dictionary of the values is worth it: else it takes longer, and more bytes."""
    if name in PLAIN:
        return False
    if not pa.types.is_primitive(values.type):
        return True
    some = values.slice(0, LOOKED_AT)
    return 2 * len(pc.unique(some)) <= len(some) or len(some) < LOOKED_AT


def _is_whole(type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type) or type in (pa.int32(), pa.int64()))


def _any_wild(keys: Any) -> bool:
    parts = [one.dictionary if pa.types.is_dictionary(one.type) else one for one in keys.chunks]
    return any(pc.any(pc.match_substring(one, "*")).as_py() for one in parts)


LOOKED_AT: Final = 256
"""Values of a column that tell whether they repeat."""

TEXT: Final = b"base64:"
"""Before notes of a footer."""

PLAIN: Final = frozenset({"value", "attachment", "hlc", "time", "received", "offset", "source_sn"})
"""Columns whose values hardly repeat."""


def read_table(place: LakeLocation, path: str, columns: list[str] | None = None) -> pa.Table:
    """All rows of one file, without the partition's columns."""
    return read_noted(place, path, columns)[0]


def read_noted(
    place: LakeLocation, path: str, columns: list[str] | None = None, *, coded: Sequence[str] = ()
) -> tuple[pa.Table, Mapping[bytes, bytes]]:
    """All rows of one file, and what its footer notes beside them."""
    with noted_file(place, path, coded) as (file, notes):
        return file.read(columns), notes


@contextmanager
def noted_file(
    place: LakeLocation, path: str, coded: Sequence[str] = ()
) -> Iterator[tuple[pq.ParquetFile, Mapping[bytes, bytes]]]:
    """One file to read from, and what its footer notes beside its rows.

    `coded`: columns of text that come as places in a dictionary, which takes half of the time.
    """
    with (
        place.filesystem.open_input_file(place.path(path)) as source,
        pq.ParquetFile(source, read_dictionary=list(coded)) as file,
    ):
        noted = file.metadata.metadata or {}
        # Files of earlier releases have the bytes as they are.
        yield (
            file,
            {
                name: b64decode(note[len(TEXT) :]) if note.startswith(TEXT) else note
                for name, note in noted.items()
            },
        )
