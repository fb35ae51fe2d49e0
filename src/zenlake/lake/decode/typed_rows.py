"""Samples to rows of a typed table: payloads that describe themselves, one by one or in columns.

JSON is read in columns wherever that says the same (`json_columns`). Everything else is decoded
one by one, and what does not fit goes to quarantine with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.decode.formats.implied import Implied
from zenlake.lake.decode.formats.json_text import Json
from zenlake.lake.decode.json_columns import JsonColumns, as_doubles, kind_of_column
from zenlake.lake.decode.key_columns import KeyColumns, KeyParts, RowPositions, rows_of_table
from zenlake.lake.decode.key_router import RoutedKeys
from zenlake.lake.decode.registry import decoder_for, decoder_named
from zenlake.lake.model.column_types import ARROW
from zenlake.lake.model.decoder import Decoder, Reason, Undecodable
from zenlake.lake.model.sample_rows import DAY, QUARANTINE
from zenlake.lake.model.typed_table import (
    MOST_COLUMNS,
    RESERVED,
    Columns,
    TypedTable,
    as_coded,
    coded_schema,
    quarantined,
    typed_schema,
)
from zenlake.lake.model.value_types import fitted, flattened, joined, kind_of, name_key
from zenlake.recorded.encoding import without_custom_id

__all__ = ["TypedRows", "is_readable"]

WORTH: Final = 64
"""Payloads of JSON in a row that are worth reading in columns."""


@dataclass(slots=True)
class _OneByOne:
    """Rows whose payloads were decoded one by one."""

    facts: pa.Table
    keys: KeyColumns
    rows: list[dict[str, object]]

    def fit(self, column: str, kind: str) -> None:
        """Raise `Undecodable` if a value of a column is none of a kind."""
        for row in self.rows:
            fitted(row.get(column), kind)

    def column(self, name: str, kind: str) -> pa.Array:
        values = [fitted(row.get(name), kind) for row in self.rows]
        return pa.array(values, ARROW[kind], size=len(values))


@dataclass(slots=True)
class _InColumns:
    """Rows whose payloads were read in columns, which fit."""

    facts: pa.Table
    keys: KeyColumns
    columns: dict[str, pa.Array]

    def fit(self, column: str, kind: str) -> None:
        """Raise `Undecodable` if a value of a column is none of a kind."""
        values = self.columns.get(column)
        wanted = values is not None and kind.endswith(("double", "double>"))
        if wanted and as_doubles(values) is None:
            raise Undecodable(f"a number in '{column}' is no double", Reason.RANGE, column)

    def column(self, name: str, kind: str) -> pa.Array:
        values = self.columns.get(name)
        if values is None:
            return pa.nulls(self.facts.num_rows, ARROW[kind])
        return values if values.type == ARROW[kind] else values.cast(ARROW[kind])


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
        self._taken = {name_key(name) for name in (*RESERVED, *self._chunks)}
        self._kinds = dict(known.kinds)
        self._names = {name_key(name): name for name in known.kinds}
        self._json = JsonColumns()
        self._parts: list[_OneByOne | _InColumns] = []
        self._refused: list[pa.Table] = []
        self._made: pa.Table | None = None
        self.refused = 0

    def add(self, rows: pa.Table, routed: RoutedKeys | None = None) -> None:
        """Decode rows of `samples`; `routed`: their keys, looked up for all tables at once."""
        self._made = None
        mine, keys = rows_of_table(rows, self._key_parts, routed)
        if not len(keys):
            return
        start = 0
        for stop, is_json in _stretches(self._are_json(mine)):
            here = mine.slice(start, stop - start)
            these = keys.take(np.arange(start, stop))
            if is_json and stop - start >= WORTH:
                self._add_json(here, these)
            else:
                self._add_one_by_one(here, these)
            start = stop

    def _are_json(self, mine: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows are puts of JSON, or may be by how they begin."""
        if self.table.decoder is not None:
            return np.zeros(mine.num_rows, np.bool_)
        puts = pc.not_equal(mine["kind"], "delete").to_numpy()
        if self.table.encoding is not None:
            if _is_implied(self.table.encoding):
                return np.asarray(puts & _begin_as_objects(mine["value"]))
            return np.asarray(puts & _is_json(self.table.encoding))
        encodings = mine["encoding"].combine_chunks()
        if isinstance(encodings, pa.ChunkedArray) or encodings.null_count:
            return np.zeros(mine.num_rows, np.bool_)
        coded = encodings
        if not isinstance(encodings, pa.DictionaryArray):
            coded = encodings.dictionary_encode()
        names = coded.dictionary.to_pylist()
        codes = coded.indices.to_numpy(zero_copy_only=False)
        found = np.array([_is_json(name) for name in names], np.bool_)[codes]
        implied = np.array([_is_implied(name) for name in names], np.bool_)
        if implied.any():
            found |= implied[codes] & _begin_as_objects(mine["value"])
        return np.asarray(puts & found)

    def _add_json(self, mine: pa.Table, keys: KeyColumns) -> None:
        payloads = mine["value"].combine_chunks()
        if isinstance(payloads, pa.ChunkedArray):
            payloads = pa.concat_arrays(payloads.chunks)

        def accept(start: int, stop: int, columns: dict[str, pa.Array] | None) -> bool:
            here, these = mine.slice(start, stop - start), keys.take(np.arange(start, stop))
            if columns is None:
                self._add_one_by_one(here, these)
                return True
            placed = self._placed_columns(columns)
            if placed is None:
                return False
            self._parts.append(_InColumns(here, these, placed))
            return True

        self._json.read(payloads, accept)

    def _add_one_by_one(self, mine: pa.Table, keys: KeyColumns) -> None:
        kinds = mine["kind"].to_pylist()
        values = mine["value"].to_pylist()
        encodings = mine["encoding"].to_pylist()
        part = _OneByOne(mine, keys, [])
        self._parts.append(part)
        kept: list[int] = []
        refused: dict[int, Undecodable] = {}
        for n in range(mine.num_rows):
            try:
                row = {} if kinds[n] == "delete" else self._decoded(values[n], encodings[n])
            except Undecodable as error:
                refused[n] = error
                continue
            kept.append(n)
            part.rows.append(row)
        self._refuse(part, np.array(kept, np.int64), refused)

    def _refuse(
        self, part: _OneByOne, kept: RowPositions, refused: Mapping[int, Undecodable]
    ) -> None:
        """Put rows of a part into quarantine; the others stay."""
        if not refused:
            return
        self.refused += len(refused)
        bad = part.facts.take(pa.array(list(refused), pa.int64()))
        self._refused.append(quarantined(self.table.name, bad, list(refused.values())))
        part.facts = part.facts.take(pa.array(kept))
        part.keys = part.keys.take(kept)

    def rows(self) -> pa.Table:
        """The rows that fit, with all columns of the table that they have values for."""
        if self._made is None:
            schema = coded_schema(typed_schema(self.table, self._kinds), self.table)
            made = [self._table(schema, part) for part in self._parts]
            rows = pa.concat_tables(made) if made else schema.empty_table()
            self._made = rows.unify_dictionaries().combine_chunks()
        return self._made

    def _table(self, schema: pa.Schema, part: _OneByOne | _InColumns) -> pa.Table:
        payloads = self._payloads(part)
        if payloads is None:
            assert isinstance(part, _OneByOne)  # what is in columns was compared before
            self._leave(part)
            payloads = self._payloads(part)
            assert payloads is not None  # every value was taken alone
        columns: dict[str, Any] = {
            chunk: part.keys.column(n) for n, chunk in enumerate(self._chunks)
        }
        columns |= payloads
        columns[DAY] = part.facts["received"].cast(pa.date32())
        for field in schema:
            if field.name not in columns:
                columns[field.name] = as_coded(part.facts[field.name], field.type)
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def _payloads(self, part: _OneByOne | _InColumns) -> dict[str, Any] | None:
        """The columns of the payloads; None if a value is not taken, whatever the reason."""
        try:
            return {name: part.column(name, kind) for name, kind in self._kinds.items()}
        except Exception:  # a payload must not stop more than its own row
            return None

    def _leave(self, part: _OneByOne) -> None:
        """Put rows into quarantine that some column does not take."""
        kept: list[int] = []
        refused: dict[int, Undecodable] = {}
        for n, row in enumerate(part.rows):
            error = self._taken_by_columns(row)
            if error is None:
                kept.append(n)
            else:
                refused[n] = error
        part.rows = [part.rows[n] for n in kept]
        self._refuse(part, np.array(kept, np.int64), refused)

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
        name, _, schema = without_custom_id(encoding).partition(";")
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
            if name_key(name) in self._taken:
                name = f"payload_{name}"
            column = self._names.get(name_key(name), name)
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
            self._names[name_key(column)] = column
        return row

    def _wider(self, column: str, had: str, kind: str | None) -> str | None:
        """The kind that a column gets for a value that it does not hold, if it may."""
        both = None if kind is None or column in self._fixed else joined(had, kind)
        if both is None or both == had:
            return None
        try:
            # Those before were whole numbers; they must all be doubles too.
            for part in self._parts:
                part.fit(column, both)
        except Undecodable:
            self._fixed |= {column}
            return None
        return both

    def _demand_room(self, column: str, widened: Mapping[str, str]) -> None:
        if len(self._kinds) + len(widened) >= MOST_COLUMNS:
            raise Undecodable(f"it would be column {MOST_COLUMNS + 1}", Reason.COLUMNS)
        if any(name_key(column) == name_key(other) for other in widened):
            raise Undecodable(f"fields differ in case alone: '{column}'", Reason.NAME)

    # --- many samples ---------------------------------------------------------------------------

    def _placed_columns(self, fields: Mapping[str, pa.Array]) -> dict[str, pa.Array] | None:
        """The values by column, as `_placed` would have them; None where it would refuse a row."""
        placed: dict[str, pa.Array] = {}
        widened: dict[str, str] = {}
        try:
            chosen = self.table.chosen(fields)
        except Undecodable:
            return None
        for name, values in chosen.items():
            if pa.types.is_null(values.type):
                continue
            if name_key(name) in self._taken:
                name = f"payload_{name}"
            column = self._names.get(name_key(name), name)
            if column in placed:
                return None
            kind, had = kind_of_column(values), self._kinds.get(column)
            if had is None:
                # Lists without items make no column, so it matters which list comes first.
                if pa.types.is_list(values.type):
                    return None
                try:
                    self._demand_room(column, widened)
                except Undecodable:
                    return None
                widened[column] = kind
            elif had != kind:
                if (wider := self._wider(column, had, kind)) is not None:
                    widened[column] = wider
                elif joined(had, kind) != had:
                    return None
                doubles = as_doubles(values)
                if doubles is None:
                    return None
                values = doubles
            placed[column] = values
        for column, kind in widened.items():
            self.new[column] = self._kinds[column] = kind
            self._names[name_key(column)] = column
        return placed


