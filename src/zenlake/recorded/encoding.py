"""The text of an encoding in tables and files, from which its id and schema come back exactly.

    5, "utf-8"              application/json;utf-8
    65535, "my/own;v2"      my/own;v2
    4000, "v2"              unknown(4000);v2
    65535, "text/plain"     unknown(65535);text/plain

`str(Encoding)` is not exact: as in every Zenoh API, `Encoding("unknown(4000)")` is a custom
encoding of that name, and a custom encoding named `text/plain` has the text of the one with id 4.
Here `unknown(<id>)` stands for the id, and a custom encoding whose text would be read as another
one is written with its id in front.

A schema is any bytes on the wire, and text in columns. A byte that is not UTF-8 is written as
U+FFFD, which stands for it everywhere, and its two hexadecimal digits: b"a\\xff" is "a�FF".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from zenlake.values.encoding import CUSTOM_ID, ENCODING_NAMES, Encoding

__all__ = [
    "encoding_text",
    "recorded_encoding",
    "recorded_parts",
    "recorded_schema",
    "recorded_text",
    "schema_bytes",
    "wire_encoding",
    "without_custom_id",
]

_IDS: Final = {name: id for id, name in enumerate(ENCODING_NAMES)}
_NUMBERED: Final = re.compile(r"unknown\(([0-9]{1,5})\)")
_CUSTOM: Final = f"unknown({CUSTOM_ID});"
_MARK: Final = "\N{REPLACEMENT CHARACTER}"
#: What has no text of its own: bytes that are not UTF-8, as Python escapes them, and the mark.
_MARKED: Final = re.compile("[\udc80-\udcff\N{REPLACEMENT CHARACTER}]")
_WRITTEN: Final = re.compile(_MARK.encode() + b"([0-9A-F]{2})")


@lru_cache(maxsize=4096)
def recorded_text(id: int, schema: str | None) -> str:
    """Return the text of an encoding; `recorded_parts` reads it back.

    Args:
        id: The number of the encoding on the wire.
        schema: What stands behind the `;`, or the whole text of a custom encoding.
    """
    if id == CUSTOM_ID and schema and recorded_parts(schema) == (id, schema):
        return schema
    name = ENCODING_NAMES[id] if 0 <= id < len(ENCODING_NAMES) else f"unknown({id})"
    return f"{name};{schema}" if schema else name


@lru_cache(maxsize=4096)
def recorded_parts(text: str) -> tuple[int, str | None]:
    """Return the id and the schema of an encoding from its recorded text.

    No text is `zenoh/bytes`. A name that is neither known nor a numbered one is custom, and then
    the whole text is the schema.
    """
    name, _, schema = text.partition(";")
    id = _IDS.get(name) if name or schema else 0
    if id is None:
        numbered = _NUMBERED.fullmatch(name)
        id = CUSTOM_ID if numbered is None else int(numbered[1])
        if numbered is None or id > CUSTOM_ID:
            return CUSTOM_ID, text
    return id, schema or None


def recorded_schema(data: bytes) -> str:
    """Return a schema as text; `schema_bytes` reads it back.

    U+FFFD itself is written byte by byte, so that it marks nothing but bytes.
    """
    return _MARKED.sub(_written, data.decode(errors="surrogateescape"))


def schema_bytes(text: str | None) -> bytes:
    """Return the bytes of a schema from its recorded text; none for None."""
    if text is None:
        return b""
    if _MARK not in text:
        return text.encode()
    return _WRITTEN.sub(lambda byte: bytes.fromhex(byte[1].decode()), text.encode())


def _written(found: re.Match[str]) -> str:
    data = found[0].encode(errors="surrogateescape")
    return "".join(f"{_MARK}{byte:02X}" for byte in data)


def recorded_encoding(text: str) -> Encoding:
    """Return the encoding that a recorded text stands for.

    Raises `EncodingError` where the schema is longer than messages carry.
    """
    return wire_encoding(*recorded_parts(text))


def encoding_text(encoding: Encoding) -> str:
    """Return the text of an encoding; `recorded_encoding` reads it back."""
    return recorded_text(encoding.id, recorded_schema(encoding.schema or b""))


def wire_encoding(id: int, schema: str | None) -> Encoding:
    """Return the encoding of an id and the recorded text of a schema."""
    return Encoding.from_wire(id, schema_bytes(schema) or None)


def without_custom_id(text: str) -> str:
    """Return the text that names a payload's format, as `str(Encoding)` gives it.

    Publishers without the table of ids send `application/json` as a custom encoding: what looks
    for a decoder must find the same name.
    """
    return text.removeprefix(_CUSTOM)
