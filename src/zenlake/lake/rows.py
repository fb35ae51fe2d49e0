"""From a batch of the journal to rows of tables, column by column.

Ids and small numbers become the words that people search for; a column of few different values
is worked on once for each of them, never once for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal.schema import INSTANT
from zenlake.values import ZenohId
from zenlake.values.recorded_encoding import recorded_text

__all__ = [
    "DAY",
    "GAPS",
    "LATEST",
    "QUARANTINE",
    "SAMPLES",
    "encoding_text",
    "id_bytes",
    "id_text",
    "order_of",
    "sample_rows",
    "with_day",
]

DAY: Final = "day"

_WORDS: Final = [
    ("key", pa.string()),
    ("value", pa.binary()),
    ("encoding", pa.string()),
    ("kind", pa.string()),
    ("time", INSTANT),
    ("hlc", pa.int64()),
    ("stamp_id", pa.string()),
    ("stamped", pa.bool_()),
    ("attachment", pa.binary()),
    ("source_id", pa.string()),
    ("source_zid", pa.string()),
    ("source_eid", pa.int64()),
    ("source_sn", pa.int64()),
    ("priority", pa.int8()),
    ("congestion", pa.int8()),
    ("express", pa.bool_()),
    ("reliable", pa.bool_()),
    ("received", INSTANT),
    ("origin", pa.int8()),
    ("journal", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
]

SAMPLES: Final = pa.schema([*_WORDS, (DAY, pa.date32())])
"""Everything, as it was heard."""

LATEST: Final = pa.schema([*_WORDS, ("bucket", pa.int32())])
"""The newest of each key; `bucket` is where the key's hash puts it."""

QUARANTINE: Final = pa.schema(
    [
        ("table", pa.string()),
        ("reason", pa.string()),
        ("field", pa.string()),
        ("detail", pa.string()),
        *(word for word in _WORDS if word[0] in ("key", "value", "encoding", "kind", "time")),
        *(word for word in _WORDS if word[0] in ("hlc", "received", "journal", "partition")),
        ("offset", pa.int64()),
        (DAY, pa.date32()),
    ]
)
"""What did not fit its table: `reason` is one of `decoders.Reason`."""

GAPS: Final = pa.schema(
    [
        ("source", pa.string()),
        ("key", pa.string()),
        *(
            (name, pa.int64())
            for name in ("expected", "received", "missing", "duplicates", "reordered")
        ),
        *((name, pa.int64()) for name in ("healed", "restarts", "rows", "first", "last")),
        ("gaps", pa.list_(pa.list_(pa.int64()))),
        ("journal", pa.string()),
    ]
)
"""The ledger: what each source must have said, and what of it came. A row without a source
counts, for one key, what came without numbers and so cannot be judged."""

_KIND_WORDS: Final = pa.array(["put", "delete"])


def sample_rows(
    batch: pa.RecordBatch, journal: str, partition: int, names: Sequence[str] | None = None
) -> pa.Table:
    """Rows of `samples` without their day; `key` stays a dictionary.

    `names`: the columns that are wanted, if not all.
    """
    count = batch.num_rows
    columns: dict[str, Any] = {}
    for name in names or [name for name, _ in _WORDS]:
        if name == "encoding":
            columns[name] = encoding_text(batch["encoding_id"], batch["encoding_schema"])
        elif name == "kind":
            columns[name] = pa.DictionaryArray.from_arrays(
                batch["kind"].cast(pa.int32()), _KIND_WORDS
            )
        elif name == "source_id":
            columns[name] = _source(batch["source_zid"], batch["source_eid"])
        elif name in ("source_zid", "stamp_id"):
            columns[name] = _each(batch[name], id_text)
        elif name == "journal":
            columns[name] = _constant(journal, count)
        elif name == "partition":
            columns[name] = pa.repeat(pa.scalar(partition, pa.int32()), count)
        else:
            columns[name] = batch[name]
    return pa.table(columns)


def with_day(rows: pa.Table) -> pa.Table:
    """The same rows with the day on which each was received."""
    return rows.append_column(DAY, rows["received"].cast(pa.date32()))


def encoding_text(ids: pa.Array, schemas: pa.Array) -> pa.Array:
    """Return the recorded texts of encodings, from the ids and schemas of the wire."""
    numbers = ids.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(ids) and schemas.null_count == len(ids) and (numbers == numbers[0]).all():
        return _constant(recorded_text(int(numbers[0]), None), len(ids))
    named = schemas.dictionary_encode() if schemas.null_count < len(schemas) else None
    codes = np.zeros(len(numbers), np.int64) if named is None else _codes(named)
    both = pa.array(numbers << 32 | codes).dictionary_encode()
    texts = []
    for value in both.dictionary.to_pylist():
        code = value & 0xFFFFFFFF
        schema = named.dictionary[code - 1].as_py() if named is not None and code else None
        texts.append(recorded_text(value >> 32, schema))
    return pa.DictionaryArray.from_arrays(both.indices, pa.array(texts, pa.string()))


def _codes(coded: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of each value among the different ones, from 1; 0 is null."""
    indices = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    return np.asarray(indices.astype(np.int64) + 1)


def _source(zids: pa.Array, eids: pa.Array) -> pa.Array:
    """Who sent it, `zid:eid`, as the ledger names sources; null where that is not told."""
    coded = zids.dictionary_encode()
    entities = pc.fill_null(eids, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    both = pa.array(_codes(coded) << 32 | entities & 0xFFFFFFFF).dictionary_encode()
    texts: list[str | None] = []
    for value in both.dictionary.to_pylist():
        code = value >> 32
        zid = coded.dictionary[code - 1].as_py() if code else None
        texts.append(None if zid is None else f"{id_text(zid)}:{value & 0xFFFFFFFF}")
    # Encoded once more, for a dictionary may not hold null itself.
    return pa.array(texts, pa.string()).take(both.indices).dictionary_encode()


def id_text(id: bytes) -> str:
    """An id as people read it."""
    try:
        return str(ZenohId(id))
    except ValueError:
        return id[::-1].hex()


def id_bytes(text: str | None) -> bytes:
    """The bytes of an id, by which ids are ordered; none are before all others."""
    number = int(text, 16) if text else 0
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def order_of(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The places of the rows in the order of key, then time."""
    keys = rows["key"].combine_chunks()
    if isinstance(keys, pa.ChunkedArray):  # no rows, or too many bytes for one chunk
        keys = pa.chunked_array([chunk.cast(pa.string()) for chunk in keys.chunks], pa.string())
    if not isinstance(keys, pa.DictionaryArray):
        keys = keys.dictionary_encode()
        keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    if not len(keys):
        return np.empty(0, np.int64)
    rank = np.empty(len(keys.dictionary), np.int64)
    rank[pc.sort_indices(keys.dictionary).to_numpy()] = np.arange(len(keys.dictionary))
    codes = rank[keys.indices.to_numpy(zero_copy_only=False)]
    return np.lexsort((rows["hlc"].to_numpy(), codes))


def _constant(word: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([word]))


def _each(column: pa.Array, function: Callable[[bytes], str]) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.dictionary(pa.int32(), pa.string()))
    coded = column.dictionary_encode()
    texts = [function(value) for value in coded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string()))
