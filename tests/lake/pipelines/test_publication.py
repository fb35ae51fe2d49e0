"""What the properties of a table say of its rows on the bus."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.pipelines.output import StreamingTable
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql.types import StructType

from zenlake.lake.pipelines.definitions import PipelineError
from zenlake.lake.pipelines.publication import RowRefused, TablePublication, publication_of

COLUMNS = (
    StructType()
    .add("id", "integer")
    .add("site", "string")
    .add("at", "timestamp")
    .add("energy", "double")
    .add("price", "decimal(5,2)")
    .add("on", "boolean")
    .add("payload", "binary")
    .add("note", "string")
)
ROW = {
    "id": 7,
    "site": "Genève-2",
    "at": datetime(2026, 11, 19, 12, tzinfo=UTC),
    "energy": float("nan"),
    "price": Decimal("1.50"),
    "on": True,
    "payload": b"\xff",
    "note": None,
}


def published(**properties: str) -> TablePublication | None:
    told = {f"zenlake.{name.replace('_', '.')}": text for name, text in properties.items()}
    output = StreamingTable(
        name="energy",
        comment=None,
        source_code_location=SourceCodeLocation("energy.py", 3),
        table_properties=told,
        partition_cols=None,
        cluster_by=None,
        schema=None,
        format=None,
    )
    return publication_of(output, COLUMNS)


def demanded(**properties: str) -> TablePublication:
    found = published(**properties)
    assert found is not None
    return found


def test_a_row_goes_under_the_key_of_its_columns_as_json() -> None:
    found = demanded(publish="fleet/${site}/robot-${id}/${on}/${price}/${at}")
    assert found.key(ROW) == "fleet/Genève-2/robot-7/true/1.50/2026-11-19T12:00:00+00:00"
    document = json.loads(found.payload(ROW))
    assert list(document) == COLUMNS.names
    assert (document["energy"], document["note"]) == ("NaN", None)
    assert found.encoding == "application/json"
    some = demanded(publish="fleet/${id}", publish_columns="energy, id")
    assert json.loads(some.payload(ROW)) == {"energy": "NaN", "id": 7}


def test_one_column_goes_as_its_bytes_or_its_text() -> None:
    image = demanded(publish="a/${id}", publish_value="payload", publish_encoding="image/png")
    assert (image.payload(ROW), image.encoding) == (b"\xff", "image/png")
    assert demanded(publish="a/${id}", publish_value="payload").encoding == "zenoh/bytes"
    text = demanded(publish="a/${id}", publish_value="site")
    assert (text.payload(ROW), text.encoding) == ("Genève-2", "text/plain")
    with pytest.raises(RowRefused, match="'note', which is the value, is null"):
        demanded(publish="a/${id}", publish_value="note").payload(ROW)


@pytest.mark.parametrize("value", ["a/b", "*", "**", "$*", "a?b", "#", "", None, "@x", "a\nb"])
def test_a_value_that_is_no_part_of_a_key_is_refused_and_never_changed(value: Any) -> None:
    with pytest.raises(RowRefused, match="the column 'site' is"):
        demanded(publish="fleet/${site}/x").key({**ROW, "site": value})


def test_a_table_without_the_property_is_not_published() -> None:
    assert published() is None


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"publish": "fleet/${sit}"}, "'energy' has no column 'sit'; did you mean 'site'?"),
        ({"publish": "fleet/${energy}"}, "'energy' is double: no key is made of such"),
        ({"publish": "fleet/**/${id}"}, r"has '\*'; a row is put under one key"),
        ({"publish": "/fleet/${id}"}, "makes no keys"),
        ({"publish": "fleet/${id"}, "makes no keys|has '\\$'"),
        ({"publish.columns": "id"}, "without zenlake.publish: the key"),
        ({"publish": "a", "publish_columns": "idd"}, "no column 'idd'; did you mean 'id'"),
        ({"publish": "a", "publish_value": "id"}, "is int; it must be string or binary"),
        ({"publish": "a", "publish_value": "note", "publish_columns": "id"}, "not both"),
        ({"publish": "a", "publish_encoding": "text/plain"}, "goes with zenlake.publish.value"),
        ({"publish": "a", "publish_colums": "id"}, "did you mean 'zenlake.publish.columns'"),
    ],
)
def test_a_property_that_cannot_be_says_where_and_what_to_write(
    properties: dict[str, str], message: str
) -> None:
    with pytest.raises(PipelineError, match=f"energy.py:3: .*({message})"):
        published(**properties)
