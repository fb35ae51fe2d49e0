"""From a batch of the journal to rows of tables, column by column.

Ids and small numbers become the words that people search for; a column of few different values
is worked on once for each of them, never once for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal.schema import INSTANT
from zenlake.recorded.columns import (
    constant,
    encoding_words,
    id_words,
    kind_words,
    source_words,
)

__all__ = [
    "DAY",
    "GAPS",
    "LATEST",
    "QUARANTINE",
    "SAMPLES",
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
            columns[name] = encoding_words(batch["encoding_id"], batch["encoding_schema"])
        elif name == "kind":
            columns[name] = kind_words(batch["kind"])
        elif name == "source_id":
            columns[name] = source_words(batch["source_zid"], batch["source_eid"])
        elif name in ("source_zid", "stamp_id"):
            columns[name] = id_words(batch[name])
        elif name == "journal":
            columns[name] = constant(journal, count)
        elif name == "partition":
            columns[name] = pa.repeat(pa.scalar(partition, pa.int32()), count)
        else:
            columns[name] = batch[name]
    return pa.table(columns)


def with_day(rows: pa.Table) -> pa.Table:
    """The same rows with the day on which each was received."""
    return rows.append_column(DAY, rows["received"].cast(pa.date32()))


def order_of(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The places of the rows in the order of key, then time; those without a key come first."""
    keys = rows["key"].combine_chunks()
    if keys.null_count:
        keys = pc.fill_null(keys.cast(pa.string()), "")
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
