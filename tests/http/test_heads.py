"""Headers by name, and whether a body follows them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from zenlake.http.heads import has_body, heads_of

NAMES = st.sampled_from([b"host", b"origin", b"accept", b"x"])


@given(st.lists(st.tuples(NAMES, st.binary(max_size=5))))
def test_headers_are_those_that_the_library_reads(raw: list[tuple[bytes, bytes]]) -> None:
    headers = Headers(raw=raw)
    heads = heads_of({"headers": raw})
    assert {name: headers[name] for name in headers} == heads


def test_they_are_read_once() -> None:
    scope = {"headers": [(b"host", b"a")]}
    assert heads_of(scope) is heads_of(scope)


def test_a_body_is_announced_by_its_length_or_as_chunks() -> None:
    assert not has_body({})
    assert not has_body({"content-length": "0"})
    assert has_body({"content-length": "3"})
    assert has_body({"transfer-encoding": "chunked"})
