"""The latest value of each key, out of a journal's rows.

Of the rows of a batch only the newest of each key can matter, and numpy finds those; what they
mean beside all that came before is decided in `zenlake.newest`.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from zenlake.journal.ledger.account import Integers
from zenlake.journal.schema import DELETE
from zenlake.keys import is_wild
from zenlake.newest import Held, NewestValues
from zenlake.recorded.newest_rows import newest_rows

__all__ = ["COLUMNS", "KnownKey", "Latest", "LatestValue", "ValueSource", "ValueSources", "What"]

#: The columns that a value is made of.
COLUMNS: Final = [
    "key",
    "value",
    "kind",
    "encoding_id",
    "encoding_schema",
    "hlc",
    "stamp_id",
    "attachment",
    "source_zid",
    "source_eid",
    "source_sn",
    "offset",
]

#: Columns that every received value has; its offset comes later.
HEARD_COLUMNS: Final = COLUMNS[1:8]
#: Columns of values whose publisher numbers its samples.
SOURCE_COLUMNS: Final = COLUMNS[8:11]

MOST_SOURCES: Final = 10_000
"""Publishers that are remembered at a time; the values of one share its object."""

FEW: Final = 8
"""Up to this many rows are picked one by one: gathering columns has a price of its own."""


class ValueSource(NamedTuple):
    """A publisher that numbers its samples."""

    zid: bytes
    eid: int


class ValueSources:
    """One object for each publisher: values are many, and their publishers few."""

    def __init__(self) -> None:
        """None is known."""
        self._known: dict[tuple[bytes, int], ValueSource] = {}

    def of(
        self, zid: bytes | None, eid: int | None, sn: int | None
    ) -> tuple[ValueSource | None, int]:
        """Return what three columns say of a sample: its publisher, and its number there."""
        if zid is None or sn is None:
            return NO_SOURCE
        source = self._known.get((zid, eid or 0))
        if source is None:
            if len(self._known) >= MOST_SOURCES:
                self._known.clear()
            source = ValueSource(zid, eid or 0)
            self._known[source] = source
        return source, sn


NO_SOURCE: Final = None, 0


class LatestValue(NamedTuple):
    """What was put under a key."""

    payload: bytes
    encoding_id: int
    encoding_schema: str | None
    attachment: bytes | None
    #: Where its row lies.
    partition: int = 0
    offset: int = 0
    #: The publisher, one object for all its values; None if the sample names none.
    source: ValueSource | None = None
    sn: int = 0


class What(enum.IntEnum):
    """What is known of a key, or of many at once."""

    VALUE = 0
    DELETED = 1
    PUT_OF_MANY = 2
    DELETION_OF_MANY = 3


class KnownKey(NamedTuple):
    """One thing that the latest values are made of."""

    what: What
    key: str
    hlc: int
    id: bytes
    #: When the key itself was put: what it has may be of an update of many keys since then.
    base_hlc: int
    base_id: bytes
    value: LatestValue | None


class Latest:
    """The latest value of each key; entered and asked by any thread."""

    def __init__(self) -> None:
        """Empty."""
        self._lock = threading.Lock()
        self._newest: NewestValues[LatestValue] = NewestValues()
        self._sources = ValueSources()

    def enter(self, batch: Any, partition: int = 0, first: int | None = None) -> None:
        """Hear of more rows of a partition; their order does not matter.

        `first`: the offset of the first of them; None when they have a column that tells it.
        """
        if not batch.num_rows:
            return
        names = batch.column("key").dictionary.to_pylist()
        winners = _winners(batch, names)
        # Not `to_pylist` of the keys: it looks each of them up on its own.
        codes = batch.column("key").indices
        if len(winners) <= FEW:
            few: list[int] = winners.tolist()
            keys = [names[codes[row].as_py()] for row in few]
            columns = [
                [column[row].as_py() for row in few]
                for column in [batch.column(name) for name in HEARD_COLUMNS]
            ]
            said = [[column[row].as_py() for row in few] for column in _source_columns(batch)]
        else:
            rows = pa.array(winners)
            keys = [names[code] for code in codes.take(rows).to_pylist()]
            columns = [batch.column(name).take(rows).to_pylist() for name in HEARD_COLUMNS]
            said = [column.take(rows).to_pylist() for column in _source_columns(batch)]
        if first is None:
            offsets = batch.column("offset").to_numpy(zero_copy_only=False)[winners].tolist()
        else:
            offsets = (winners + first).tolist()
        with self._lock:
            newest = self._newest
            sources = map(self._sources.of, *said) if said else repeat(NO_SOURCE, len(keys))
            for key, payload, kind, encoding, schema, hlc, id, attachment, offset, source in zip(
                keys, *columns, offsets, sources, strict=True
            ):
                if kind == DELETE:
                    newest.delete(key, hlc, id)
                else:
                    value = LatestValue(
                        payload, encoding, schema, attachment, partition, offset, *source
                    )
                    newest.put(key, hlc, id, value, _size(value))

    def restore(self, known: Iterable[KnownKey]) -> None:
        """Hear of what was known before; in any order, also beside rows."""
        with self._lock:
            newest = self._newest
            for what, key, hlc, id, base_hlc, base_id, value in known:
                if value is None:
                    newest.delete(key, hlc, id)
                elif what == What.VALUE:
                    newest.hold(key, hlc, id, value, _size(value), base_hlc, base_id)
                else:
                    newest.put(key, hlc, id, value, _size(value))

    def known(self, step: int = 10_000) -> Iterator[list[KnownKey]]:
        """All of it, in pieces, each of one moment; rows may be entered meanwhile.

        What is entered meanwhile may be in it or not: who enters it again loses nothing.
        """
        with self._lock:
            held = self._newest.held()
            many = [
                KnownKey(What.PUT_OF_MANY, key, time, id, time, id, value)
                for key, time, id, value, _ in self._newest.puts_of_many()
            ]
            many += [
                KnownKey(What.DELETION_OF_MANY, key, time, id, time, id, None)
                for key, time, id in self._newest.deletions_of_many()
            ]
        if many:
            yield many
        for start in range(0, len(held), step):
            with self._lock:
                piece = [_known(one) for one in held[start : start + step]]
            yield piece

    def matching(self, expr: str) -> list[tuple[str, int, bytes, LatestValue]]:
        """Key, time, id of the clock and value, for each key that `expr` stands for."""
        with self._lock:
            return [_plain(held) for held in self._newest.matching(expr)]

    def collect(self, before: int) -> int:
        """Forget deletions older than `before`, an `hlc`."""
        with self._lock:
            return self._newest.collect(before)

    @property
    def counts(self) -> dict[str, int]:
        """How much is held, and what did not fit."""
        newest = self._newest
        return {
            "keys": len(newest),
            "bytes": newest.bytes,
            "tombstones": newest.tombstones,
            "late": newest.late,
            "overflowed": newest.overflowed,
        }


def _source_columns(batch: Any) -> list[Any]:
    """The columns of who published rows; none if nobody says of any row."""
    zids = batch.column(SOURCE_COLUMNS[0])
    if zids.null_count == len(zids):
        return []
    return [batch.column(name) for name in SOURCE_COLUMNS]


def _size(value: LatestValue) -> int:
    return len(value.payload) + (0 if value.attachment is None else len(value.attachment))


def _known(held: Held[LatestValue]) -> KnownKey:
    what = What.DELETED if held.value is None else What.VALUE
    return KnownKey(what, held.key, held.time, held.id, held.base_time, held.base_id, held.value)


def _plain(held: Held[LatestValue]) -> tuple[str, int, bytes, LatestValue]:
    assert held.value is not None
    return held.key, held.time, held.id, held.value


def _winners(batch: Any, names: list[str]) -> Integers:
    """Rows that may change something: the newest of each key, and all that mean many keys."""
    key = batch.column("key")
    codes = key.indices.to_numpy(zero_copy_only=False)
    hlc = batch.column("hlc").to_numpy(zero_copy_only=False)
    # Those that were told at the very same time are all looked at: their ids decide.
    chosen = newest_rows(codes, hlc, len(names))
    wild = ["*" in name and is_wild(name) for name in names]
    if True in wild:
        chosen |= np.array(wild)[codes]
    rows: Integers = np.flatnonzero(chosen)
    return rows
