"""Iceberg metadata beside Delta: the same Parquet files, for readers that know only Iceberg.

Delta stays the truth. After a commit the files of a table are compared with those that its Iceberg
metadata names, and one snapshot adds and removes what differs: appends, compaction, deletions and
rewrites alike. So a publication that failed or was cut off is made up for by the next one.

    lake/pose/_iceberg/metadata/version-hint.text    the number of the newest metadata
    lake/pose/_iceberg/metadata/v12.metadata.json    and what it names: manifests, which name files

Files are found by the names of their columns (`schema.name-mapping.default`), and the column of the
partition, which is not in them, is taken from the manifest, as Iceberg says that readers do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.errors import ConfigError
from zenlake.lake.table.delta import Table

if TYPE_CHECKING:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.types import IcebergType

__all__ = ["FOLDER", "IcebergMirror", "demand_pyiceberg", "mirror_where_it_is", "unpublish"]

FOLDER: Final = "_iceberg"
"""Beside the data files of a table; the underscore keeps readers and vacuums of Delta away."""

VERSION: Final = "zenlake.delta-version"
HINT: Final = "version-hint.text"
MOST_SNAPSHOTS: Final = 50
MERGED: Final = "16"
"""Manifests that are put together into one."""


def demand_pyiceberg() -> None:
    """Refuse to go on where pyiceberg is missing."""
    try:
        import pyiceberg.table  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "iceberg: true needs pyiceberg; run: pip install 'zenlake[iceberg]'"
        ) from error


def mirror_where_it_is(tables: Iterable[Table]) -> None:
    """Bring the metadata of those tables up to date that have some."""
    having = [table for table in tables if table.place.exists(f"{FOLDER}/metadata/{HINT}")]
    if having:
        demand_pyiceberg()
        mirror = IcebergMirror()
        for table in having:
            mirror.publish(table)


def unpublish(table: Table) -> None:
    """Take the metadata of a table away, with all that it says of keys and values."""
    if table.place.exists(FOLDER):
        table.place.remove_folder(FOLDER)


@final
class IcebergMirror:
    """Publishes versions of tables; threads may share it."""

    def __init__(self) -> None:
        """Nothing is remembered yet: what was published before is looked up in the tables."""
        self._guard = threading.Lock()
        self._known: dict[str, _Published] = {}

    def publish(self, table: Table) -> bool:
        """Make the metadata say what this version of a table holds; whether there was news."""
        with self._guard:
            known = self._known.get(table.name)
            if known is not None and table.version <= known.version:
                return False
            try:
                if known is None or not known.is_there():
                    known = _Published(table)
                if table.version <= known.version:
                    self._known[table.name] = known
                    return False
                known.follow(table)
            except BaseException:
                # Whatever it knows may be wrong now.
                self._known.pop(table.name, None)
                raise
            self._known[table.name] = known
            return True

    def sweep(self, table: Table, age: float) -> list[str]:
        """Delete metadata that no snapshot needs any more, and none needed for `age` seconds."""
        with self._guard:
            known = self._known.get(table.name)
            return [] if known is None else known.sweep(age)


@final
class _Published:
    """The Iceberg metadata of one table, and the files that it names."""

    def __init__(self, table: Table) -> None:
        self._place = table.place / FOLDER
        self._address = table.place.address("")
        self._io = _file_io(table.place.filesystem)
        self._iceberg: IcebergTable | None = None
        self._files: dict[str, DataFile] = {}
        self.version = -1
        number = self._newest()
        if number is not None:
            self._load(table.name, number)

    def is_there(self) -> bool:
        """Whether it is still there: another writer may have deleted it."""
        return self._iceberg is None or self._place.exists(f"metadata/{HINT}")

    def _newest(self) -> int | None:
        try:
            return int(self._place.read(f"metadata/{HINT}"))
        except FileNotFoundError:
            return None

    def _load(self, name: str, number: int) -> None:
        from pyiceberg.serializers import FromInputFile

        location = self._location(number)
        metadata = FromInputFile.table_metadata(self._io.new_input(location))
        self._iceberg = _iceberg_table(name, metadata, location, self._io, self._commit)
        snapshot = self._iceberg.current_snapshot()
        for manifest in [] if snapshot is None else snapshot.manifests(self._io):
            for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=True):
                path = entry.data_file.file_path
                self._files[path.removeprefix(self._address)] = entry.data_file
        self.version = int(metadata.properties.get(VERSION, -1))

    def _location(self, number: int) -> str:
        return self._place.address(f"metadata/v{number}.metadata.json")

    # --- one version after the other ------------------------------------------------------------

    def follow(self, table: Table) -> None:
        """Add and remove what differs from a version of the table."""
        iceberg = self._iceberg
        if iceberg is None:
            self._place.make("metadata")
            iceberg = self._iceberg = self._make(table)
        actions = table.actions()
        there = actions["path"].to_pylist()
        wanted = set(there)
        gone = [file for path, file in self._files.items() if path not in wanted]
        new = [n for n, path in enumerate(there) if path not in self._files]
        transaction = iceberg.transaction()
        self._fit_schema(transaction, table)
        schema = transaction.table_metadata.schema()
        added = _data_files(actions.take(pa.array(new, pa.int64())), table, schema, self._address)
        transaction.set_properties(_properties(table, schema))
        if added or gone:
            update = transaction.update_snapshot({VERSION: str(table.version)})
            with update.overwrite() if gone else update.merge_append() as snapshot:
                for file in added.values():
                    snapshot.append_data_file(file)
                for file in gone:
                    snapshot.delete_data_file(file)
        transaction.commit_transaction()
        for path in [path for path in self._files if path not in wanted]:
            del self._files[path]
        self._files |= added
        self.version = table.version

    def _make(self, table: Table) -> IcebergTable:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.table.metadata import new_table_metadata
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
        from pyiceberg.transforms import IdentityTransform

        schema = Schema(*_fields(table.schema, _Numbers(0)))
        columns = [schema.find_field(name) for name in table.partitions]
        metadata = new_table_metadata(
            schema,
            PartitionSpec(
                *(
                    PartitionField(one.field_id, 1000 + n, IdentityTransform(), name=one.name)
                    for n, one in enumerate(columns)
                )
            ),
            UNSORTED_SORT_ORDER,
            self._place.address("").rstrip("/"),
            {"format-version": "2"},
        )
        return _iceberg_table(table.name, metadata, "", self._io, self._commit)

    def _fit_schema(self, transaction: Any, table: Table) -> None:
        """Give the metadata the columns of the table.

        A column whose type changed gets a new number: its files were all written anew, and they
        are read by name.
        """
        from pyiceberg.schema import Schema
        from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate

        metadata = transaction.table_metadata
        had = {field.name: field for field in metadata.schema().fields}
        fresh = _fields(table.schema, _Numbers(metadata.last_column_id))
        fields = [
            had[field.name].model_copy(update={"doc": field.doc})
            if field.name in had and _alike(had[field.name].field_type, field.field_type)
            else field
            for field in fresh
        ]
        if fields == list(metadata.schema().fields):
            return
        following = max(schema.schema_id for schema in metadata.schemas) + 1
        transaction._apply(
            (
                AddSchemaUpdate(schema=Schema(*fields, schema_id=following)),
                SetCurrentSchemaUpdate.model_validate({"schema-id": -1}),
            )
        )

    def _commit(self, table: IcebergTable, requirements: Any, updates: Any) -> Any:
        """Write the next metadata, with the snapshots that are too many left out."""
        from pyiceberg.serializers import ToOutputFile
        from pyiceberg.table import CommitTableResponse
        from pyiceberg.table.update import RemoveSnapshotsUpdate, update_table_metadata

        for requirement in requirements:
            requirement.validate(table.metadata)
        before = table.metadata_location or None
        after = update_table_metadata(table.metadata, updates, False, before)
        old = sorted(after.snapshots, key=lambda one: one.sequence_number or 0)[:-MOST_SNAPSHOTS]
        if old:
            ids = [one.snapshot_id for one in old]
            expired = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": ids})
            after = update_table_metadata(after, (expired,), False, before)
        number = _number_of(table.metadata_location) + 1
        while self._place.exists(f"metadata/v{number}.metadata.json"):
            number += 1  # of a publication that was cut off before it was pointed at
        ToOutputFile.table_metadata(after, self._io.new_output(self._location(number)))
        self._point_at(number)
        return CommitTableResponse.model_validate(
            {"metadata": after, "metadata-location": self._location(number)}
        )

    def _point_at(self, number: int) -> None:
        """Tell readers of the newest metadata; they see the old number or the new one."""
        text = str(number).encode()
        if self._place.remote:
            self._place.write(f"metadata/{HINT}", text)
            return
        self._place.write(f"metadata/.{HINT}", text)
        self._place.filesystem.move(
            self._place.path(f"metadata/.{HINT}"), self._place.path(f"metadata/{HINT}")
        )

    # --- what nobody needs ----------------------------------------------------------------------

    def sweep(self, age: float) -> list[str]:
        if self._iceberg is None:
            return []
        metadata = self._iceberg.metadata
        needed = {self._iceberg.metadata_location, self._place.address(f"metadata/{HINT}")}
        needed |= {entry.metadata_file for entry in metadata.metadata_log}
        for snapshot in metadata.snapshots:
            needed.add(snapshot.manifest_list)
            needed |= {one.manifest_path for one in snapshot.manifests(self._io)}
        gone = [
            name
            for name, _, old in self._place.files()
            if old >= age and self._place.address(name) not in needed
        ]
        for name in gone:
            self._place.remove(name)
        return gone


def _number_of(location: str) -> int:
    name = location.rpartition("/")[2]
    return int(name[1:].partition(".")[0]) if name else 0


def _properties(table: Table, schema: Schema) -> dict[str, str]:
    from pyiceberg.table.name_mapping import create_mapping_from_schema

    said = {"comment": table.described} if table.described else {}
    return said | {
        VERSION: str(table.version),
        "schema.name-mapping.default": create_mapping_from_schema(schema).model_dump_json(),
        "commit.manifest-merge.enabled": "true",
        "commit.manifest.min-count-to-merge": MERGED,
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "10",
        # Rows come by Delta alone.
        "commit.retry.num-retries": "0",
    }


# --- pyiceberg's machinery, told of our folders -------------------------------------------------


def _file_io(filesystem: Any) -> PyArrowFileIO:
    """Reads and writes by a filesystem of ours, whose credentials are nobody else's business."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    class PlaceFileIO(PyArrowFileIO):
        def _initialize_fs(self, scheme: str, netloc: str | None = None) -> Any:
            return filesystem

    return PlaceFileIO()


