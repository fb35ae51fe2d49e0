from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.spark.rows import MIDNIGHT, row
from zenlake.journal.ingest.rows import unnumbered_batch
from zenlake.spark.options import READ, OptionError, SourceOptions
from zenlake.spark.schema import COLUMNS, USUAL, Maker, checked_names, chosen_columns, schema_of


def batch_of(*rows: dict[str, object]) -> pa.RecordBatch:
    batch = unnumbered_batch(list(rows))
    return batch.append_column("offset", pa.array(range(len(rows)), pa.int64()))


def test_every_column_has_the_type_that_spark_will_demand() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    maker = Maker(list(COLUMNS))
    assert to_arrow_schema(schema_of(COLUMNS), timezone="UTC").equals(maker.schema)
    assert maker.batch(batch_of(row("a", b"1", MIDNIGHT)), 3).schema.equals(maker.schema)


def test_a_row_reads_as_it_was_sent() -> None:
    made = (
        Maker(list(COLUMNS))
        .batch(
            batch_of(
                row("a/b", b"1", MIDNIGHT, encoding_id=5, attachment=b"x"),
                row(
                    "a/c",
                    b"",
                    MIDNIGHT,
                    kind=1,
                    encoding_id=5,
                    encoding_schema="v1",
                    source_zid=None,
                ),
                row("a/d", b"", MIDNIGHT, encoding_id=1000, stamp_id=b"\xb3\xa2\x01"),
            ),
            3,
        )
        .to_pydict()
    )
    assert made["key"] == ["a/b", "a/c", "a/d"]
    assert made["kind"] == ["put", "delete", "put"]
    assert made["encoding"] == ["application/json", "application/json;v1", "unknown(1000)"]
    assert made["source_id"] == ["1a2b3:7", None, "1a2b3:7"]
    assert made["stamp_id"] == ["1", "1", "1a2b3"]
    assert made["partition"] == [3, 3, 3]
    assert made["offset"] == [0, 1, 2]
    assert made["attachment"] == [b"x", None, None]
    assert made["time"][0].isoformat() == "2026-01-01T00:00:00+00:00"


def test_only_what_is_needed_is_read() -> None:
    assert Maker(["key", "time"]).needed == Maker(["key", "timestamp"]).needed == ["key", "time"]
    assert Maker(["partition"]).needed == ["offset"]


def test_columns_are_chosen_by_name() -> None:
    assert chosen_columns(SourceOptions({}, READ)) == list(USUAL)
    assert chosen_columns(SourceOptions({"includeAttachment": "true"}, READ))[-1] == "attachment"
    assert chosen_columns(SourceOptions({"columns": "key, received"}, READ)) == ["key", "received"]
    with pytest.raises(OptionError, match="no column 'vaule'; did you mean 'value'"):
        chosen_columns(SourceOptions({"columns": "vaule"}, READ))
    with pytest.raises(OptionError, match="twice"):
        chosen_columns(SourceOptions({"columns": "key,key"}, READ))


def test_a_schema_of_the_callers_is_some_of_our_columns() -> None:
    assert checked_names(StructType([StructField("offset", LongType())])) == ["offset"]
    with pytest.raises(OptionError, match="'offset' is bigint here, not string; cast it"):
        checked_names(StructType([StructField("offset", StringType())]))
    with pytest.raises(OptionError, match="no column 'topic'"):
        checked_names(StructType([StructField("topic", StringType())]))
    with pytest.raises(OptionError, match="leave out NOT NULL"):
        checked_names(StructType([StructField("offset", LongType(), nullable=False)]))
