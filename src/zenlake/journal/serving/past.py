"""Recorded samples as replies, as they were published: of a range of time, and the latest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.api.query import check_waiting, wire_name
from zenlake.api.row_replies import reply_row
from zenlake.errors import LocalError
from zenlake.journal.ingest.rows import timestamp_of
from zenlake.journal.reading.wire_sources import wire_source
from zenlake.journal.schema import DELETE
from zenlake.journal.serving.latest import COLUMNS, LatestValue
from zenlake.node.sample import wire_timestamp
from zenlake.recorded.columns import coded
from zenlake.recorded.encoding import schema_bytes

if TYPE_CHECKING:
    from zenlake.api.query import Query

__all__ = ["COLUMNS", "MOST_BYTES", "MOST_ROWS", "in_time", "ordered", "reply_latest", "reply_rows"]

MOST_ROWS: Final = 1_000_000
MOST_BYTES: Final = 256 << 20
"""How much one answer may be: rows wait in memory until their order is known."""

_ROWS_PER_CHECK: Final = 4096
"""Rows between two looks whether the asker is still there."""

_VALUES_PER_CHECK: Final = 256
"""Latest values between two such looks."""


def in_time(rows: pa.Table) -> Any:
    """Return the places of the rows in the order of time, then key, then offset."""
    hlc = rows["hlc"].to_numpy()
    if len(hlc) < 2 or (hlc[1:] > hlc[:-1]).all():
        return np.arange(len(hlc))
    keys = coded(rows["key"])
    order = np.empty(len(keys.dictionary), np.int64)
    order[pc.sort_indices(keys.dictionary).to_numpy()] = np.arange(len(keys.dictionary))
    codes = order[keys.indices.to_numpy(zero_copy_only=False)]
    offsets = pc.fill_null(rows["offset"], 0).to_numpy()
    return np.lexsort((offsets, codes, hlc))


def ordered(batches: Iterable[pa.RecordBatch], limit: int | None) -> pa.Table | None:
    """Return the rows in the order of time, the first `limit` of them; None if there are none.

    Raises `LocalError` when they are more than one answer may have.
    """
    held: list[pa.Table] = []
    rows = size = 0
    for batch in batches:
        held.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        size += batch.nbytes
        if limit is not None and rows > 4 * limit + 10_000:
            # Only the first ones count; the others need not be held.
            held = [_first(held, limit)]
            rows, size = held[0].num_rows, held[0].nbytes
        if rows > MOST_ROWS or size > MOST_BYTES:
            raise LocalError(
                f"the answer has more than {MOST_ROWS:,} rows or {MOST_BYTES >> 20:,} MB; "
                "add _limit, or ask for fewer keys or less time"
            )
    return _first(held, limit) if held else None


def _first(held: list[pa.Table], limit: int | None) -> pa.Table:
    rows = pa.concat_tables(held)
    places = in_time(rows)
    return rows.take(pa.array(places if limit is None else places[:limit], pa.int64()))


def reply_rows(query: Query, rows: pa.Table, is_over: Callable[[], bool]) -> None:
    """Reply with every row, until the asker has gone."""
    for batch in rows.to_batches(_ROWS_PER_CHECK):
        if is_over():
            return
        check_waiting(query)
        for row in batch.to_pylist():
            key = row["key"]
            reply_row(
                query,
                key,
                wire_name(query, key),
                wire_timestamp(timestamp_of(row["hlc"], row["stamp_id"])),
                None if row["kind"] == DELETE else row["value"],
                row["encoding_id"],
                schema_bytes(row["encoding_schema"]),
                row["attachment"],
                wire_source(row["source_zid"], row["source_eid"], row["source_sn"]),
            )


def reply_latest(
    query: Query,
    found: Iterable[tuple[str, int, bytes, LatestValue]],
    is_over: Callable[[], bool],
) -> None:
    """Reply with the latest values of keys, until the asker has gone."""
    for place, (key, hlc, id, value) in enumerate(found):
        if not place % _VALUES_PER_CHECK:
            if is_over():
                return
            check_waiting(query)
        source = value.source
        reply_row(
            query,
            key,
            wire_name(query, key),
            wire_timestamp(timestamp_of(hlc, id)),
            value.payload,
            value.encoding_id,
            schema_bytes(value.encoding_schema),
            value.attachment,
            None if source is None else wire_source(source.zid, source.eid, value.sn),
        )
