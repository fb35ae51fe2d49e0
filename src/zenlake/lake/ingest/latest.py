"""The newest sample of each key, merged batch by batch, by the rule of `zenlake.newest`.

A state is a table of rows:

    of a key            the value it has, or the deletion that took it away (a tombstone)
    of an expression    the newest put and the newest deletion of it, because keys that they meant
                        may be heard of later

The value of a key may come from a put with wildcards; then `base_hlc` and `base_id` tell when the
key itself was put, since a deletion between the two still means this key. Merging is a function of
the set of rows alone: whatever the order and however often rows are merged, the result is the same.
So late data cannot bring back what was deleted since, and a batch that is merged twice changes
nothing.

Newer means: greater `hlc`, then greater id of the clock, then greater offset.

In a table only rows with a value are shown (`live`); the rest is its `memory`, in the footers of
its files.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.clock.zid import id_text
from zenlake.keys.matching import is_wild
from zenlake.keys.tree import KeyTree
from zenlake.lake.model.sample_rows import LATEST
from zenlake.recorded.columns import coded, id_bytes
from zenlake.recorded.newest_rows import newest_rows

__all__ = [
    "BASE",
    "MEMORY",
    "MERGED",
    "STATE",
    "as_state",
    "bucket_of",
    "buckets_of",
    "live",
    "memory",
    "merged",
    "newest_of_samples",
    "remembered",
]

MERGED: Final = LATEST.remove(LATEST.get_field_index("bucket"))
"""The columns of a row that is shown."""

STATE: Final = MERGED.append(pa.field("base_hlc", pa.int64())).append(
    pa.field("base_id", pa.string())
)
"""The columns of a state; without a base, the value is the key's own."""

MEMORY: Final = MERGED
"""The columns of what is remembered besides the rows that are shown."""

BASE: Final = "base"
"""The kind of a row of the memory that tells when a key itself was put."""

MOST_REMEMBERED: Final = 100_000
"""Rows that the memory of a bucket has at most; the oldest are forgotten first."""

Moment = tuple[int, bytes]


def merged(tables: list[pa.Table]) -> pa.Table:
    """One state out of rows of `samples` and states."""
    rows = pa.concat_tables([_plain(table) for table in tables])
    if pc.any(pc.match_substring(rows["key"], "*")).as_py():
        many = pa.array([is_wild(key) for key in rows["key"].to_pylist()], pa.bool_())
        wide = _newest_updates(rows.filter(many))
        return pa.concat_tables(
            [_applied(_newest_of_keys(rows.filter(pc.invert(many))), wide), wide]
        )
    return _newest_of_keys(rows)


def newest_of_samples(rows: pa.Table) -> pa.Table:
    """The rows of `samples` that matter to a state: the newest of each key, all with wildcards."""
    if not rows.num_rows or pc.any(pc.match_substring(coded(rows["key"]).dictionary, "*")).as_py():
        return rows
    return rows.take(pa.array(_newest(rows)))


def live(state: pa.Table) -> pa.Table:
    """The rows that have a value, as they are shown."""
    return _live(state).select(MERGED.names)


def _live(state: pa.Table) -> pa.Table:
    puts = state.filter(pc.equal(state["kind"], "put"))
    if pc.any(pc.match_substring(puts["key"], "*")).as_py():
        puts = puts.filter(pa.array([not is_wild(key) for key in puts["key"].to_pylist()]))
    return puts


def memory(state: pa.Table) -> pa.Table:
    """All that a state knows besides the rows that are shown: deletions, updates of many, bases."""
    gone = state.filter(pc.equal(state["kind"], "delete")).select(MERGED.names)
    shown = _live(state)
    based = shown.filter(pc.is_valid(shown["base_hlc"]))
    notes = _of_columns(
        based.num_rows,
        {
            "key": based["key"],
            "kind": pa.array([BASE] * based.num_rows, pa.string()),
            "hlc": based["base_hlc"],
            "stamp_id": based["base_id"],
            "received": based["received"],
        },
        MEMORY,
    )
    starred = pc.match_substring(state["key"], "*")
    puts = state.filter(pc.and_(starred, pc.equal(state["kind"], "put"))).select(MERGED.names)
    many = puts.filter(pa.array([is_wild(key) for key in puts["key"].to_pylist()], pa.bool_()))
    return pa.concat_tables([gone, notes, many])


