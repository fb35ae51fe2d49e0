"""The columns of a journal."""

from __future__ import annotations

import pyarrow as pa

from zenlake.journal.schema import HLC_BIAS, SCHEMA, UNNUMBERED


def test_a_row_has_twenty_columns_and_begins_with_its_offset() -> None:
    assert len(SCHEMA) == 20
    assert SCHEMA.names[0] == "offset"
    assert UNNUMBERED.names == SCHEMA.names[1:]


def test_only_what_a_sample_may_lack_may_be_null() -> None:
    nullable = {field.name for field in SCHEMA if field.nullable}
    assert nullable == {"encoding_schema", "attachment", "source_zid", "source_eid", "source_sn"}


def test_times_beyond_2038_keep_their_order_as_signed_longs() -> None:
    times = [0, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    column = pa.array([time - HLC_BIAS for time in times], SCHEMA.field("hlc").type)
    assert column.to_pylist() == sorted(column.to_pylist())
    assert [hlc + HLC_BIAS for hlc in column.to_pylist()] == times
