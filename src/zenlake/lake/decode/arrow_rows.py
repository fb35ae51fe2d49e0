"""Typed tables whose decoder reads many payloads at once: Arrow columns from end to end.

The columns come from the decoder with their types, structs and lists among them, so no value of a
payload becomes a Python object on the way. Columns may become wider as the table lives: a larger
integer, a double for a float, a struct with more fields. Any other change of a type is one of
meaning, and its samples go to quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from zenlake.lake.decode.key_columns import KeyColumns, KeyParts, rows_of_table
from zenlake.lake.decode.key_router import RoutedKeys
from zenlake.lake.decode.registry import batch_decoder_named, decoder_for
from zenlake.lake.decode.typed_rows import TypedRows
from zenlake.lake.model.column_types import ARROW, kind_name
from zenlake.lake.model.decoder import BatchDecoder, DecodedRows, PayloadBatch, Reason, Undecodable
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
from zenlake.lake.model.value_types import column_name, name_key
from zenlake.lake.model.wider_kinds import as_wider, wider
from zenlake.recorded.encoding import without_custom_id

__all__ = ["ArrowRows", "rows_for"]

FACTS: Final = [name for name in RESERVED if name != DAY]
"""What the rows of a table have from their samples."""


def rows_for(table: TypedTable, known: Columns) -> TypedRows | ArrowRows:
    """What decodes samples for a table."""
    decoder = _batches(table)
    return TypedRows(table, known) if decoder is None else ArrowRows(table, known, decoder)


def _batches(table: TypedTable) -> BatchDecoder | None:
    if table.decoder is not None:
        return batch_decoder_named(table.decoder)
    if table.encoding is None:
        return None
    decoder: object = decoder_for(table.encoding.partition(";")[0])
    return decoder if isinstance(decoder, BatchDecoder) else None


@final
class ArrowRows:
    """Decodes the samples of one range for one table, many at once."""

    def __init__(self, table: TypedTable, known: Columns, decoder: BatchDecoder) -> None:
        """`known`: the payload columns that the table has already."""
        self.table = table
        self.new: dict[str, str] = {}
        self.refused = 0
        self._decoder = decoder
        self._key_parts = KeyParts(table)
        self._fixed = known.fixed
        self._kinds = dict(known.kinds)
        self._names = {name_key(name): name for name in known.kinds}
        self._taken = {name_key(name) for name in (*RESERVED, *table.chunks)}
        self._parts: list[tuple[pa.Table, KeyColumns, dict[str, pa.Array]]] = []
        self._refused: list[pa.Table] = []

    def add(self, rows: pa.Table, routed: RoutedKeys | None = None) -> None:
        """Decode rows of `samples`; `routed`: their keys, looked up for all tables at once."""
        mine, parents = rows_of_table(rows, self._key_parts, routed)
        if not len(parents):
            return
        kinds = mine["kind"].to_pylist()
        puts = [n for n, kind in enumerate(kinds) if kind != "delete"]
        if len(puts) < len(kinds):
            deleted = [n for n, kind in enumerate(kinds) if kind == "delete"]
            self._keep(mine, parents, np.array(deleted, np.int64), {})
            mine = mine.take(pa.array(puts, pa.int64()))
            parents = parents.take(np.array(puts, np.int64))
        if not puts:
            return
        encodings = [without_custom_id(text) for text in mine["encoding"].to_pylist()]
        if self.table.encoding is not None:
            encodings = [self.table.encoding] * len(encodings)
        batch = PayloadBatch(
            keys=mine["key"].to_pylist(),
            payloads=mine["value"].to_pylist(),
            encodings=encodings,
            attachments=mine["attachment"].to_pylist(),
            type=self.table.type,
        )
        refused: dict[int, Undecodable] = {}
        for decoded in self._decoded(batch):
            refused.update(decoded.refused)
            try:
                columns = self._placed(self.table.chosen(decoded.columns))
            except Undecodable as error:
                refused.update(self._keep_one_by_one(mine, parents, decoded, error))
                continue
            self._keep(mine, parents, decoded.places, columns)
        if refused:
            at = sorted(refused)
            self.refused += len(at)
            bad = mine.take(pa.array(at, pa.int64()))
            self._refused.append(quarantined(self.table.name, bad, [refused[n] for n in at]))

    def _keep_one_by_one(
        self, mine: pa.Table, parents: KeyColumns, decoded: DecodedRows, error: Undecodable
    ) -> dict[int, Undecodable]:
        """Keep the samples of some rows that fit; return why each other one does not."""
        samples = np.unique(decoded.places).tolist()
        if error.reason is not Reason.RANGE or len(samples) == 1:
            return dict.fromkeys(samples, error)  # it is about all of them
        refused: dict[int, Undecodable] = {}
        for n in samples:
            own = np.flatnonzero(decoded.places == n)
            columns = {name: one.take(pa.array(own)) for name, one in decoded.columns.items()}
            try:
                placed = self._placed(self.table.chosen(columns))
            except Undecodable as other:
                refused[n] = other
                continue
            self._keep(mine, parents, decoded.places[own], placed)
        return refused

    def rows(self) -> pa.Table:
        """The rows that fit, with all columns of the table that they have values for."""
        schema = coded_schema(typed_schema(self.table, self._kinds), self.table)
        made = [self._table(schema, *part) for part in self._parts]
        return pa.concat_tables(made).unify_dictionaries() if made else schema.empty_table()

    def quarantine(self) -> pa.Table:
        """The rows that did not, with the reasons."""
        return pa.concat_tables(self._refused) if self._refused else QUARANTINE.empty_table()

    def _decoded(self, batch: PayloadBatch) -> list[DecodedRows]:
        try:
            return list(self._decoder.decode_batch(batch))
        except Exception:  # one sample after the other, so that it costs none but its own row
            return [one for n in range(len(batch.keys)) for one in self._alone(batch, n)]

    def _alone(self, batch: PayloadBatch, n: int) -> list[DecodedRows]:
        one = slice(n, n + 1)
        single = PayloadBatch(
            batch.keys[one],
            batch.payloads[one],
            batch.encodings[one],
            batch.attachments[one],
            batch.type,
        )
        try:
            parts = list(self._decoder.decode_batch(single))
            return [
                DecodedRows(
                    part.columns,
                    part.places + n,
                    {place + n: e for place, e in part.refused.items()},
                )
                for part in parts
            ]
        except Exception as error:
            name = type(self._decoder).__name__
            words = f"{name} failed: {type(error).__name__}: {error}"
            why = Undecodable(words, Reason.DECODER)
            return [DecodedRows({}, np.empty(0, np.int64), {n: why})]

    def _placed(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """The columns by the names that they have in the table; new ones are remembered."""
        placed: dict[str, pa.Array] = {}
        changed: dict[str, str] = {}
        used: set[str] = set()
        for name, values in columns.items():
            if pa.types.is_null(values.type):
                continue
            field = name
            if name_key(name) not in self._names:
                name = column_name(name)
            if name_key(name) in self._taken:
                name = f"payload_{name}"
            name = self._names.get(name_key(name), name)
            if name_key(name) in used:
                raise Undecodable(f"two fields come to the column '{name}'", Reason.NAME, field)
            used.add(name_key(name))
            kind = kind_name(values.type)
            if kind is None:
                raise Undecodable(f"no column holds {values.type}", Reason.TYPE, name)
            try:
                values = as_wider(values, ARROW[kind])
            except pa.ArrowException as error:
                raise Undecodable(
                    f"a value {kind} does not hold: {error}", Reason.RANGE, name
                ) from error
            had = self._kinds.get(name)
            if had is None:
                if len(self._kinds) + len(changed) >= MOST_COLUMNS:
                    raise Undecodable(f"it would be column {MOST_COLUMNS + 1}", Reason.COLUMNS)
                changed[name] = kind
            elif had != kind:
                both = wider(ARROW[had], ARROW[kind])
                both_kind = None if both is None else kind_name(both)
                if both_kind is None or (both_kind != had and name in self._fixed):
                    raise Undecodable(f"{kind} where there was {had}", Reason.TYPE, name)
                if both_kind != had:
                    changed[name] = both_kind
            placed[name] = values
        for name, kind in changed.items():
            self.new[name] = self._kinds[name] = kind
            self._names[name_key(name)] = name
        return placed

    def _keep(
        self,
        mine: pa.Table,
        parents: KeyColumns,
        places: np.ndarray[Any, np.dtype[np.int64]],
        columns: dict[str, pa.Array],
    ) -> None:
        if len(places):
            facts = mine.select(FACTS).take(pa.array(places))
            self._parts.append((facts, parents.take(places), columns))

    def _table(
        self,
        schema: pa.Schema,
        facts: pa.Table,
        parents: KeyColumns,
        columns: Mapping[str, pa.Array],
    ) -> pa.Table:
        made: dict[str, Any] = {}
        for n, chunk in enumerate(self.table.chunks):
            made[chunk] = parents.column(n)
        for field in schema:
            if field.name in made:
                continue
            if field.name == DAY:
                made[DAY] = facts["received"].cast(pa.date32())
            elif field.name in RESERVED:
                made[field.name] = as_coded(facts[field.name], field.type)
            elif field.name in columns:
                made[field.name] = as_wider(columns[field.name], field.type)
            else:
                made[field.name] = pa.nulls(facts.num_rows, field.type)
        return pa.table([made[name] for name in schema.names], schema=schema)
