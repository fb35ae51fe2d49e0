"""Data files of tables: written once, by a task, into a folder of the attempt's own.

A task that is tried again writes other files; only those of the attempt that succeeded are
committed, and the rest is swept up later.

Files of a table are also written by other programs, which merge or delete rows; `open_file` reads
all of them alike.
"""

from __future__ import annotations

import io
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, final
from urllib.parse import unquote

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
    "DataFileReader",
    "is_ours",
    "open_file",
    "partition_texts",
    "read_checkpoint",
    "read_notes",
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


_OURS: Final = re.compile(r"(?:.*/)?[0-9a-f]{32}\.parquet")
"""The names of attempts. Delta's connector, delta-rs and others call their files `part-…`."""


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


def is_ours(path: str) -> bool:
    """Return True if a file was written by a lake, so that its footer has all notes."""
    return _OURS.fullmatch(path) is not None


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
    folder = "/".join(f"{column}={_in_folder(value)}" for column, value in partition.items())
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
        if "hlc" in rows.column_names and _has_texts(rows, "key"):
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


def _in_folder(value: str | None) -> str:
    """Return a value as the name of a folder says it, as all writers of such tables do."""
    # Spark and delta-rs read an empty text back as null, and so it is one.
    return ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value) if value else NULL


def partition_texts(path: str) -> dict[str, str | None]:
    """Return the values that the folders of a file say, as text."""
    parts = (part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return {name: None if value == NULL else unquote(value) for name, value in parts}


def _has_texts(rows: pa.Table, name: str) -> bool:
    if name not in rows.column_names:
        return False
    kind = rows.schema.field(name).type
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


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


NULL: Final = "__HIVE_DEFAULT_PARTITION__"
ESCAPED: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
"""Characters that Hive, and so Spark, escapes in the names of folders; all others stand there."""

LOOKED_AT: Final = 256
"""Values of a column that tell whether they repeat."""

TEXT: Final = b"base64:"
"""Before notes of a footer."""

PLAIN: Final = frozenset({"value", "attachment", "hlc", "time", "received", "offset", "source_sn"})
"""Columns whose values hardly repeat."""


@final
class DataFileReader:
    """Reads one data file, as its table says that the rows are.

    Other programs write the same values with other types: text and bytes as views or large ones,
    times in nanoseconds without a zone. Whatever a file has becomes what the table has, or the cast
    fails; no value is changed.
    """

    def __init__(self, file: pq.ParquetFile, schema: pa.Schema, coded: Collection[str]) -> None:
        """`schema`: of the table; `coded`: columns of text that come as places in a dictionary."""
        self._file = file
        self._schema = schema
        self._coded = coded
        self.names: list[str] = list(file.schema_arrow.names)
        """The columns that the file has."""
        self.metadata: Any = file.metadata
        """The footer."""

    @property
    def notes(self) -> dict[bytes, bytes]:
        """What the footer notes beside the rows."""
        noted = self.metadata.metadata or {}
        # Files of earlier releases have the bytes as they are.
        return {
            name: b64decode(note[len(TEXT) :]) if note.startswith(TEXT) else note
            for name, note in noted.items()
        }

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows. Without `columns` those that the file has; others are null."""
        wanted = self._wanted(columns)
        return self._as_table(self._file.read(self._there(wanted)), wanted)

    def read_row_group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of one group."""
        wanted = self._wanted(columns)
        return self._as_table(self._file.read_row_group(number, self._there(wanted)), wanted)

    def batches(
        self,
        rows: int,
        columns: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> Iterator[pa.Table]:
        """All rows, or those of some row groups, at most so many at once."""
        wanted = self._wanted(columns)
        for batch in self._file.iter_batches(rows, groups, self._there(wanted)):
            yield self._as_table(pa.Table.from_batches([batch]), wanted)

    def group_bounds(self, names: Collection[str]) -> dict[str, tuple[pa.Array, pa.Array]]:
        """Return the least and the greatest value of columns in each row group; null is unknown.

        Columns that the file has with another type than the table, or not at all, are left out.
        """
        groups = [self.metadata.row_group(n) for n in range(self.metadata.num_row_groups)]
        there = self._file.schema_arrow
        bounds: dict[str, tuple[pa.Array, pa.Array]] = {}
        for place in range(self.metadata.num_columns):
            name = self.metadata.schema.column(place).path
            if name not in names or name not in self._schema.names or name not in there.names:
                continue
            kind = self._schema.field(name).type
            if there.field(name).type != kind:
                continue
            pairs = [_group_bounds(group.column(place).statistics) for group in groups]
            with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                bounds[name] = (
                    pa.array([low for low, _ in pairs], kind),
                    pa.array([high for _, high in pairs], kind),
                )
        return bounds

    def _wanted(self, columns: Sequence[str] | None) -> Sequence[str]:
        there = set(self.names)
        return [n for n in self._schema.names if n in there] if columns is None else columns

    def _there(self, wanted: Sequence[str]) -> list[str]:
        there = set(self.names)
        return [name for name in wanted if name in there]

    def _as_table(self, rows: pa.Table, wanted: Sequence[str]) -> pa.Table:
        there = set(rows.column_names)
        fields = [self._field(name) for name in wanted]
        columns = [
            rows[field.name].cast(field.type)
            if field.name in there
            else pa.nulls(rows.num_rows, field.type)
            for field in fields
        ]
        if not columns:
            return rows
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def _field(self, name: str) -> pa.Field:
        kind = self._schema.field(name).type
        if name in self._coded and pa.types.is_string(kind):
            kind = pa.dictionary(pa.int32(), kind)
        return pa.field(name, kind)


def _group_bounds(statistics: Any) -> tuple[Any, Any]:
    """Return the least and the greatest value that a footer says of a column; None is unknown."""
    if statistics is None or not statistics.has_min_max:
        return None, None
    try:
        low, high = statistics.min, statistics.max
    except (OverflowError, ValueError):  # a time that Python has not
        return None, None
    # Some writers count NaN, and then nothing is known.
    return (low, high) if low == low and high == high else (None, None)


@contextmanager
def open_file(
    place: LakeLocation,
    path: str,
    schema: pa.Schema,
    *,
    coded: Collection[str] = (),
    metadata: Any = None,
) -> Iterator[DataFileReader]:
    """Open a data file of a table with these columns; nothing else in the lake reads Parquet.

    `coded`: columns of text that come as places in a dictionary, which takes half of the time;
    `metadata`: the footer, if it is known.
    """
    with (
        place.filesystem.open_input_file(place.path(path)) as source,
        pq.ParquetFile(
            source,
            metadata=metadata,
            read_dictionary=list(coded),
            pre_buffer=place.remote,
            coerce_int96_timestamp_unit="us",
        ) as file,
    ):
        yield DataFileReader(file, schema, coded)


def read_table(
    place: LakeLocation, path: str, schema: pa.Schema, columns: Sequence[str] | None = None
) -> pa.Table:
    """All rows of one file of a table with these columns, without that of the partition.

    Without `columns` those that the file has; columns that it has not are null.
    """
    with open_file(place, path, schema) as file:
        return file.read(columns)


def read_notes(place: LakeLocation, path: str) -> Mapping[bytes, bytes]:
    """What the footer of a file notes beside its rows."""
    with open_file(place, path, pa.schema([])) as file:
        return file.notes


def read_checkpoint(place: LakeLocation, path: str, column: str) -> list[Any]:
    """One column of a checkpoint of a Delta log."""
    with place.filesystem.open_input_file(place.path(path)) as source:
        values: list[Any] = pq.read_table(source, columns=[column])[column].to_pylist()
        return values
