from __future__ import annotations

import pyarrow as pa
import pytest

from zenlake.lake.query.table_frames import spark_type


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.string(), "string"),
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.large_binary(), "binary"),
        (pa.int8(), "tinyint"),
        (pa.timestamp("us", tz="UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.list_(pa.list_(pa.int64())), "array<array<bigint>>"),
        (pa.decimal128(20, 0), "decimal(20,0)"),
        (pa.date32(), "date"),
        (pa.map_(pa.string(), pa.int8()), "map<string,tinyint>"),
        (pa.struct([("x y", pa.list_(pa.float64()))]), "struct<`x y`:array<double>>"),
    ],
)
def test_types_have_the_names_that_spark_gives_them(kind: pa.DataType, name: str) -> None:
    assert spark_type(kind) == name