def is_readable(payload: bytes, encoding: str) -> bool:
    """Return True if a payload has fields, as far as its encoding alone says what it is."""
    name, _, schema = without_custom_id(encoding).partition(";")
    try:
        decoder = decoder_for(name)
        if decoder is None:
            return False
        fields = decoder.decode(payload, schema, None)
        return bool(fields) and set(fields) != {"bytes"}
    except Exception:  # a decoder may raise whatever it likes
        return False


def _is_json(encoding: str) -> bool:
    return without_custom_id(encoding).partition(";")[0] in Json.encodings


def _is_implied(encoding: str) -> bool:
    return without_custom_id(encoding).partition(";")[0] in Implied.encodings


def _begin_as_objects(payloads: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which payloads begin as JSON objects do; what they are is seen when they are read."""
    begun = pc.equal(pc.binary_slice(payloads, 0, 1), pa.scalar(b"{", payloads.type))
    return np.asarray(pc.fill_null(begun, False))


def _stretches(flags: np.ndarray[Any, np.dtype[np.bool_]]) -> list[tuple[int, bool]]:
    """Where each stretch of equal flags ends, and what they are."""
    ends = np.append(np.flatnonzero(np.diff(flags)) + 1, len(flags))
    return [(int(end), bool(flags[end - 1])) for end in ends]
