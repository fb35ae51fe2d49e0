"""The columns of a journal."""

from __future__ import annotations

import pyarrow as pa

from zenlake.journal.schema import (
    DELETE,
    HEALED,
    HEARD,
    HEARTBEAT,
    IMPORTED,
    PUT,
    RETIRED,
    SCHEMA,
    UNNUMBERED,
)
from zenlake.recorded.time_bounds import HLC_BIAS


def test_a_row_has_the_columns_of_the_format_and_begins_with_its_offset() -> None:
    """As docs/reference/journal-format.md has them: journals of any age must be read."""
    assert [(field.name, str(field.type), field.nullable) for field in SCHEMA] == [
        ("offset", "int64", False),
        ("key", "dictionary<values=string, indices=int32, ordered=0>", False),
        ("value", "binary", False),
        ("kind", "int8", False),
        ("encoding_id", "int32", False),
        ("encoding_schema", "string", True),
        ("hlc", "int64", False),
        ("time", "timestamp[us, tz=UTC]", False),
        ("stamp_id", "binary", False),
        ("stamped", "bool", False),
        ("attachment", "binary", True),
        ("source_zid", "binary", True),
        ("source_eid", "int64", True),
        ("source_sn", "int64", True),
        ("priority", "int8", False),
        ("congestion", "int8", False),
        ("express", "bool", False),
        ("reliable", "bool", False),
        ("received", "timestamp[us, tz=UTC]", False),
        ("origin", "int8", False),
    ]
    assert UNNUMBERED.names == SCHEMA.names[1:]


def test_numbers_in_rows_are_those_of_the_format() -> None:
    assert (PUT, DELETE) == (0, 1)
    assert (HEARD, HEALED, IMPORTED, HEARTBEAT, RETIRED) == (0, 1, 2, 3, 4)
    assert HLC_BIAS == 9223372036854775808


def test_times_beyond_2038_keep_their_order_as_signed_longs() -> None:
    times = [0, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    column = pa.array([time - HLC_BIAS for time in times], SCHEMA.field("hlc").type)
    assert column.to_pylist() == sorted(column.to_pylist())
    assert [hlc + HLC_BIAS for hlc in column.to_pylist()] == times
