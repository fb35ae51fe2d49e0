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
from typing import Any, Final, TypeVar, final

import numpy as np
import pyarrow as pa

from zenlake.errors import KeyExprError
from zenlake.journal.schema import INSTANT
from zenlake.keys import KeyFormat
from zenlake.lake.decoders import Decoder, Reason, Undecodable, decoder_for, decoder_named
from zenlake.lake.kind_names import ARROW
from zenlake.lake.kinds import column_name, fitted, flattened, joined, kind_of
from zenlake.lake.rows import DAY, QUARANTINE
from zenlake.ros2.names import NO_HASH, parse_key

__all__ = [
    "RESERVED",
    "ROS2_PARTS",
    "Columns",
    "KeyParts",
    "TypedRows",
    "TypedTable",
    "quarantined",
    "rows_of_table",
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
_MOST_KEYS: Final = 100_000


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


class KeyParts:
    """The parts of the keys of one table, each key cut once."""

    def __init__(self, table: TypedTable) -> None:
        """As the format of the table says."""
        self._format = KeyFormat(table.format)
        self._ros2 = table.ros2
        self._known: dict[str, list[str] | None] = {}

    def of(self, key: str) -> list[str] | None:
        """The values of the table's chunks; None if the key is not one of the table's."""
        if key in self._known:
            return self._known[key]
        if len(self._known) >= _MOST_KEYS:
            self._known.clear()
        self._known[key] = parts = self._cut(key)
        return parts

    def _cut(self, key: str) -> list[str] | None:
        before: list[str] = []
        if self._ros2:
            data = parse_key(key)
            if data is None or data.buffer not in ("", "cpu"):
                return None
            before = [str(data.domain), data.topic, data.type, data.hash or NO_HASH]
            key = data.topic.strip("/")
        try:
            parts = self._format.parse(key)
        except KeyExprError:
            return None
        return [*before, *(parts[name] for name in self._format.names)]


@dataclass(frozen=True, slots=True)
class Columns:
    """The payload columns that a table has already."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    """Those that may not become wider: the configuration says so, or their values would change."""


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


def settled(
    known: Columns, proposals: Sequence[Mapping[str, str]]
) -> tuple[dict[str, str], list[int]]:
    """The columns that all tasks shall use, and which tasks must decode again with them.

    The first proposal of a column decides, except that doubles win over whole numbers, also over
    those that the table has already. Names are compared without regard to case, as readers of
    tables do.
    """
    agreed = {name.lower(): (name, kind) for name, kind in known.kinds.items()}
    widened: set[str] = set()
    for proposal in proposals:
        for name, kind in proposal.items():
            had = agreed.get(name.lower())
            if had is None:
                if len(agreed) < MOST_COLUMNS:
                    agreed[name.lower()] = (name, kind)
            elif had[0] not in known.fixed:
                both = joined(had[1], kind) or had[1]
                if had[0] in known.kinds and both != known.kinds[had[0]]:
                    widened.add(had[0])
                agreed[name.lower()] = (had[0], both)
    again = [
        place
        for place, proposal in enumerate(proposals)
        if widened - proposal.keys()
        or any(agreed.get(name.lower()) != (name, kind) for name, kind in proposal.items())
    ]
    return dict(agreed.values()), again


@final
class TypedRows:
    """Decodes the samples of one range for one table."""

    def __init__(self, table: TypedTable, known: Columns) -> None:
        """`known`: the payload columns that the table has already."""
        self.table = table
        self.new: dict[str, str] = {}
        self._fixed = known.fixed
        self._key_parts = KeyParts(table)
        self._chunks = table.chunks
        self._taken = {name.lower() for name in (*RESERVED, *self._chunks)}
        self._kinds = dict(known.kinds)
        self._names = {name.lower(): name for name in known.kinds}
        self._rows: list[dict[str, object]] = []
        self._parents: list[list[str]] = []
        self._facts: list[pa.Table] = []
        self._refused: list[pa.Table] = []
        self._made: pa.Table | None = None
        self.refused = 0

    def add(self, rows: pa.Table) -> None:
        """Decode rows of `samples`."""
        self._made = None
        mine, parents = rows_of_table(rows, self._key_parts)
        if not parents:
            return
        kinds = mine["kind"].to_pylist()
        values = mine["value"].to_pylist()
        encodings = mine["encoding"].to_pylist()
        kept: list[int] = []
        refused: list[int] = []
        reasons: list[Undecodable] = []
        for n, parts in enumerate(parents):
            try:
                row = {} if kinds[n] == "delete" else self._decoded(values[n], encodings[n])
            except Undecodable as error:
                refused.append(n)
                reasons.append(error)
                continue
            kept.append(n)
            self._rows.append(row)
            self._parents.append(parts)
        if kept:
            self._facts.append(mine.take(pa.array(kept)))
        if refused:
            self.refused += len(refused)
            bad = mine.take(pa.array(refused))
            self._refused.append(quarantined(self.table.name, bad, reasons))

    def rows(self) -> pa.Table:
        """The rows that fit, with all columns of the table that they have values for."""
        if self._made is None:
            self._made = self._columns()
        return self._made

    def _columns(self) -> pa.Table:
        facts = pa.concat_tables(self._facts) if self._facts else None
        payloads = self._payloads()
        if payloads is None:
            facts = self._left(facts)
            payloads = self._payloads()
            assert payloads is not None  # every value was taken alone
        columns: dict[str, Any] = {}
        schema = typed_schema(self.table, {})
        for n, chunk in enumerate(self._chunks):
            columns[chunk] = pa.array([part[n] for part in self._parents], pa.string())
        for name in schema.names:
            if name in columns or name == DAY:
                continue
            typ = schema.field(name).type
            columns[name] = pa.nulls(0, typ) if facts is None else facts[name].cast(typ)
        columns |= payloads
        received = columns["received"]
        columns[DAY] = received.cast(pa.date32())
        full_schema = typed_schema(self.table, self._kinds)
        return pa.table({name: columns[name] for name in full_schema.names}, schema=full_schema)

    def _payloads(self) -> dict[str, Any] | None:
        """The columns of the payloads; None if a value is not taken, whatever the reason."""
        columns: dict[str, Any] = {}
        for name, kind in self._kinds.items():
            try:
                values = [fitted(row.get(name), kind) for row in self._rows]
                columns[name] = pa.array(values, ARROW[kind], size=len(values))
            except Exception:  # a payload must not stop more than its own row
                return None
        return columns

    def _left(self, facts: pa.Table) -> pa.Table:
        """Put rows into quarantine that some column does not take; gives the facts of the rest."""
        kept: list[int] = []
        refused: list[int] = []
        reasons: list[Undecodable] = []
        for n, row in enumerate(self._rows):
            error = self._taken_by_columns(row)
            if error is None:
                kept.append(n)
            else:
                refused.append(n)
                reasons.append(error)
        self.refused += len(refused)
        bad = facts.take(pa.array(refused))
        self._refused.append(quarantined(self.table.name, bad, reasons))
        self._rows = [self._rows[n] for n in kept]
        self._parents = [self._parents[n] for n in kept]
        left = facts.take(pa.array(kept, pa.int64()))
        self._facts = [left]
        return left

    def _taken_by_columns(self, row: Mapping[str, object]) -> Undecodable | None:
        for name, value in row.items():
            kind = self._kinds[name]
            try:
                pa.array([fitted(value, kind)], ARROW[kind])
            except Undecodable as error:
                error.field = name
                return error
            except Exception as error:
                words = f"{kind} does not take it: {type(error).__name__}: {error}"
                return Undecodable(words, Reason.COLUMN, name)
        return None

    def quarantine(self) -> pa.Table:
        """The rows that did not, with the reasons."""
        self.rows()
        if not self._refused:
            return QUARANTINE.empty_table()
        return pa.concat_tables(self._refused)

    # --- one sample -----------------------------------------------------------------------------

    def _decoded(self, payload: bytes, encoding: str) -> dict[str, object]:
        decoder, schema = self._decoder(encoding)
        try:
            fields = decoder.decode(payload, schema, self.table.type)
            return self._placed(self.table.chosen(flattened(fields)))
        except Undecodable:
            raise
        except Exception as error:
            raise Undecodable(
                f"{type(decoder).__name__} failed: {type(error).__name__}: {error}", Reason.DECODER
            ) from error

    def _decoder(self, encoding: str) -> tuple[Decoder, str]:
        if self.table.encoding is not None:
            encoding = self.table.encoding
        name, _, schema = encoding.partition(";")
        if self.table.decoder is not None:
            return decoder_named(self.table.decoder), schema
        decoder = decoder_for(name)
        if decoder is None:
            raise Undecodable(f"nobody reads '{name}'; name a decoder for it", Reason.ENCODING)
        return decoder, schema

    def _placed(self, fields: Mapping[str, object]) -> dict[str, object]:
        """The values by column; columns that are new are remembered when all the row fits."""
        row: dict[str, object] = {}
        widened: dict[str, str] = {}
        for name, value in fields.items():
            if name.lower() in self._taken:
                name = f"payload_{name}"
            column = self._names.get(name.lower(), name)
            if column in row:
                raise Undecodable(f"two fields come to the column '{column}'", Reason.NAME, name)
            try:
                kind = kind_of(value)
                if kind is None and not (isinstance(value, list) and column in self._kinds):
                    continue
                had = self._kinds.get(column)
                if had is None:
                    assert kind is not None
                    self._demand_room(column, widened)
                    widened[column] = kind
                elif (wider := self._wider(column, had, kind)) is not None:
                    widened[column] = wider
                else:
                    value = fitted(value, had)
            except Undecodable as error:
                error.field = name
                raise
            row[column] = value
        for column, kind in widened.items():
            self.new[column] = self._kinds[column] = kind
            self._names[column.lower()] = column
        return row

    def _wider(self, column: str, had: str, kind: str | None) -> str | None:
        """The kind that a column gets for a value that it does not hold, if it may."""
        both = None if kind is None or column in self._fixed else joined(had, kind)
        if both is None or both == had:
            return None
        try:
            # Those before were whole numbers; they must all be doubles too.
            for row in self._rows:
                fitted(row.get(column), both)
        except Undecodable:
            self._fixed |= {column}
            return None
        return both

    def _demand_room(self, column: str, widened: Mapping[str, str]) -> None:
        if len(self._kinds) + len(widened) >= MOST_COLUMNS:
            raise Undecodable(f"it would be column {MOST_COLUMNS + 1}", Reason.COLUMNS)
        if any(column.lower() == other.lower() for other in widened):
            raise Undecodable(f"fields differ in case alone: '{column}'", Reason.NAME)


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


def rows_of_table(rows: pa.Table, parts: KeyParts) -> tuple[pa.Table, list[list[str]]]:
    """The rows of `samples` whose keys are a table's, and the parts of each key."""
    keys = _coded(rows["key"])
    cut = [parts.of(key) for key in keys.dictionary.to_pylist()]
    ours = np.array([part is not None for part in cut], bool)
    if not ours.any():
        return rows.slice(0, 0), []
    codes = keys.indices.to_numpy(zero_copy_only=False)
    places = np.nonzero(ours[codes])[0]
    if not len(places):
        return rows.slice(0, 0), []
    key_parts = [part for place in places.tolist() if (part := cut[codes[place]]) is not None]
    return rows.take(pa.array(places)), key_parts


def _fitting(words: str | None) -> str | None:
    """What a column of text can hold of words that a payload may have had a part in."""
    return None if words is None else words[:MOST_DETAIL].encode("utf-8", "replace").decode()


def _coded(keys: pa.ChunkedArray) -> pa.DictionaryArray:
    """Keys as one array of places in a dictionary."""
    one = keys.unify_dictionaries() if pa.types.is_dictionary(keys.type) else keys
    one = one.combine_chunks()
    if isinstance(one, pa.ChunkedArray):  # no rows, or too many bytes for one chunk
        one = pa.concat_arrays(
            [chunk.dictionary_encode() for chunk in one.chunks]
            or [pa.array([], pa.string()).dictionary_encode()]
        )
    return one if isinstance(one, pa.DictionaryArray) else one.dictionary_encode()
