"""Which rows a reader wants: by offset, by key and by time, decided on as little as possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from zenlake.errors import LocalError
from zenlake.journal.disk.segment import Segment
from zenlake.journal.schema import HEARTBEAT, HEARTBEAT_MARK, SCHEMA
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.recorded.time_bounds import ALL_TIME, TimeBounds

__all__ = ["KeyChoice", "RowFilter"]


class KeyChoice:
    """The keys of one dictionary that a filter wants; each is looked at once."""

    def __init__(self, keys: Sequence[KeyExpr]) -> None:
        self._keys = keys
        self._asked: dict[str, bool] = {}
        self._dictionary: Any = None
        self._wanted: Any = None

    def wants(self, key: str) -> bool:
        """Whether rows of this key are wanted."""
        known = self._asked.get(key)
        if known is None:
            known = any(wanted.intersects(KeyExpr.trusted(key)) for wanted in self._keys)
            self._asked[key] = known
        return known

    def of(self, dictionary: Any) -> Any:
        """For each key of a dictionary whether it is wanted, as an array of bool."""
        if dictionary is not self._dictionary and not (
            self._dictionary is not None and dictionary.equals(self._dictionary)
        ):
            wanted = (self.wants(key) for key in dictionary.to_pylist())
            self._dictionary = dictionary
            self._wanted = np.fromiter(wanted, np.bool_, len(dictionary))
        return self._wanted


class RowFilter:
    """What a scan asks for."""

    def __init__(
        self,
        keys: IntoKeyExpr | Iterable[IntoKeyExpr] | None = None,
        time: TimeBounds = ALL_TIME,
        columns: Sequence[str] | None = None,
        check: bool | None = None,
        heartbeats: bool = True,
    ) -> None:
        """Read what a caller said."""
        #: Whether rows that are no samples are wanted too: heartbeats, and what rules retired.
        self.heartbeats = heartbeats
        #: Whether checksums are compared; None: where that costs little.
        self.check = check
        self.keys: tuple[KeyExpr, ...] | None = None
        if keys is not None:
            several = [keys] if isinstance(keys, str | KeyExpr) else list(keys)
            self.keys = tuple(KeyExpr.of(key) for key in several)
        self._first, self._last = time.hlc
        self.columns = tuple(SCHEMA.names) if columns is None else tuple(columns)
        for name in self.columns:
            if name not in SCHEMA.names:
                raise LocalError(
                    f"a journal has no column '{name}'; it has {', '.join(SCHEMA.names)}"
                )
        #: Whether the time matters.
        self.timed = time != ALL_TIME
        #: The columns of what the scan gives.
        self.schema = pa.schema([SCHEMA.field(name) for name in self.columns])
        names = {*self.columns}
        if self.keys is not None:
            names.add("key")
        if self.timed:
            names.add("hlc")
        #: The columns that have to be read, in the order of the file.
        self.needed = [name for name in SCHEMA.names if name in names]

    def hides(self, segment: Segment) -> bool:
        """Whether rows that are no samples have to be sorted out of a segment.

        Its keys tell if there are heartbeats.
        """
        if self.heartbeats:
            return False
        if segment.retired:
            return True
        return segment.keys is None or any(HEARTBEAT_MARK in key for key in segment.keys)

    def reading(self, hide: bool) -> list[str]:
        """The columns to read where heartbeats have to be told from samples, or need not be."""
        if not hide or "origin" in self.needed:
            return self.needed
        return [name for name in SCHEMA.names if name in self.needed or name == "origin"]

    def meets_time(self, least: int, greatest: int) -> bool:
        """Whether a row between these two `hlc` may be wanted."""
        return greatest >= self._first and least <= self._last

    def within_time(self, least: int, greatest: int) -> bool:
        """Whether every row between these two `hlc` is wanted."""
        return least >= self._first and greatest <= self._last

    def meets(self, segment: Segment, choice: KeyChoice) -> bool:
        """Whether a segment may hold wanted rows."""
        if not self.meets_time(segment.min_hlc, segment.max_hlc):
            return False
        if self.keys is None:
            return True
        if segment.keys is None:
            return any(
                key.is_wild or segment.min_key <= str(key) <= segment.max_key for key in self.keys
            )
        keys = segment.keys if self.heartbeats else segment.keys - segment.retired_keys
        return any(choice.wants(key) for key in keys)

    def apply(
        self, batch: pa.RecordBatch, choice: KeyChoice, *, timed: bool, hide: bool
    ) -> pa.RecordBatch | None:
        """The wanted rows and columns of a batch; None when there is no row."""
        mask = None
        if hide:
            mask = np.asarray(batch.column("origin")) < HEARTBEAT
        if self.keys is not None:
            column = batch.column("key")
            wanted = choice.of(column.dictionary)
            if not wanted.all():
                fits = wanted[np.asarray(column.indices)]
                mask = fits if mask is None else mask & fits
        if timed:
            hlc = batch.column("hlc").to_numpy()
            fits = (hlc >= self._first) & (hlc <= self._last)
            mask = fits if mask is None else mask & fits
        if list(self.columns) == batch.schema.names:
            batch = batch.replace_schema_metadata()
        else:
            batch = pa.RecordBatch.from_arrays(
                [batch.column(name) for name in self.columns], schema=self.schema
            )
        if mask is None or mask.all():
            return batch if len(batch) else None
        if not mask.any():
            return None
        return batch.filter(pa.array(mask))
