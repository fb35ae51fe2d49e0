"""Values of the remote API: an encoding is its number and its schema, as in Eclipse's plugin."""

from __future__ import annotations

import pytest

from zenlake.remote.fields import RemoteEncoding
from zenlake.remote.values import encoding_from, encoding_of


@pytest.mark.parametrize(
    ("id", "schema"),
    [
        (0, ""),
        (5, "pose"),
        (4000, ""),
        (4000, "v2"),
        (65535, "my/own;v2"),
        (65535, "text/plain"),
        (65535, "unknown(4000)"),
        (65535, ""),
    ],
)
def test_an_encoding_keeps_its_number_and_schema(id: int, schema: str) -> None:
    encoding = encoding_from(RemoteEncoding(id, schema))
    assert (encoding.id, encoding.schema) == (id, schema.encode() or None)
    assert encoding_of(encoding) == (id, schema)
