"""The rows of an answer, column by column, as replies take them: a stretch of rows at a time.

What repeats is looked at once for the whole answer: keys, and kinds of rows (`RowKind`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal.reading.lists import list_of_bytes
from zenlake.journal.reading.wire_sources import wire_sources
from zenlake.journal.reading.wire_times import are_long, wire_times
from zenlake.lake.history.recorded_replies import RecordedRows, RowKind
from zenlake.recorded.columns import coded, id_bytes, ids_of_words
from zenlake.recorded.encoding import recorded_parts, schema_bytes
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.values.encoding import MAX_SCHEMA_BYTES
from zenlake.wire.codec_zenoh import SourceInfo

__all__ = ["ReplyColumns"]


@final
class ReplyColumns:
    """An answer that becomes replies."""

    def __init__(self, rows: pa.Table, encoding: str | None = None) -> None:
        """`encoding`: of all of them, if their values are others than those of the rows."""
        keys = coded(rows["key"])
        self.keys: list[str] = keys.dictionary.to_pylist()
        self.kinds, kinds = _kinds(rows, encoding)
        self._heads = kinds * len(self.keys) + keys.indices.to_numpy()
        self._times = rows["hlc"].to_numpy().view(np.uint64) ^ np.uint64(HLC_BIAS)
        self._rows = rows
        self._short = not are_long(self._times)
        self._attached = rows["attachment"].null_count < rows.num_rows
        self._named = rows["source_zid"].null_count < rows.num_rows

    def stretch(self, start: int, count: int, values: list[bytes] | None = None) -> RecordedRows:
        """So many rows; with other values, if they are given."""
        rows = self._rows.slice(start, count)
        return RecordedRows(
            heads=self._heads[start : start + count].tolist(),
            times=wire_times(self._times[start : start + count]),
            values=list_of_bytes(rows["value"]) if values is None else values,
            attachments=rows["attachment"].to_pylist() if self._attached else None,
            sources=_sources(rows) if self._named else None,
            short=self._short,
        )


def _sources(rows: pa.Table) -> list[SourceInfo | None] | None:
    zids = ids_of_words(rows["source_zid"])
    return wire_sources(zids, rows["source_eid"], rows["source_sn"])


def _kinds(rows: pa.Table, encoding: str | None) -> tuple[list[RowKind], Any]:
    """What kinds of rows there are, and of which kind each row is."""
    which: Any = np.zeros(rows.num_rows, np.int64)
    parts: list[list[Any]] = []
    for name in ("kind", "stamp_id", "encoding"):
        if name == "encoding" and encoding is not None:
            parts.append([encoding])
            continue
        codes = coded(rows[name])
        known = codes.dictionary.to_pylist()
        parts.append([*known, None])
        if len(known) == 1 and not codes.null_count:
            which *= 2
        else:
            places = pc.fill_null(codes.indices, len(known)).to_numpy(zero_copy_only=False)
            which = which * (len(known) + 1) + places
    found = np.unique(which).tolist() if which.any() else [0][: rows.num_rows]
    kinds = []
    for code in found:
        words: list[Any] = []
        for known in reversed(parts):
            code, place = divmod(code, len(known))
            words.append(known[place])
        number, schema = _encoding(words[0])
        kinds.append(RowKind(words[2] == "delete", _id(words[1]), number, schema))
    return kinds, np.searchsorted(found, which) if len(found) > 1 else which * 0


@lru_cache(maxsize=4096)
def _id(text: str | None) -> bytes:
    return id_bytes(text)


@lru_cache(maxsize=1024)
def _encoding(text: str | None) -> tuple[int, bytes]:
    """Return the id and the schema of an encoding as they are on the wire."""
    id, schema = recorded_parts(text or "")
    data = schema_bytes(schema)
    # Rows that were made elsewhere may have a schema that no message can carry.
    return id, data if len(data) <= MAX_SCHEMA_BYTES else b""
