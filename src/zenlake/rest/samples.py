"""Samples as JSON and as server-sent events, in the shapes of Eclipse Zenoh's REST plugin.

    {"key": …, "value": …, "encoding": …, "timestamp": …}

The value is null for an empty payload, the JSON of a JSON payload, the text of a text payload, and
base64 for everything else: also for what claims to be JSON or text and is not. So an answer is
valid JSON, whatever was published.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

__all__ = ["Row", "event", "html", "json_array", "json_value", "row_json"]

JSON: Final = frozenset(("application/json", "text/json", "text/json5"))
TEXT: Final = frozenset(("text/plain", "zenoh/string"))
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
    return json.dumps(
        shown,
        separators=(",", ":"),
        allow_nan=False,
    )


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


def event(row: Row) -> bytes:
    """A sample as a server-sent event; its id is its timestamp, to go on from there later."""
    id = f"id: {row.timestamp}\n" if row.timestamp is not None else ""
    kind = "DELETE" if row.deleted else "PUT"
    return f"event: {kind}\n{id}data: {row_json(row)}\n\n".encode()
