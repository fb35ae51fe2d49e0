from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.query.text_columns import mended

NESTED = pa.struct([("t", pa.string()), ("b", pa.binary()), ("l", pa.list_(pa.string()))])
MAP = pa.map_(pa.string(), pa.string())


def as_spark_gives(values: list[Any], kind: pa.DataType, bare: pa.DataType) -> pa.Array:
    """Bytes that claim to be texts."""
    return pa.array(values, bare).cast(kind, safe=False)


@given(st.lists(st.none() | st.binary(max_size=6)))
def test_what_is_no_text_becomes_one_and_all_else_stays(values: list[bytes | None]) -> None:
    texts = as_spark_gives(values, pa.string(), pa.binary())
    rows = mended(pa.table({"text": texts, "bytes": values, "n": range(len(values))}))
    rows.validate(full=True)
    assert rows["text"].to_pylist() == [
        None if value is None else value.decode("utf-8", "replace") for value in values
    ]
    assert rows["bytes"].to_pylist() == values


def test_texts_are_mended_wherever_they_are() -> None:
    bare = pa.struct([("t", pa.binary()), ("b", pa.binary()), ("l", pa.list_(pa.binary()))])
    inner = as_spark_gives(
        [{"t": b"\xff", "b": b"\xff", "l": [b"ok", b"\xff", None]}], NESTED, bare
    )
    names = as_spark_gives([[(b"a", b"\xff")]], MAP, pa.map_(pa.binary(), pa.binary()))
    rows = mended(pa.table({"inner": inner, "names": names}))
    rows.validate(full=True)
    assert rows.schema.types == [NESTED, MAP]
    assert rows.to_pylist() == [
        {
            "inner": {"t": "\ufffd", "b": b"\xff", "l": ["ok", "\ufffd", None]},
            "names": [("a", "\ufffd")],
        }
    ]


def test_rows_without_a_fault_are_the_same_ones() -> None:
    rows = pa.table({"text": ["a", None, "ü"]})
    assert mended(rows) is rows
