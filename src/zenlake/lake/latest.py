"""The newest sample of each key, merged batch by batch.

A state is a table of rows, at most one for each key: the newest put, or the deletion that came
after it (a tombstone). A deletion with wildcards is a row under its expression, and kills every
put of its keys that is older. Merging is a function of the set of rows alone: whatever the order
and however often rows are merged, the result is the same. So late data cannot bring back what was
deleted since, and a batch that is merged twice changes nothing.

Newer means: greater `hlc`, then greater id of the clock, then greater offset.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.keys.matching import intersects, is_wild
from zenlake.lake.rows import LATEST, id_bytes

__all__ = [
    "DEAD",
    "MERGED",
    "as_state",
    "bucket_of",
    "buckets_of",
    "dead",
    "live",
    "merged",
    "remembered",
]

MERGED: Final = LATEST.remove(LATEST.get_field_index("bucket"))
"""The columns of a state."""

DEAD: Final = pa.schema(
    [
        ("key", pa.string()),
        ("hlc", pa.int64()),
        ("stamp_id", pa.string()),
        ("offset", pa.int64()),
        ("received", MERGED.field("received").type),
    ]
)
"""What is remembered of a deletion."""

MOST_DEAD: Final = 100_000
"""Tombstones a bucket remembers; the oldest are forgotten first."""


def merged(tables: list[pa.Table]) -> pa.Table:
    """One state out of rows and states, in the columns of `MERGED`.

    A put with wildcards names no key, and has no place here.
    """
    rows = pa.concat_tables([_plain(table) for table in tables])
    starred = pc.match_substring(rows["key"], "*")
    any_starred = bool(pc.any(starred).as_py())
    if any_starred:
        keys, kinds = rows["key"].to_pylist(), rows["kind"].to_pylist()
        keep = [kinds[n] == "delete" or not is_wild(key) for n, key in enumerate(keys)]
        rows = rows.filter(pa.array(keep, pa.bool_()))
    if rows.num_rows:
        rows = rows.take(pa.array(_newest(rows)))
    return _killed(rows) if any_starred else rows


def live(state: pa.Table) -> pa.Table:
    """The rows that have a value."""
    return state.filter(pc.equal(state["kind"], "put"))


def dead(state: pa.Table) -> pa.Table:
    """The deletions, in the columns of `DEAD`."""
    gone = state.filter(pc.equal(state["kind"], "delete"))
    return gone.select(DEAD.names)


def remembered(deletions: pa.Table, since_us: int) -> pa.Table:
    """The deletions received since a moment, the newest ones if there are too many."""
    since = pa.scalar(since_us, pa.int64()).cast(DEAD.field("received").type)
    kept = deletions.filter(pc.greater_equal(deletions["received"], since))
    if kept.num_rows > MOST_DEAD:
        kept = kept.take(pc.sort_indices(kept, [("hlc", "descending")]).slice(0, MOST_DEAD))
    return kept


def as_state(deletions: pa.Table) -> pa.Table:
    """Remembered deletions as rows of a state."""
    columns: dict[str, Any] = {name: deletions[name] for name in DEAD.names}
    columns["kind"] = pa.array(["delete"] * deletions.num_rows, pa.string())
    for name in MERGED.names:
        if name not in columns:
            columns[name] = pa.nulls(deletions.num_rows, MERGED.field(name).type)
    return pa.table({name: columns[name] for name in MERGED.names}, schema=MERGED)


def bucket_of(key: str, buckets: int) -> int:
    """Where a key belongs."""
    # The journal's partitions take the low bits of the same sum; these are others.
    return (zlib.crc32(key.encode()) >> 8) % buckets


def buckets_of(state: pa.Table, buckets: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The bucket of each row; -1 for deletions with wildcards, which belong to all."""
    return np.array(
        [-1 if is_wild(key) else bucket_of(key, buckets) for key in state["key"].to_pylist()],
        np.int32,
    )


# --- which rows stay ----------------------------------------------------------------------------


def _plain(table: pa.Table) -> pa.Table:
    return table.select(MERGED.names).cast(MERGED)


def _newest(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of the newest row of each key: the greatest time first, then the ties."""
    keys = rows["key"].combine_chunks().dictionary_encode()
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.unify_dictionaries().combine_chunks()
    codes = keys.indices.to_numpy(zero_copy_only=False)
    hlc = rows["hlc"].to_numpy()
    best = np.full(len(keys.dictionary), np.iinfo(np.int64).min)
    np.maximum.at(best, codes, hlc)
    candidates = np.nonzero(hlc == best[codes])[0]
    held = codes[candidates]
    if len(candidates) == len(keys.dictionary):
        return candidates
    ties = rows.select(["stamp_id", "offset"]).take(pa.array(candidates))
    ids = ties["stamp_id"].to_pylist()
    offsets = ties["offset"].to_pylist()
    newest: dict[int, int] = {}
    for n, code in enumerate(held.tolist()):
        had = newest.get(code)
        if had is None or _rank(ids[had], offsets[had]) <= _rank(ids[n], offsets[n]):
            newest[code] = n
    return candidates[sorted(newest.values())]


def _rank(id: str | None, offset: int | None) -> tuple[bytes, int]:
    return id_bytes(id), -1 if offset is None else offset


def _killed(rows: pa.Table) -> pa.Table:
    """The rows without the puts that a deletion with wildcards came after."""
    keys, kinds = rows["key"].to_pylist(), rows["kind"].to_pylist()
    moments = [
        (hlc, id_bytes(id))
        for hlc, id in zip(rows["hlc"].to_pylist(), rows["stamp_id"].to_pylist(), strict=True)
    ]
    wild = [n for n, key in enumerate(keys) if "*" in key and is_wild(key)]
    keep = [
        kinds[n] != "put"
        or not any(moments[n] < moments[w] and intersects(keys[w], key) for w in wild)
        for n, key in enumerate(keys)
    ]
    return rows.filter(pa.array(keep, pa.bool_()))
