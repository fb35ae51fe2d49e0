"""What a test of anything that speaks Zenoh may use: every declared message, by its declaration.

    >>> from zenlake import testing
    >>> push = testing.spec("Push")
    >>> testing.read(push, bytes.fromhex("5d010100")).scope
    1

`zenlake.testing.strategies` makes arbitrary valid messages, and needs hypothesis.
`zenlake.testing.network` is a network in a box: many nodes, no socket, a clock that jumps.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from zenlake.errors import DecodeError
from zenlake.wire.cursor import Reader
from zenlake.wire.declared import declare, network, scouting, transport, zenoh
from zenlake.wire.declared.schema import MessageSpec, ProtocolPage
from zenlake.wire.generator.emit import snake
from zenlake.wire.generator.generate import module_of
from zenlake.wire.message import Message
from zenlake.xrce import declared

__all__ = ["class_of", "page_of", "pages", "read", "skip", "spec", "specs"]

#: Where the generated codecs of a protocol live.
ROOMS = {"1.x": "zenlake.wire", "2018": "zenlake.xrce"}

_PAGES = (zenoh.PAGE, declare.PAGE, network.PAGE, transport.PAGE, scouting.PAGE, declared.PAGE)


def pages(protocol: str = "") -> list[ProtocolPage]:
    """Every page of declarations, or those of one protocol (`1.x`, `2018`)."""
    return [page for page in _PAGES if protocol in ("", page.protocol)]


def specs(protocol: str = "") -> Iterator[MessageSpec]:
    """Every declared message and structure."""
    for page in pages(protocol):
        yield from page.specs.values()


def spec(name: str, protocol: str = "1.x") -> MessageSpec:
    """The declaration of a message or structure."""
    for page in pages(protocol):
        if name in page.specs:
            return page.specs[name]
    raise KeyError(name)


def page_of(spec: MessageSpec) -> ProtocolPage:
    """The page on which a message is declared."""
    for page in pages():
        if page.specs.get(spec.name) is spec:
            return page
    raise KeyError(spec.name)


def class_of(spec: MessageSpec) -> type[Message]:
    """The generated class of a message."""
    codec: type[Message] = getattr(_codec(spec), spec.name)
    return codec


def read(spec: MessageSpec, data: bytes) -> Message:
    """The message that these bytes are, all of them, known to be a `spec`."""
    r = Reader(data)
    message: Message = getattr(_codec(spec), f"read_{snake(spec.name)}")(r, *_header(spec, r))
    if r.pos != r.end:
        raise DecodeError(f"{r.end - r.pos} bytes left over from offset {r.pos}", r.pos)
    return message


def skip(spec: MessageSpec, data: bytes) -> int:
    """Where the `spec` ends that these bytes begin with; nothing is made (1.x only)."""
    r = Reader(data)
    getattr(_codec(spec), f"skip_{snake(spec.name)}")(r, *_header(spec, r))
    return r.pos


def _header(spec: MessageSpec, r: Reader) -> tuple[object, ...]:
    """What the reader of a message wants besides the bytes: its header, and its markers."""
    if spec.id < 0:
        return ()
    header = r.u8()
    if not spec.markers:
        return (header,)
    markers: tuple[Message, ...] = ()
    page = page_of(spec)
    if any(header & 0x1F == page.specs[name].id for name in page.markers):
        markers = getattr(_codec(spec), "read_markers")(r, header)  # noqa: B009
        header = r.u8()
    return (header, markers)


def _codec(spec: MessageSpec) -> object:
    page = page_of(spec)
    return importlib.import_module(module_of(page, ROOMS[page.protocol]))
