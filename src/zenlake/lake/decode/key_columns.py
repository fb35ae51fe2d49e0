"""The parts of keys as columns of typed tables: each key is cut once, however many rows it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, final

import numpy as np
import pyarrow as pa

from zenlake.errors import KeyExprError
from zenlake.keys import KeyFormat
from zenlake.lake.model.typed_table import TypedTable
from zenlake.ros2.bridge import bridged_keys
from zenlake.ros2.names import NO_HASH, parse_key

__all__ = ["KeyColumns", "KeyParts", "coded_keys", "rows_of_table"]

MOST_KEYS: Final = 100_000

RowPositions = np.ndarray[Any, np.dtype[np.int64]]


class KeyParts:
    """The parts of the keys of one table, each key cut once."""

    def __init__(self, table: TypedTable) -> None:
        """As the format of the table says."""
        self.table = table.name
        self._format = KeyFormat(table.format)
        self._ros2 = table.ros2
        self._bridged = bridged_keys(table.type)
        self._known: dict[str, list[str | None] | None] = {}

    def of(self, key: str) -> list[str | None] | None:
        """The values of the table's chunks; None if the key is not one of the table's."""
        if key in self._known:
            return self._known[key]
        if len(self._known) >= MOST_KEYS:
            self._known.clear()
        self._known[key] = parts = self._cut(key)
        return parts

    def _cut(self, key: str) -> list[str | None] | None:
        before: list[str | None] = []
        if self._ros2 and key in self._bridged:
            before = [None, f"/{key}", self._bridged[key][0], None]
        elif self._ros2:
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


@final
class KeyColumns:
    """The parts of the keys of rows: those of each key, and which key each row has."""

    __slots__ = ("_codes", "_parts")

    def __init__(self, parts: Sequence[Sequence[str | None] | None], codes: RowPositions) -> None:
        """`codes`: for each row the place of its key in `parts`."""
        self._parts = parts
        self._codes = codes

    def __len__(self) -> int:
        return len(self._codes)

    def take(self, places: RowPositions) -> KeyColumns:
        """The parts of some rows."""
        return KeyColumns(self._parts, self._codes[places])

    def column(self, part: int) -> pa.Array:
        """One part of the key of each row, as places in a dictionary."""
        texts = [None if one is None else one[part] for one in self._parts]
        coded = pa.array(texts, pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            coded.indices.take(pa.array(self._codes)), coded.dictionary
        )


class _Routed(Protocol):
    """The keys of rows, looked up for all tables at once (`lake/decode/key_router`)."""

    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def codes(self) -> RowPositions: ...
    def of_table(self, name: str) -> Sequence[int]: ...


def rows_of_table(
    rows: pa.Table, parts: KeyParts, routed: _Routed | None = None
) -> tuple[pa.Table, KeyColumns]:
    """The rows of `samples` whose keys are a table's, and the parts of each key.

    `routed`: the keys of these rows, if they were looked up for all tables at once.
    """
    if routed is None:
        keys = coded_keys(rows["key"])
        cut = [parts.of(key) for key in keys.dictionary.to_pylist()]
        codes = keys.indices.to_numpy(zero_copy_only=False)
    else:
        cut = [None] * len(routed.keys)
        for code in routed.of_table(parts.table):
            cut[code] = parts.of(routed.keys[code])
        codes = routed.codes
    ours = np.array([part is not None for part in cut], bool)
    places = np.flatnonzero(ours[codes]) if ours.any() else np.empty(0, np.int64)
    if len(places) and places[-1] - places[0] == len(places) - 1:
        mine = rows.slice(places[0], len(places))
    else:
        mine = rows.take(pa.array(places))
    return mine, KeyColumns(cut, codes[places])


def coded_keys(keys: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return keys as one array of places in a dictionary."""
    one = keys.unify_dictionaries() if pa.types.is_dictionary(keys.type) else keys
    one = one.combine_chunks()
    if isinstance(one, pa.ChunkedArray):  # no rows, or too many bytes for one chunk
        one = pa.concat_arrays(
            [chunk.dictionary_encode() for chunk in one.chunks]
            or [pa.array([], pa.string()).dictionary_encode()]
        )
    return one if isinstance(one, pa.DictionaryArray) else one.dictionary_encode()
