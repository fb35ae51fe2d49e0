"""Requests as they come in: strictly read, in any pieces, within bounds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.http.limits import DRAINED_BYTES, HttpLimits
from zenlake.http.request_head import BadRequest, RequestHead
from zenlake.http.request_parser import RequestEnd, RequestParser

LIMITS = HttpLimits(head_bytes=400, target_bytes=100, headers=8)
HOST = "Host: localhost\r\n"


def events(data: bytes, cuts: list[int] | None = None) -> list[RequestHead | bytes | RequestEnd]:
    """What the pieces of some bytes are, with the parts of a body joined."""
    parser = RequestParser(LIMITS)
    found: list[RequestHead | bytes | RequestEnd] = []
    edges = sorted({0, *(cuts or []), len(data)})
    for start, end in itertools.pairwise(edges):
        parser.feed(data[start:end])
        while (event := parser.next_event()) is not None:
            last = found[-1] if found else None
            if isinstance(event, bytes) and isinstance(last, bytes):
                found[-1] = last + event
            else:
                found.append(event)
    return found


TWO = (
    b"PUT /demo/a?b=c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n"
    b"\r\nGET / HTTP/1.0\r\nX:  \ta b\t \r\n\r\n"
    b"POST /x HTTP/1.1\r\nhost: [::1]:80\r\ncontent-length: 4\r\nconnection: a, Close\r\n\r\nbody"
)


def test_requests_are_read_one_behind_the_other() -> None:
    put, body, end, get, end2, post, body2, end3 = events(TWO)
    assert isinstance(put, RequestHead)
    assert isinstance(get, RequestHead)
    assert isinstance(post, RequestHead)
    assert (put.method, put.target, put.version) == (b"PUT", b"/demo/a?b=c", "1.1")
    assert (body, body2) == (b"abc0123456789", b"body")
    assert get.headers == [(b"x", b"a b")]
    assert (put.keep_alive, get.keep_alive, post.keep_alive) == (True, False, False)
    assert end is end2 is end3 is RequestEnd.END


@given(st.lists(st.integers(0, len(TWO)), max_size=20))
def test_where_the_bytes_are_cut_changes_nothing(cuts: list[int]) -> None:
    assert events(TWO, cuts) == events(TWO)


def test_every_byte_may_come_alone() -> None:
    assert events(TWO, list(range(len(TWO)))) == events(TWO)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (400, f"GET / HTTP/1.1\r\n{HOST}Host: evil\r\n\r\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}{HOST}\r\n"),
        (400, "GET / HTTP/1.1\r\n\r\n"),
        (400, f"GET http://evil/ HTTP/1.1\r\n{HOST}\r\n"),
        (501, f"CONNECT evil:80 HTTP/1.1\r\n{HOST}\r\n"),
        (501, f"BREW / HTTP/1.1\r\n{HOST}\r\n"),
        (501, f"M-{'X' * 29} / HTTP/1.1\r\n{HOST}\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3\r\nContent-Length: 4\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3\r\nContent-Length: 3\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3, 3\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Content-Length: +3\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 1_0\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Content-Length: {'9' * 19}\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Content-Length:\r\n\r\n"),
        (
            400,
            f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: gzip, chunked\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: \x0bchunked\r\n\r\n"),
        (
            400,
            f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        ),
        (400, f"PUT / HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}X: a\r\n folded\r\n\r\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}X : a\r\n\r\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}: a\r\n\r\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}no colon\r\n\r\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}X: a\rb\r\n\r\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}X: a\nY: b\r\n\r\n"),
        (400, "GET / HTTP/1.1\nHost: localhost\n\n"),
        (400, f"GET / HTTP/1.1\r\n{HOST}X: a\x00b\r\n\r\n"),
        (400, f"GET /a b HTTP/1.1\r\n{HOST}\r\n"),
        (400, f"GET  / HTTP/1.1\r\n{HOST}\r\n"),
        (400, f"GET /#a HTTP/1.1\r\n{HOST}\r\n"),
        (400, f"GET /\x80 HTTP/1.1\r\n{HOST}\r\n"),
        (400, f"GET / HTTP/2\r\n{HOST}\r\n"),
        (400, f"get / HTTP/1.1\r\n{HOST}\r\n"),
        (400, "\r\n\r\nGET / HTTP/1.1\r\n"),
        (400, "\x16\x03\x01\x02\x00"),
        (400, f"GET / HTTP/1.1\r\n{HOST}Origin: a\r\nOrigin: b\r\n\r\n"),
        (400, f"PUT / HTTP/1.1\r\n{HOST}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
        (417, f"PUT / HTTP/1.1\r\n{HOST}Expect: 200-ok\r\n\r\n"),
        (414, f"GET /{'a' * 100} HTTP/1.1\r\n{HOST}\r\n"),
        (414, "a" * 401),
        (431, f"GET / HTTP/1.1\r\n{HOST}X: {'a' * 400}"),
        (431, f"GET / HTTP/1.1\r\n{HOST}" + "X:\r\n" * 8 + "\r\n"),
    ],
)
def test_what_could_be_read_in_two_ways_or_is_too_much_is_refused(code: int, text: str) -> None:
    for cuts in ([], list(range(len(text)))):
        with pytest.raises(BadRequest) as refused:
            events(text.encode("latin-1"), cuts)
        assert refused.value.code == code
        assert len(str(refused.value)) > 20


@pytest.mark.parametrize(
    "authority",
    [
        "", "@", "localhost:", "localhost:x", "localhost:65536", "localhost:999999",
        "localhost:1:2", "user@localhost", "[::1", "::1", "[localhost]", "[]", "<>", "a;b", "a%20b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["", "/", "?a"])
def test_a_whole_url_that_names_no_host_is_refused(authority: str, path: str) -> None:
    with pytest.raises(BadRequest) as refused:
        events(f"GET http://{authority}{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    assert refused.value.code == 400


@pytest.mark.parametrize("authority", ["localhost", "localhost:8000", "[::1]:80", "a_b.example"])
@pytest.mark.parametrize(
    ("written", "target"),
    [("", "/"), ("/", "/"), ("?a=b", "/?a=b"), ("/a?b?c", "/a?b?c"), ("//a://b", "//a://b")],
)
def test_of_a_whole_url_the_path_is_given(authority: str, written: str, target: str) -> None:
    for scheme in ("http", "HTTPS"):
        text = f"GET {scheme}://{authority}{written} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
        head = events(text.encode())[0]
        assert isinstance(head, RequestHead)
        assert (head.target, head.host) == (target.encode(), authority.encode())


TARGETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)


@given(st.sampled_from(["", "http://localhost", "http://", "x://"]), TARGETS)
def test_every_target_that_is_taken_is_a_path(before: str, written: str) -> None:
    try:
        head = events(f"GET {before}{written} HTTP/1.1\r\n{HOST}\r\n".encode())[0]
    except BadRequest:
        return
    assert isinstance(head, RequestHead)
    assert head.target.startswith(b"/")


CHUNKED = f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n".encode()


@pytest.mark.parametrize(
    "body",
    [
        b"3\nabc\r\n",
        b"3\r\nabcd\r\n",
        b"0x3\r\nabc\r\n",
        b" 3\r\nabc\r\n",
        b"-3\r\n",
        b"\r\n",
        b"f" * 16 + b"\r\n",
        b"3;" + b"x" * 300,
        b"3;a\x00\r\nabc\r\n",
        b"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n" * 2000,
        b"0\r\n" + b"T: abcdefgh\r\n" * 400,
        b"0\r\nno trailer\r\n\r\n",
    ],
)
def test_a_body_in_chunks_has_little_but_data(body: bytes) -> None:
    with pytest.raises(BadRequest) as refused:
        events(CHUNKED + body)
    assert refused.value.code == 400


def test_short_chunks_are_read() -> None:
    assert events(CHUNKED + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n")[1] == b"x" * 5000


PIECES = [
    *(b"GET / HTTP/1.1\r\n", HOST.encode(), b"X: ", b"y" * 50, b"\r\n", b"\r\n\r\n", CHUNKED),
    *(b"Content-Length: 9\r\n", b"3\r\nabc\r\n", b"0\r\n", b"3;", TWO),
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=60), max_size=30))
@example([CHUNKED, b"3;" + b"y" * 50, b"y" * 50, b"\r\nabc\r\n0\r\n", b"X: " + b"y" * 50])
def test_no_bytes_make_it_keep_more_than_a_head(pieces: list[bytes]) -> None:
    parser = RequestParser(LIMITS)
    try:
        for piece in pieces:
            parser.feed(piece)
            while parser.next_event() is not None:
                pass
            assert parser.buffered <= LIMITS.head_bytes + 4
    except BadRequest:
        pass


def test_a_client_that_is_refused_is_read_for_longer_than_a_head() -> None:
    # Or closing would reset the connection before the client has read why.
    assert HttpLimits().head_bytes < DRAINED_BYTES