def remembered(aside: pa.Table, since_us: int) -> pa.Table:
    """What was received since a moment, the newest if there is too much."""
    since = pa.scalar(since_us, pa.int64()).cast(MEMORY.field("received").type)
    kept = aside.filter(pc.greater_equal(aside["received"], since))
    if kept.num_rows > MOST_REMEMBERED:
        kept = kept.take(pc.sort_indices(kept, [("hlc", "descending")]).slice(0, MOST_REMEMBERED))
    return kept


def as_state(shown: pa.Table, aside: pa.Table | None) -> pa.Table:
    """The state again, out of rows that are shown and what is remembered besides."""
    if aside is None or not aside.num_rows:
        return _plain(shown)
    if "kind" not in aside.column_names:  # it was written when only deletions were remembered
        deletions = pa.array(["delete"] * aside.num_rows, pa.string())
        aside = aside.append_column("kind", deletions)
    columns = {name: aside[name] for name in aside.column_names}
    aside = _of_columns(aside.num_rows, columns, MEMORY)
    is_base = pc.equal(aside["kind"], BASE)
    notes = aside.filter(is_base)
    rest = _plain(aside.filter(pc.invert(is_base)))
    if not notes.num_rows:
        return pa.concat_tables([_plain(shown), rest])
    bases = dict(
        zip(
            notes["key"].to_pylist(),
            zip(notes["hlc"].to_pylist(), notes["stamp_id"].to_pylist(), strict=True),
            strict=True,
        )
    )
    base = [bases.get(key, (None, None)) for key in shown["key"].to_pylist()]
    with_base = _plain(shown)
    for name, place in (("base_hlc", 0), ("base_id", 1)):
        column = pa.array([one[place] for one in base], STATE.field(name).type)
        with_base = with_base.set_column(STATE.get_field_index(name), name, column)
    return pa.concat_tables([with_base, rest])


def bucket_of(key: str, buckets: int) -> int:
    """Where a key belongs."""
    # The journal's partitions take the low bits of the same sum; these are others.
    return (zlib.crc32(key.encode()) >> 8) % buckets


