"""The latest value of each key, out of a journal's rows.

Of the rows of a batch only the newest of each key can matter, and numpy finds those; what they
mean beside all that came before is decided in `zenlake.storage`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from zenlake.journal.account import Integers
from zenlake.journal.schema import DELETE
from zenlake.keys import is_wild
from zenlake.storage import Held, Newest

__all__ = ["COLUMNS", "Latest", "Value"]

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
]


FEW: Final = 8
"""Up to this many rows are picked one by one: gathering columns has a price of its own."""


@dataclass(frozen=True, slots=True)
class Value:
    """What was put under a key."""

    payload: bytes
    encoding_id: int
    encoding_schema: str | None
    attachment: bytes | None


class Latest:
    """The latest value of each key; entered and asked by any thread."""

    def __init__(self) -> None:
        """Empty."""
        self._lock = threading.Lock()
        self._newest: Newest[Value] = Newest()

    def enter(self, batch: Any) -> None:
        """Hear of more rows; their order does not matter."""
        if not batch.num_rows:
            return
        names = batch.column("key").dictionary.to_pylist()
        winners = _winners(batch, names)
        # Not `to_pylist` of the keys: it looks each of them up on its own.
        codes = batch.column("key").indices
        if len(winners) <= FEW:
            found = winners.tolist()
            keys = [names[codes[row].as_py()] for row in found]
            columns = [
                [column[row].as_py() for row in found]
                for column in [batch.column(name) for name in COLUMNS[1:]]
            ]
        else:
            rows = pa.array(winners)
            keys = [names[code] for code in codes.take(rows).to_pylist()]
            columns = [batch.column(name).take(rows).to_pylist() for name in COLUMNS[1:]]
        with self._lock:
            newest = self._newest
            for key, payload, kind, encoding, schema, hlc, id, attachment in zip(
                keys, *columns, strict=True
            ):
                if kind == DELETE:
                    newest.delete(key, hlc, id)
                else:
                    size = len(payload) + (0 if attachment is None else len(attachment))
                    newest.put(key, hlc, id, Value(payload, encoding, schema, attachment), size)

    def matching(self, expr: str) -> list[tuple[str, int, bytes, Value]]:
        """Key, time, id of the clock and value, for each key that `expr` stands for."""
        with self._lock:
            return [_told(held) for held in self._newest.matching(expr)]

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


def _told(held: Held[Value]) -> tuple[str, int, bytes, Value]:
    assert held.value is not None
    return held.key, held.time, held.id, held.value


def _winners(batch: Any, names: list[str]) -> Integers:
    """Rows that may change something: the newest of each key, and all that mean many keys."""
    key = batch.column("key")
    codes = key.indices.to_numpy(zero_copy_only=False)
    hlc = batch.column("hlc").to_numpy(zero_copy_only=False)
    newest = np.full(len(names), np.iinfo(np.int64).min, np.int64)
    if (hlc[1:] >= hlc[:-1]).all():
        # In the order of time, as it nearly always comes: the last of each key is its newest.
        newest[codes] = hlc
    else:
        np.maximum.at(newest, codes, hlc)
    # Those that were told at the very same time are all looked at: their ids decide.
    chosen = hlc == newest[codes]
    wild = ["*" in name and is_wild(name) for name in names]
    if True in wild:
        chosen |= np.array(wild)[codes]
    rows: Integers = np.flatnonzero(chosen)
    return rows
