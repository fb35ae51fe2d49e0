"""What is replayed and compared of a sample: its columns, from a journal, a lake or SQL."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import LocalError
from zenlake.journal.ingest.rows import hlc_of_micros
from zenlake.recorded.columns import numbers_for_words
from zenlake.values import CongestionControl

__all__ = ["JOURNAL_COLUMNS", "ROWS", "from_answer", "from_journal", "from_lake"]

ROWS: Final = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.binary()),
        ("kind", pa.int8()),
        ("encoding_id", pa.int32()),
        ("encoding_schema", pa.string()),
        ("hlc", pa.int64()),
        ("stamp_id", pa.binary()),
        ("attachment", pa.binary()),
        ("source_zid", pa.binary()),
        ("source_eid", pa.int64()),
        ("source_sn", pa.int64()),
        ("priority", pa.int8()),
        ("congestion", pa.int8()),
        ("express", pa.bool_()),
        ("reliable", pa.bool_()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
"""A row for each sample; `hlc`, `partition` and `offset` say where it stands in the order."""

JOURNAL_COLUMNS: Final = tuple(name for name in ROWS.names if name != "partition")
_DATA: Final = 5
_BLOCK: Final = CongestionControl.BLOCK.value
_NEEDED: Final = ("key", "value")


def from_journal(batch: pa.RecordBatch, partition: int) -> pa.Table:
    """Rows of a journal."""
    count = batch.num_rows
    columns: dict[str, Any] = {
        name: batch.column(name) for name in ROWS.names if name != "partition"
    }
    columns["key"] = columns["key"].dictionary_decode()
    columns["partition"] = pa.repeat(pa.scalar(partition, pa.int32()), count)
    return pa.table([columns[name] for name in ROWS.names], schema=ROWS)


def from_lake(rows: pa.Table) -> pa.Table:
    """Rows of the table `samples`, where encodings and ids are words."""
    columns = numbers_for_words({name: rows[name] for name in rows.column_names})
    return pa.table([columns[name].cast(ROWS.field(name).type) for name in ROWS.names], schema=ROWS)


def from_answer(answer: pa.Table) -> pa.Table:
    """Rows of an answer in SQL: it must have `key` and `value`, and `hlc` or `time`.

    What else a sample has is taken if it is there.
    """
    names = answer.column_names
    missing = [name for name in _NEEDED if name not in names]
    if missing or not {"hlc", "time"} & set(names):
        wanted = ", ".join(missing or ["time"])
        raise LocalError(
            f"a question whose answer is replayed must have key, value and time; this one has no "
            f"{wanted}, only {', '.join(names)}: write SELECT * FROM samples WHERE …"
        )
    count = answer.num_rows
    full: dict[str, Any] = {name: answer[name] for name in names}
    if "hlc" not in full or full["hlc"].null_count:
        full["hlc"] = _hlc_of_times(full["time"])
    defaults: dict[str, tuple[Any, pa.DataType]] = {
        "kind": ("put", pa.string()),
        "stamp_id": ("1", pa.string()),
        "encoding": ("", pa.string()),
        "attachment": (None, pa.binary()),
        "source_zid": (None, pa.string()),
        "source_eid": (None, pa.int64()),
        "source_sn": (None, pa.int64()),
        "priority": (_DATA, pa.int8()),
        "congestion": (_BLOCK, pa.int8()),
        "express": (False, pa.bool_()),
        "reliable": (True, pa.bool_()),
        "partition": (0, pa.int32()),
    }
    for name, (value, kind) in defaults.items():
        if name not in full:
            full[name] = pa.repeat(pa.scalar(value, kind), count)
        elif value is not None and full[name].null_count:
            full[name] = pc.fill_null(full[name], pa.scalar(value, full[name].type))
    full["offset"] = pa.array(np.arange(count, dtype=np.int64))
    value = full["value"]
    if not pa.types.is_binary(value.type):
        full["value"] = value.cast(pa.string()).cast(pa.binary())
    full["value"] = pc.fill_null(full["value"], b"")
    if full["key"].null_count:
        raise LocalError("a row of the answer has no key; leave such rows out")
    return from_lake(pa.table(full))


def _hlc_of_times(times: Any) -> Any:
    micros = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    if micros.null_count:
        raise LocalError("a row of the answer has no time; leave such rows out")
    return pa.array(hlc_of_micros(micros.to_numpy()))