def buckets_of(state: pa.Table, buckets: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The bucket of each row; -1 for updates with wildcards, which belong to all."""
    return np.array(
        [-1 if is_wild(key) else bucket_of(key, buckets) for key in state["key"].to_pylist()],
        np.int32,
    )


# --- which rows stay ----------------------------------------------------------------------------


def _of_columns(count: int, columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """A table of a schema; columns that are not given are empty."""
    arrays = {field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in schema}
    return pa.table(arrays).cast(schema)


def _plain(table: pa.Table) -> pa.Table:
    given = {name: table[name] for name in STATE.names if name in table.column_names}
    return _of_columns(table.num_rows, given, STATE)


def _newest_of_keys(rows: pa.Table) -> pa.Table:
    """At most one row for each key: what it has from updates of its own."""
    if not rows.num_rows:
        return rows
    based = pc.is_valid(rows["base_hlc"])
    if not pc.any(based).as_py():
        return rows.take(pa.array(_newest(rows)))
    keys = pc.unique(rows.filter(based)["key"])
    mixed = pc.is_in(rows["key"], value_set=keys)
    others = rows.filter(pc.invert(mixed))
    if others.num_rows:
        others = others.take(pa.array(_newest(others)))
    return pa.concat_tables([others, _newest_by_base(rows.filter(mixed))])


def _newest_by_base(rows: pa.Table) -> pa.Table:
    """The same for keys that have a value from a put with wildcards."""
    own = _moments(rows, "base_hlc", "base_id")
    values = _moments(rows, "hlc", "stamp_id")
    bases = [value if base is None else base for base, value in zip(own, values, strict=True)]
    offsets = [-1 if offset is None else offset for offset in rows["offset"].to_pylist()]
    kinds = rows["kind"].to_pylist()
    of_key: dict[str, list[int]] = {}
    for n, key in enumerate(rows["key"].to_pylist()):
        of_key.setdefault(key, []).append(n)
    chosen: list[int] = []
    since: list[Moment | None] = []
    for places in of_key.values():
        newest = max(places, key=lambda n: (bases[n], offsets[n]))
        if kinds[newest] == "delete":
            chosen.append(newest)
            since.append(None)
            continue
        # What is newer than the key's own put is a put with wildcards, and means this key too.
        puts = [n for n in places if kinds[n] == "put"]
        value = max(puts, key=lambda n: (values[n], offsets[n]))
        chosen.append(value)
        since.append(None if values[value] == bases[newest] else bases[newest])
    return _based(rows.take(pa.array(chosen, pa.int64())), since)


def _based(rows: pa.Table, since: list[Moment | None]) -> pa.Table:
    """The rows with these bases; None is a value of the key's own."""
    columns = (
        pa.array([None if one is None else one[0] for one in since], pa.int64()),
        pa.array([None if one is None else id_text(one[1]) for one in since], pa.string()),
    )
    for name, column in zip(("base_hlc", "base_id"), columns, strict=True):
        rows = rows.set_column(STATE.get_field_index(name), name, column)
    return rows.cast(STATE)


def _newest_updates(rows: pa.Table) -> pa.Table:
    """The newest put and the newest deletion of each expression."""
    parts = []
    for kind in ("put", "delete"):
        part = rows.filter(pc.equal(rows["kind"], kind))
        parts.append(part.take(pa.array(_newest(part))) if part.num_rows else part)
    return pa.concat_tables(parts)


def _newest(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of the newest row of each key: the greatest time first, then the ties."""
    keys = coded(rows["key"])
    codes = keys.indices.to_numpy(zero_copy_only=False)
    hlc = rows["hlc"].to_numpy()
    candidates = np.nonzero(newest_rows(codes, hlc, len(keys.dictionary)))[0]
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


def _moments(rows: pa.Table, time: str, id: str) -> list[Moment | None]:
    return [
        None if hlc is None else (hlc, id_bytes(text))
        for hlc, text in zip(rows[time].to_pylist(), rows[id].to_pylist(), strict=True)
    ]


def _applied(rows: pa.Table, wide: pa.Table) -> pa.Table:
    """The rows of keys after the updates with wildcards that came after them."""
    updates: KeyTree[list[int]] = KeyTree()
    for n, expr in enumerate(wide["key"].to_pylist()):
        held = updates.get(expr)
        if held is None:
            updates.insert(expr, [n])
        else:
            held.append(n)
    when = _moments(wide, "hlc", "stamp_id")
    puts = [kind == "put" for kind in wide["kind"].to_pylist()]
    values = _moments(rows, "hlc", "stamp_id")
    own = _moments(rows, "base_hlc", "base_id")
    kinds = rows["kind"].to_pylist()
    keep = [True] * rows.num_rows
    given: list[tuple[str, int, Moment]] = []
    for n, key in enumerate(rows["key"].to_pylist()):
        value = values[n]
        base = value if own[n] is None else own[n]
        assert value is not None
        assert base is not None
        if kinds[n] != "put":
            continue
        newest = -1
        for entry in updates.intersecting(key):
            for update in entry.value:
                moment = when[update]
                assert moment is not None
                if puts[update]:
                    if moment > value:
                        newest, value = update, moment
                elif moment > base:
                    keep[n] = False
        if newest >= 0 and keep[n]:
            keep[n] = False
            given.append((key, newest, base))
    kept = rows.filter(pa.array(keep, pa.bool_()))
    if not given:
        return kept
    new = wide.take(pa.array([update for _, update, _ in given], pa.int64()))
    names = pa.array([key for key, _, _ in given], pa.string())
    new = new.set_column(STATE.get_field_index("key"), "key", names)
    return pa.concat_tables([kept, _based(new, [base for _, _, base in given])])
