"""What an HTTP request asks of the bus: key expression, parameters, encoding, form of the answer.

    GET, POST        a query; a subscription if the first type of `Accept` is text/event-stream
    PUT, PATCH       a put of the body, whose encoding is the Content-Type
    DELETE           a delete

The path is the key expression, URL-encoded; the query string is the parameters of the selector.
`_download` concerns HTTP alone and does not reach the bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from zenlake.errors import KeyExprError, LocalError
from zenlake.keys import KeyExpr, Parameters
from zenlake.keys.parameters import ANY_KEY_EXPR, TIME
from zenlake.recorded.encoding import recorded_encoding
from zenlake.values import Encoding

__all__ = ["DOWNLOADS", "Asked", "Form", "asked", "content_encoding", "key_of", "seconds_for"]

LOCAL: Final = "@/local"
LONGEST: Final = 1 << 16
"""Bytes of a path; key expressions of more are refused."""
LONGEST_ENCODING: Final = 1024
"""Letters of a Content-Type; no schema on the wire is as long."""
SHORT: Final = 512
REMEMBERED: Final = 1024
"""How many requests are remembered, of how many bytes at most."""


class Form(Enum):
    """In which form an answer is given."""

    JSON = "json"
    HTML = "html"
    RAW = "raw"
    EVENTS = "events"
    CSV = "csv"
    JSON_LINES = "jsonl"
    ARROW = "arrow"
    PARQUET = "parquet"


DOWNLOADS: Final = {
    "text/csv": Form.CSV,
    "application/jsonl": Form.JSON_LINES,
    "application/x-ndjson": Form.JSON_LINES,
    "application/vnd.apache.arrow.stream": Form.ARROW,
    "application/vnd.apache.parquet": Form.PARQUET,
}
"""The media types of answers as tables."""

_TYPES: Final = {"text/event-stream": Form.EVENTS, "text/html": Form.HTML, **DOWNLOADS}


@dataclass(frozen=True, slots=True)
class Asked:
    """A query or a subscription: its selector, and the form of what is answered."""

    key: str
    parameters: str
    form: Form
    #: Whether the form was asked for by `_download`: a file to be saved.
    file: bool = False
    timed: bool = False
    #: Whether replies on other keys are wanted too.
    any_key: bool = False
    #: Payloads of events that have more bytes are left out; None: none is.
    cut: int | None = None


def key_of(path: bytes, zid: str) -> str:
    """The key expression that a path names; `@/local` is this node's. Raises `KeyExprError`."""
    if len(path) > LONGEST:
        raise KeyExprError(f"a path of {len(path)} bytes is longer than {LONGEST}")
    try:
        text = unquote_to_bytes(path.removeprefix(b"/")).decode()
    except UnicodeDecodeError:
        raise KeyExprError("the path is no UTF-8: URL-encode the key expression") from None
    if text == LOCAL or text.startswith(f"{LOCAL}/"):
        text = f"@/{zid}{text[len(LOCAL) :]}"
    return str(KeyExpr(text))


def asked(path: bytes, query: bytes, accept: str, zid: str) -> Asked:
    """What a GET or POST asks for. Raises `ZError`, which says what is wrong.

    Most requests ask what others have asked before: what short ones mean is remembered.
    """
    if len(path) + len(query) + len(accept) <= SHORT:
        return _remembered(path, query, accept, zid)
    return _read(path, query, accept, zid)


def _read(path: bytes, query: bytes, accept: str, zid: str) -> Asked:
    key = key_of(path, zid)
    try:
        text = unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        raise LocalError("the query string is no UTF-8: URL-encode the parameters") from None
    form = _TYPES.get(_first(accept), Form.JSON)
    parameters = Parameters(text)
    file = False
    wanted = parameters.get("_download")
    if wanted is not None:
        names = {one.value: one for one in DOWNLOADS.values()}
        if wanted not in names:
            raise LocalError(f"_download={wanted[:40]}: there is {', '.join(names)}")
        form, file = names[wanted], True
        parameters.remove("_download")
    cut = parameters.get("_cut") if form is Form.EVENTS else None
    if cut is not None and not (cut.isascii() and cut.isdecimal() and len(cut) < 12):
        raise LocalError(f"_cut={cut[:40]}: write a number of bytes")
    if form is not Form.EVENTS and "_raw" in parameters:
        form = Form.RAW
    return Asked(
        key,
        str(parameters),
        form,
        file,
        TIME in parameters,
        ANY_KEY_EXPR in parameters,
        None if cut is None else int(cut),
    )


_remembered = lru_cache(REMEMBERED)(_read)


def _first(accept: str) -> str:
    """The first media type of a header, without its parameters."""
    return accept.partition(",")[0].partition(";")[0].strip().lower()


def content_encoding(content_type: str) -> Encoding | None:
    """Return the encoding that a Content-Type names; None if it is not given.

    curl sends `application/x-www-form-urlencoded` unless it is told otherwise, and it is then
    the encoding, as it is with Eclipse's plugin. `unknown(4000)`, as answers show an id that has
    no name, is that id again.
    """
    text = content_type.strip()
    if len(text) > LONGEST_ENCODING:
        # What is read is remembered.
        raise LocalError(
            f"the Content-Type has {len(text)} letters; an encoding has {LONGEST_ENCODING} at most"
        )
    return recorded_encoding(text) if text else None


LAKE: Final = 35.0
"""Seconds: a little more than a lake gives a question in SQL."""


def seconds_for(key: str, timeout: float) -> float:
    """How long replies are waited for: a lake, which may have to read much, is given its time."""
    return max(timeout, LAKE) if key.startswith("@lake/") else timeout
