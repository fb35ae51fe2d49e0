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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

__all__ = ["Row", "event", "html", "json_array", "json_value", "raw_headers", "row_json"]

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


def json_value(payload: bytes, encoding: str) -> object:
    """The payload as a JSON value."""
    if not payload:
        return None
    if encoding in JSON:
        try:
            value = json.loads(payload, parse_constant=_no_constant)
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):
            pass
        else:
            return value
    elif encoding in TEXT:
        try:
            return payload.decode()
        except UnicodeDecodeError:
            pass
    return base64.b64encode(payload).decode("ascii")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def row_json(row: Row) -> str:
    """One sample as a JSON object."""
    shown: dict[str, object] = {
        "key": row.key,
        "value": json_value(row.payload, row.encoding),
        "encoding": row.encoding,
        "timestamp": row.timestamp,
    }
    if row.cut is not None:
        shown["cut"] = row.cut
    written = json.dumps(shown, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates: JSON may escape it, UTF-8 has none
        return json.dumps(shown, separators=(",", ":"), allow_nan=False)
    return written


def json_array(rows: Iterable[Row]) -> str:
    """All samples of an answer."""
    return f"[{','.join(row_json(row) for row in rows)}]"


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
    id = f"id: {row.timestamp}\n" if row.timestamp is not None else ""
    kind = "DELETE" if row.deleted else "PUT"
    return f"event: {kind}\n{id}data: {row_json(row)}\n\n".encode()
