"""Samples as JSON and as server-sent events, in the shapes of Eclipse Zenoh's REST plugin.

    {"key": …, "value": …, "encoding": …, "timestamp": …}

The value is null for an empty payload, the JSON of a JSON payload, the text of a text payload, and
base64 for everything else: also for what claims to be JSON or text and is not. So an answer is
valid JSON, whatever was published.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from zenlake.values import SampleKind

if TYPE_CHECKING:
    from zenlake.node.sample import Sample

__all__ = [
    "Row",
    "event",
    "html",
    "json_array",
    "json_value",
    "raw_headers",
    "row_json",
    "row_of",
]

JSON: Final = frozenset(("application/json", "text/json", "text/json5"))
TEXT: Final = frozenset(("text/plain", "zenoh/string"))
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PACKED: Final = re.compile(r";\s*content-encoding=([^;\s]*)\s*")
_MEDIA_TYPE: Final = re.compile(
    rf"{_TOKEN.pattern}/{_TOKEN.pattern}"
    rf'(?:\s*;\s*{_TOKEN.pattern}=(?:{_TOKEN.pattern}|"[ !#-~]*"))*;?\s*'
)
ERROR: Final = "ERROR"
"""The key of an error reply."""


@dataclass(frozen=True, slots=True)
class Row:
    """One reply or sample, as far as HTTP shows it."""

    key: str
    payload: bytes
    encoding: str
    #: `<ntp64>/<id>`, if it has one.
    timestamp: str | None = None
    deleted: bool = False
    #: How many bytes the payload has, if it is left out.
    cut: int | None = None


def row_of(sample: Sample) -> Row:
    """A sample as HTTP shows it."""
    stamp = sample.timestamp
    return Row(
        str(sample.key_expr),
        sample.content(),
        str(sample.encoding),
        None if stamp is None else str(stamp),
        sample.kind is SampleKind.DELETE,
    )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_decoder: Final = json.JSONDecoder(parse_constant=_no_constant)
_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode
_escape: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def json_value(payload: bytes, encoding: str) -> object:
    """The payload as a JSON value."""
    return _shown(payload, encoding, _encode)[0]


def _shown(payload: bytes, encoding: str, encode: Callable[[object], str]) -> tuple[object, str]:
    """The payload as a JSON value, and as the text of it."""
    if not payload:
        return None, "null"
    if encoding in JSON:
        try:
            text = payload.decode(json.detect_encoding(payload), "surrogatepass")
            value = _decoder.decode(text)
            # What can be read may have no text: a number that is too large, lists without end.
            return value, encode(value)
        except (ValueError, RecursionError):
            pass
    elif encoding in TEXT:
        try:
            text = payload.decode()
            return text, encode(text)
        except UnicodeDecodeError:
            pass
    text = base64.b64encode(payload).decode("ascii")
    return text, f'"{text}"'


def row_json(row: Row) -> bytes:
    """One sample as a JSON object."""
    try:
        return _row_text(row, _encode).encode()
    except UnicodeEncodeError:  # half of a pair of surrogates: JSON may escape it, UTF-8 has none
        return _row_text(row, _escape).encode()


def _row_text(row: Row, encode: Callable[[object], str]) -> str:
    _, value = _shown(row.payload, row.encoding, encode)
    cut = "" if row.cut is None else f',"cut":{row.cut}'
    return (
        f'{{"key":{encode(row.key)},"value":{value},"encoding":{encode(row.encoding)},'
        f'"timestamp":{encode(row.timestamp)}{cut}}}'
    )


def json_array(rows: Iterable[Row]) -> bytes:
    """All samples of an answer."""
    return b"[%b]" % b",".join(map(row_json, rows))


def html(rows: Iterable[Row]) -> str:
    """All samples of an answer as a list of definitions; text that looks like HTML is shown."""
    parts = ["<dl>\n"]
    for row in rows:
        parts.append(f"<dt>{_escaped(row.key)}</dt>\n")
        parts.append(f"<dd>{_escaped(row.payload.decode('utf-8', 'replace'))}</dd>\n")
    return "".join([*parts, "</dl>\n"])


def _escaped(text: str) -> str:
    for mark, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#39")):
        text = text.replace(mark, f"&{name};")
    return text


def raw_headers(encoding: str) -> dict[str, str]:
    """The headers of a payload that is given as it is, by its encoding.

    An encoding that is no media type says nothing to HTTP. `;content-encoding=gzip` in one, as the
    metrics of the admin space have it, is a header of its own.
    """
    kind, packed = _PACKED.sub("", encoding, count=1), _PACKED.search(encoding)
    headers = {"content-type": kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"}
    if packed is not None and _TOKEN.fullmatch(packed[1]):
        headers["content-encoding"] = packed[1]
    return headers


def event(row: Row) -> bytes:
    """A sample as a server-sent event; its id is its timestamp, to go on from there later."""
    id = f"id: {row.timestamp}\n".encode() if row.timestamp is not None else b""
    kind = b"DELETE" if row.deleted else b"PUT"
    return b"event: %b\n%bdata: %b\n\n" % (kind, id, row_json(row))
