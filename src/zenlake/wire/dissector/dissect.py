"""Takes bytes apart for people: every field with its place, its value and what it means.

    >>> found = dissect(bytes.fromhex("0300"))
    >>> found.form, found.nodes[0].name, found.nodes[0].children[-1].meaning
    ('batch', 'Close', 'generic')

Bytes that break give the tree so far, and where and why they broke.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zenlake.wire.declared import network, scouting, transport
from zenlake.wire.declared.schema import ProtocolPage
from zenlake.wire.dissector.node import Broken, FieldNode, plural
from zenlake.wire.dissector.walk import Walker

__all__ = ["FORMS", "Broken", "Dissection", "FieldNode", "dissect", "dissect_as", "dissect_packet"]

#: What bytes can be: the page of declarations, and whether several messages may follow each other.
FORMS: dict[str, tuple[ProtocolPage, bool]] = {
    "batch": (transport.PAGE, True),
    "network": (network.PAGE, False),
    "scouting": (scouting.PAGE, False),
}

TITLES = {
    "batch": "a batch of transport messages",
    "network": "one network message",
    "scouting": "a scouting datagram",
    "packet": "a packet of the 2018 protocol",
}


@dataclass(slots=True)
class Dissection:
    """What some bytes say."""

    form: str
    size: int
    nodes: list[FieldNode]
    broken: Broken | None = None
    path: str = ""  # where it broke, by names
    notes: list[str] = field(default_factory=list)

    @property
    def messages(self) -> list[dict[str, object]]:
        """The messages that were read to their end, as a program sees them."""
        return [node.fields for node in self.nodes if node.fields is not None]

    @property
    def title(self) -> str:
        """What the bytes were taken for."""
        return f"{plural(self.size, 'byte')}, read as {TITLES[self.form]}"

    def to_dict(self) -> dict[str, object]:
        """Everything, as JSON can hold it."""
        error = self.broken and {
            "offset": self.broken.offset,
            "field": self.path,
            "reason": str(self.broken),
        }
        return {
            "form": self.form,
            "size": self.size,
            "notes": self.notes,
            "messages": [node.to_dict() for node in self.nodes],
            "error": error,
        }


def dissect_as(
    data: bytes, form: str, start: int = 0, page: ProtocolPage | None = None
) -> Dissection:
    """Take the bytes from `start` for what `form` says, and nothing else.

    A form that is not among `FORMS` is several messages of `page`.
    """
    page, several = FORMS[form] if page is None else (page, True)
    walker = Walker(data, page, start)
    dissection = Dissection(form, len(data), walker.nodes)
    try:
        if not several:
            walker.root()
            walker.expect_end("the message")
        while walker.c.left:
            walker.root()
    except Broken as error:
        dissection.broken = error
        dissection.path = ".".join(walker.path)
    return dissection


def dissect(data: bytes, form: str = "") -> Dissection:
    """Take bytes of 1.x apart; without a `form` the one that fits is found.

    A length in front is recognised if it counts exactly the bytes behind it: two bytes before
    a batch on a stream, four before a message on a low-latency link.
    """
    attempts: list[Dissection] = []
    for name in [form] if form else ["batch", "network", "scouting"]:
        if name == "batch":
            attempts += _behind_length(data, "batch", 2, "of the batch, as a stream carries it")
        if name == "network":
            attempts += _behind_length(data, "network", 4, "of the message, on a low-latency link")
        attempts.append(dissect_as(data, name))
    fitting = [dissection for dissection in attempts if dissection.broken is None]
    if fitting:
        return fitting[0]
    if form or (attempts[0].nodes and attempts[0].nodes[0].name == "length"):
        return attempts[0]
    likely = "network" if data and data[0] & 0x1F >= 0x19 else "batch"
    dissection = next(dissection for dissection in attempts if dissection.form == likely)
    others = [TITLES[name] for name in FORMS if name != likely]
    dissection.notes.append(f"it is not {' or '.join(others)} either")
    return dissection


def dissect_packet(data: bytes, page: ProtocolPage) -> Dissection:
    """Take a packet of 2018 apart, whose messages `page` declares.

    A stream carries its length in front, as a number. Some bytes can be read both ways; then
    the reading with fewer messages is taken, and of two equal ones that without a length.
    """
    bare = dissect_as(data, "packet", page=page)
    size = 1
    while size < min(len(data), 10) and data[size - 1] >= 0x80:
        size += 1
    length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[:size]))
    if not length or length != len(data) - size:
        return bare
    framed = _framed(data, "packet", size, length, "of the packet, as a stream carries it", page)
    if framed.broken is None and (bare.broken or len(framed.nodes) - 1 < len(bare.nodes)):
        return framed
    return bare


def _behind_length(data: bytes, form: str, size: int, meaning: str) -> list[Dissection]:
    length = int.from_bytes(data[:size], "little")
    if len(data) <= size or length != len(data) - size:
        return []
    return [_framed(data, form, size, length, meaning)]


def _framed(
    data: bytes, form: str, size: int, length: int, meaning: str, page: ProtocolPage | None = None
) -> Dissection:
    dissection = dissect_as(data, form, size, page)
    dissection.nodes.insert(0, FieldNode(0, "length", data[:size], length, meaning))
    prefix = "first byte is" if size == 1 else f"first {size} bytes are"
    dissection.notes.append(f"the {prefix} the length of the rest")
    return dissection
