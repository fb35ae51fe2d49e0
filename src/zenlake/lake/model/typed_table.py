"""Typed tables: the keys of one format, their chunks and their payloads as columns.

Every sample of the format becomes a row of the table, or a row of the quarantine with its bytes
and the reason. A column gets its kind from the configuration or from the values: whole numbers
make a bigint, which becomes a double as soon as there is a fraction, whether that comes in the
same batch or months later. New fields make new columns. What a task finds new it proposes; the
driver settles what all tasks of a batch agree on (`settled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pyarrow as pa

from zenlake.journal.schema import INSTANT
from zenlake.keys import KeyFormat
from zenlake.lake.model.column_types import ARROW
from zenlake.lake.model.decoder import Reason, Undecodable
from zenlake.lake.model.sample_rows import DAY, QUARANTINE
from zenlake.lake.model.value_types import column_name, name_key
from zenlake.lake.model.wider_kinds import joined_kinds

__all__ = [
    "RESERVED",
    "ROS2_PARTS",
    "Columns",
    "TypedTable",
    "as_coded",
    "coded_schema",
    "quarantined",
    "settled",
    "typed_schema",
]

V = TypeVar("V")

RESERVED: Final = (
    "key",
    "kind",
    "time",
    "hlc",
    "received",
    "journal",
    "partition",
    "offset",
    DAY,
)
"""What every typed table has; a field of that name gets `payload_` before it."""

MOST_COLUMNS: Final = 1000
MOST_DETAIL: Final = 500


@dataclass(frozen=True, slots=True)
class TypedTable:
    """What the configuration says of one typed table."""

    name: str
    format: str
    encoding: str | None = None
    decoder: str | None = None
    type: object = None
    columns: Mapping[str, str] = field(default_factory=dict)
    ros2: bool = False
    """The format is one of topics of ROS 2, not of keys: `robot1/odom`, `${robot:*}/odom`."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """The names that columns of payloads get instead of their own."""
    drop: frozenset[str] = frozenset()
    """Columns of payloads that are left out."""
    comment: str = ""
    """What the table is, for people who find it in a catalog."""
    comments: Mapping[str, str] = field(default_factory=dict)
    """What its columns are."""

    def chosen(self, fields: Mapping[str, V]) -> Mapping[str, V]:
        """The fields of a payload that the configuration wants, by the names that it wants."""
        if not self.rename and not self.drop:
            return fields
        chosen: dict[str, V] = {}
        for name, value in fields.items():
            if name in self.drop:
                continue
            new = self.rename.get(name, name)
            if new in chosen:
                raise Undecodable(f"two fields come to the column '{new}'", Reason.NAME, name)
            chosen[new] = value
        return chosen

    @property
    def chunks(self) -> tuple[str, ...]:
        """The columns of the key's parts."""
        names = tuple(column_name(name) for name in KeyFormat(self.format).names)
        return (*ROS2_PARTS, *names) if self.ros2 else names


ROS2_PARTS: Final = ("domain", "topic", "type", "type_hash")
"""What the key of a sample of ROS 2 says, whatever its topic."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The payload columns that a table has already."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    """Columns that may not become wider: by configuration, or because values would change."""

    def fixing(self, more: frozenset[str]) -> Columns:
        """Return the same columns, of which more may not become wider."""
        return Columns(self.kinds, self.fixed | more) if more else self

    def widened(self, agreed: Mapping[str, str]) -> dict[str, str]:
        """Return the columns that have another kind among those agreed on, with that kind."""
        return {
            name: agreed[name]
            for name, kind in self.kinds.items()
            if agreed.get(name, kind) != kind
        }


def typed_schema(table: TypedTable, columns: Mapping[str, str]) -> pa.Schema:
    """The schema of a typed table with these payload columns."""
    return pa.schema(
        [
            ("key", pa.string()),
            *((chunk, pa.string()) for chunk in table.chunks),
            ("kind", pa.string()),
            ("time", INSTANT),
            ("hlc", pa.int64()),
            ("received", INSTANT),
            ("journal", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            *((name, ARROW[kind]) for name, kind in columns.items()),
            (DAY, pa.date32()),
        ]
    )


def coded_schema(schema: pa.Schema, table: TypedTable) -> pa.Schema:
    """The same with words that hardly change as places in a dictionary, as tasks have them."""
    words = {"key", "kind", "journal", *table.chunks}
    coded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(coded) if field.name in words else field for field in schema])


def as_coded(values: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Values of `samples` as such a schema wants them."""
    if values.type == type:
        return values
    if pa.types.is_dictionary(type) and not pa.types.is_dictionary(values.type):
        return values.dictionary_encode()
    return values.cast(type)


def settled(
    known: Columns, proposals: Sequence[Mapping[str, str]]
) -> tuple[dict[str, str], list[int]]:
    """The columns that all tasks shall use, and which tasks must decode again with them.

    A column gets the kind that holds what all tasks propose, and what the table has already
    (`wider_kinds`). Where no kind does, that of the table or of the first proposal decides. Names
    are compared without regard to case, as readers of tables do.
    """
    agreed = {name_key(name): (name, kind) for name, kind in known.kinds.items()}
    widened: set[str] = set()
    for proposal in proposals:
        for name, kind in proposal.items():
            had = agreed.get(name_key(name))
            if had is None:
                if len(agreed) < MOST_COLUMNS:
                    agreed[name_key(name)] = (name, kind)
            elif had[0] not in known.fixed:
                both = joined_kinds(had[1], kind) or had[1]
                if had[0] in known.kinds and both != known.kinds[had[0]]:
                    widened.add(had[0])
                agreed[name_key(name)] = (had[0], both)
    again = [
        place
        for place, proposal in enumerate(proposals)
        if widened - proposal.keys()
        or any(agreed.get(name_key(name)) != (name, kind) for name, kind in proposal.items())
    ]
    return dict(agreed.values()), again


def quarantined(table: str, bad: pa.Table, reasons: Sequence[Undecodable]) -> pa.Table:
    """Rows of the quarantine for samples that a table refused."""
    columns: dict[str, Any] = {
        "table": pa.array([table] * len(reasons), pa.string()),
        "reason": pa.array([str(error.reason) for error in reasons], pa.string()),
        "field": pa.array([_fitting(error.field) for error in reasons], pa.string()),
        "detail": pa.array([_fitting(str(error)) for error in reasons], pa.string()),
        DAY: bad["received"].cast(pa.date32()),
    }
    for name in QUARANTINE.names:
        if name not in columns:
            columns[name] = bad[name].cast(QUARANTINE.field(name).type)
    return pa.table({name: columns[name] for name in QUARANTINE.names}, schema=QUARANTINE)


def _fitting(words: str | None) -> str | None:
    """What a column of text can hold of words that a payload may have had a part in."""
    return None if words is None else words[:MOST_DETAIL].encode("utf-8", "replace").decode()