def _iceberg_table(
    name: str, metadata: Any, location: str, io: PyArrowFileIO, commit: Callable[..., Any]
) -> IcebergTable:
    """A table whose commits are ours: a folder needs no catalog."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.table import Table as IcebergTable

    class FolderCatalog(NoopCatalog):
        def commit_table(self, table: IcebergTable, requirements: Any, updates: Any) -> Any:
            return commit(table, requirements, updates)

    return IcebergTable(("zenlake", name), metadata, location, io, FolderCatalog("zenlake"))


# --- columns ------------------------------------------------------------------------------------


@final
class _Numbers:
    """Numbers for columns, each once."""

    def __init__(self, last: int) -> None:
        self._last = last

    def next(self) -> int:
        self._last += 1
        return self._last


def _fields(columns: Iterable[pa.Field], numbers: _Numbers) -> list[Any]:
    from pyiceberg.types import NestedField

    fields = []
    for column in columns:
        number = numbers.next()
        comment = (column.metadata or {}).get(b"comment")
        doc = None if comment is None else comment.decode()
        kind = _type(column.type, numbers)
        fields.append(NestedField(number, column.name, kind, required=False, doc=doc))
    return fields


def _type(arrow: pa.DataType, numbers: _Numbers) -> IcebergType:
    """The type of Iceberg that holds the values of a column."""
    from pyiceberg import types as iceberg

    if pa.types.is_struct(arrow):
        return iceberg.StructType(*_fields(arrow, numbers))
    if pa.types.is_map(arrow):
        key, value = numbers.next(), numbers.next()
        return iceberg.MapType(
            key, _type(arrow.key_type, numbers), value, _type(arrow.item_type, numbers), False
        )
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return iceberg.ListType(numbers.next(), _type(arrow.value_type, numbers), False)
    if pa.types.is_decimal(arrow):
        return iceberg.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return iceberg.TimestamptzType() if arrow.tz else iceberg.TimestampType()
    simple: list[tuple[Callable[[pa.DataType], bool], type[Any]]] = [
        (pa.types.is_boolean, iceberg.BooleanType),
        (pa.types.is_int64, iceberg.LongType),
        (pa.types.is_integer, iceberg.IntegerType),
        (pa.types.is_float32, iceberg.FloatType),
        (pa.types.is_float64, iceberg.DoubleType),
        (pa.types.is_date, iceberg.DateType),
        (lambda kind: pa.types.is_string(kind) or kind == pa.string_view(), iceberg.StringType),
        (pa.types.is_large_string, iceberg.StringType),
    ]
    for is_it, made in simple:
        if is_it(arrow):
            return made()  # type: ignore[no-any-return]
    return iceberg.BinaryType()


def _alike(one: IcebergType, other: IcebergType) -> bool:
    """Whether two types are the same but for the numbers inside."""
    from pyiceberg.schema import Schema, assign_fresh_schema_ids
    from pyiceberg.types import NestedField

    alone = [Schema(NestedField(1, "x", kind, required=False)) for kind in (one, other)]
    return bool(assign_fresh_schema_ids(alone[0]) == assign_fresh_schema_ids(alone[1]))


# --- files --------------------------------------------------------------------------------------


def _data_files(
    actions: pa.Table, table: Table, schema: Schema, address: str
) -> dict[str, DataFile]:
    """Files of the Delta log as manifests name them, with the same bounds of columns."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    bounds = _bounds(actions, schema)
    rows = actions["num_records"].to_pylist()
    sizes = actions["size_bytes"].to_pylist()
    values = [
        [_partition_value(one) for one in actions[f"partition.{name}"].to_pylist()]
        for name in table.partitions
    ]
    files = {
        path: DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=address + path,
            file_format=FileFormat.PARQUET,
            partition=Record(*(column[n] for column in values)),
            record_count=rows[n] or 0,
            file_size_in_bytes=sizes[n],
            lower_bounds={number: low[n] for number, low, _, _ in bounds if low[n] is not None},
            upper_bounds={number: high[n] for number, _, high, _ in bounds if high[n] is not None},
            null_value_counts={number: null[n] for number, _, _, null in bounds},
            value_counts={number: rows[n] or 0 for number, *_ in bounds},
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
        )
        for n, path in enumerate(actions["path"].to_pylist())
    }
    for file in files.values():
        file.spec_id = 0
    return files


def _partition_value(value: Any) -> Any:
    from datetime import date

    from pyiceberg.utils.datetime import date_to_days

    return date_to_days(value) if isinstance(value, date) else value


def _bounds(actions: pa.Table, schema: Schema) -> list[tuple[int, list[Any], list[Any], list[int]]]:
    """For each column with statistics: its number, least and greatest values as bytes, nulls."""
    from pyiceberg.conversions import to_bytes
    from pyiceberg.types import DecimalType, PrimitiveType

    bounds = []
    names: Mapping[str, Any] = dict.fromkeys(actions.column_names)
    for field in schema.fields:
        kind = field.field_type
        wanted = [f"{word}.{field.name}" for word in ("min", "max", "null_count")]
        if not isinstance(kind, PrimitiveType) or isinstance(kind, DecimalType):
            continue
        if not all(name in names for name in wanted):
            continue
        least, most, nulls = (actions[name].to_pylist() for name in wanted)
        if any(one is None for one in nulls):
            continue
        low = [None if value is None else to_bytes(kind, value) for value in least]
        high = [None if value is None else to_bytes(kind, value) for value in most]
        bounds.append((field.field_id, low, high, nulls))
    return bounds
