"""What a request asks for: selector, form, encoding; whatever is sent."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import expressions
from zenlake.errors import LocalError, ZError
from zenlake.keys import KeyExpr
from zenlake.recorded.encoding import recorded_parts
from zenlake.rest.asking import LONGEST_ENCODING, Form, asked, content_encoding, key_of, seconds_for

ZID = "abc"


@pytest.mark.parametrize(
    ("path", "query", "accept", "expected"),
    [
        (b"/demo/example/*", b"", "", ("demo/example/*", "", Form.JSON)),
        (b"/demo/**", b"_time=[now(-1h)..]", "*/*", ("demo/**", "_time=[now(-1h)..]", Form.JSON)),
        (b"/demo/a", b"_raw", "", ("demo/a", "_raw", Form.RAW)),
        (b"/@/local/router", b"", "text/html", (f"@/{ZID}/router", "", Form.HTML)),
        (b"/@/local", b"", "", (f"@/{ZID}", "", Form.JSON)),
        (b"/@/localhost", b"", "", ("@/localhost", "", Form.JSON)),
        (b"/demo/%C3%A9", b"a=%20b+", "text/event-stream, */*", ("demo/é", "a= b+", Form.EVENTS)),
        (b"/demo/a", b"", "*/*, text/event-stream", ("demo/a", "", Form.JSON)),
        (b"/demo/a", b"x=1;_download=parquet", "", ("demo/a", "x=1", Form.PARQUET)),
        (b"/demo/a", b"", "text/csv; q=1", ("demo/a", "", Form.CSV)),
    ],
)
def test_a_request_becomes_a_selector_and_a_form(
    path: bytes, query: bytes, accept: str, expected: tuple[str, str, Form]
) -> None:
    found = asked(path, query, accept, ZID)
    assert (found.key, found.parameters, found.form) == expected


@pytest.mark.parametrize("path", [b"/", b"/a//b", b"/a/", b"/%FF", b"/a/%23x"])
def test_what_is_no_key_expression_is_refused_with_the_reason(path: bytes) -> None:
    with pytest.raises(LocalError):
        asked(path, b"", "", ZID)


def test_a_download_that_is_not_known_says_what_there_is() -> None:
    with pytest.raises(ZError, match="csv, jsonl, arrow, parquet"):
        asked(b"/a", b"_download=xls", "", ZID)


@given(expressions())
def test_every_key_expression_can_be_asked_for(text: str) -> None:
    text = str(KeyExpr.autocanonize(text))
    assert key_of(b"/" + quote(text).encode(), ZID) == text


@given(st.binary(max_size=60), st.binary(max_size=60), st.text(max_size=40))
def test_whatever_is_sent_is_understood_or_refused(path: bytes, query: bytes, accept: str) -> None:
    try:
        found = asked(path, query, accept, ZID)
    except ZError:
        return
    assert str(KeyExpr(found.key)) == found.key


def test_a_content_type_is_an_encoding() -> None:
    assert content_encoding("application/json") == "application/json"
    assert content_encoding("text/plain; charset=utf-8") == "text/plain; charset=utf-8"
    assert content_encoding("") is None
    newer = content_encoding("unknown(4000);v2")
    assert newer is not None
    assert (newer.id, newer.schema) == (4000, b"v2")


def test_a_lake_is_given_the_time_that_it_gives_a_question() -> None:
    from zenlake.lake.service.bus import SQL_LIMITS

    assert seconds_for("@lake/sql", 10.0) > SQL_LIMITS.seconds
    assert seconds_for("@lake/sql", 60.0) == 60.0
    assert seconds_for("robot/**", 10.0) == 10.0


def test_what_no_encoding_can_be_is_not_remembered() -> None:
    before = recorded_parts.cache_info().currsize
    for number in range(5):
        with pytest.raises(LocalError, match="letters"):
            content_encoding(f"text/{number}" + "x" * LONGEST_ENCODING)
    assert recorded_parts.cache_info().currsize == before
