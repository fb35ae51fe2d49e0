"""How what comes from the network is printed: a line for people, or a JSON object for programs.

Payloads are written by strangers: nothing of them reaches a terminal that could command it.
"""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING

import typer

from zenlake.printable import json_text, printable

if TYPE_CHECKING:
    from zenlake.api.reply import Reply
    from zenlake.node.sample import Sample
    from zenlake.values import Encoding

MOST_TEXT = 1000
"""How many characters of a payload people are shown."""

MOST_HEX = 32
"""How many bytes of a payload people are shown."""

MOST_UNPACKED = 1 << 20
"""How many bytes of a compressed payload are unpacked to be shown."""


def text_of(data: bytes) -> str | None:
    """Return the text that bytes are, or None if they are no UTF-8; whoever shows it escapes it."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def elided(text: str, wide: int) -> str:
    """Text of at most that width: the middle goes, since keys differ at both ends."""
    if len(text) <= wide:
        return text
    left = (wide - 1) // 2
    return f"{text[:left]}…{text[len(text) - (wide - 1 - left) :]}"


def readable(data: bytes) -> str:
    """A payload for people: its text, or the beginning of its bytes; long ones are cut."""
    text = text_of(data)
    if text is None:
        return f"0x{data[:MOST_HEX].hex()}{'…' if len(data) > MOST_HEX else ''}"
    return printable(text[:MOST_TEXT]) + ("…" if len(text) > MOST_TEXT else "")


def unpacked(data: bytes, encoding: str) -> bytes | None:
    """A payload without the compression that its encoding names; None if it names none.

    Cut at `MOST_UNPACKED`, since a few bytes can unpack to very many.
    """
    import zlib

    _, names, packing = encoding.lower().partition("content-encoding=")
    # How zlib tells them apart: gzip's header or zlib's own.
    windows = {"gzip": 31, "x-gzip": 31, "deflate": 15, "zlib": 15}
    window = windows.get(packing.partition(";")[0].strip(' "')) if names else None
    if window is None:
        return None
    try:
        return zlib.decompressobj(window).decompress(data, MOST_UNPACKED)
    except zlib.error:
        return None


def payload_facts(data: bytes, name: str = "payload") -> dict[str, object]:
    """A payload for programs: text as it is, anything else in base 64."""
    text = text_of(data)
    if text is None:
        return {f"{name}_base64": base64.b64encode(data).decode()}
    return {name: text}


def sample_facts(sample: Sample) -> dict[str, object]:
    """A sample for programs."""
    data = sample.payload.to_bytes()
    facts: dict[str, object] = {"key": str(sample.key_expr), "kind": sample.kind.name.lower()}
    encoding = str(sample.encoding)
    facts |= payload_facts(data)
    plain = unpacked(data, encoding)
    if plain is not None:
        facts |= payload_facts(plain, "unpacked")
    facts["size"] = len(data)
    facts["encoding"] = encoding
    timestamp = sample.timestamp
    facts["timestamp"] = None if timestamp is None else timestamp.to_string_rfc3339_lossy()
    attachment = sample.attachment
    if attachment is not None:
        facts |= payload_facts(attachment.to_bytes(), "attachment")
    source = sample.source_info
    if source is not None:
        facts["source"] = f"{source.source_id.zid}:{source.source_id.eid}"
        facts["source_sn"] = source.source_sn
    facts["priority"] = sample.priority.name.lower()
    facts["congestion_control"] = sample.congestion_control.name.lower()
    facts["express"] = sample.express
    facts["reliability"] = sample.reliability.name.lower()
    return facts


def sample_line(sample: Sample) -> str:
    """A sample for people."""
    data = sample.payload.to_bytes()
    kind = sample.kind.name.lower()
    key = paint(printable(str(sample.key_expr)), "cyan")
    about: list[str] = []
    line = f"{paint(kind, 'green' if kind == 'put' else 'red')} {key}"
    if kind == "put":
        plain = unpacked(data, str(sample.encoding))
        line += f": {readable(data if plain is None else plain)}"
        about += [*described(sample.encoding), size_of(data)]
    timestamp = sample.timestamp
    if timestamp is not None:
        about.append(timestamp.get_time_as_ntp64().to_string_rfc3339_lossy())
    attachment = sample.attachment
    if attachment is not None:
        about.append(f"attachment {readable(attachment.to_bytes())}")
    return line + aside(about)


def reply_facts(reply: Reply) -> dict[str, object]:
    """An answer for programs."""
    replier = reply.replier_id
    facts: dict[str, object] = {"ok": reply.ok is not None}
    facts["replier"] = None if replier is None else str(replier.zid)
    error = reply.err
    sample = reply.ok
    if sample is not None:
        return facts | sample_facts(sample)
    if error is not None:
        data = error.payload.to_bytes()
        facts |= payload_facts(data)
        facts |= {"size": len(data), "encoding": str(error.encoding)}
    return facts


def reply_line(reply: Reply) -> str:
    """An answer for people."""
    sample, error = reply.ok, reply.err
    if sample is not None or error is None:
        return "" if sample is None else sample_line(sample)
    data = error.payload.to_bytes()
    return f"{paint('error', 'red')}: {readable(data)}" + aside(
        [*described(error.encoding), size_of(data)]
    )


def described(encoding: Encoding) -> list[str]:
    """An encoding, unless it says nothing."""
    name = printable(str(encoding))
    return [] if name == "zenoh/bytes" else [name]


def size_of(data: bytes) -> str:
    """How long a payload is."""
    return f"{len(data)} B"


def scaled(size: float) -> str:
    """A number of bytes that people can read."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def aside(about: list[str]) -> str:
    """What is told beside the matter."""
    return paint(f"  [{', '.join(about)}]", "bright_black") if about else ""


def paint(text: str, colour: str) -> str:
    """Text in colour, where people want colours; `typer.echo` takes them off elsewhere."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return typer.style(text, fg=colour)


def print_json(facts: dict[str, object]) -> None:
    """One JSON object on a line of its own."""
    typer.echo(json_text(facts))
