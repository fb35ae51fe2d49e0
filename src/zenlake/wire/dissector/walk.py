"""Walks bytes by the declarations themselves, and notes every byte that it passes.

The codecs are text generated from the declarations; this interprets the same declarations
directly. Two decoders from one source, written apart: the tests hold one against the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zenlake.wire.declared.attributes import attributes, explicit_flags, extension_place
from zenlake.wire.declared.schema import (
    MARKERS_MAX,
    ByEncoding,
    Bytes,
    CompactId,
    Field,
    Flag,
    FlagByte,
    HeaderBits,
    Identity,
    Int,
    Kind,
    Lease,
    Many,
    Messages,
    MessageSpec,
    Ntp64,
    OneOf,
    ProtocolPage,
    Rest,
    Struct,
    Text,
    Unit,
    Zid,
)
from zenlake.wire.dissector.meaning import (
    SHAPES,
    flag_meaning,
    moment,
    note,
    shown,
    value_meaning,
)
from zenlake.wire.dissector.node import Broken, Cursor, FieldNode, plural
from zenlake.wire.dissector.part import DissectedPart, Fields, bit_node, extension_header
from zenlake.wire.message import zid_text

__all__ = ["Walker"]

#: Bytes that are a structure of their own, which the codec leaves to its callers.
INSIDE = {
    "Oam.body": ("LinkStates", "link states"),
    "TimestampRecord.stamp": ("Timestamp", "a timestamp"),
}


class Walker:
    """Reads messages of one page and keeps the tree, even when the bytes break off."""

    def __init__(self, data: bytes, page: ProtocolPage, start: int = 0) -> None:
        """Read `data` from `start`."""
        self.c = Cursor(data)
        self.c.pos = start
        self.page = page
        self.nodes: list[FieldNode] = []
        self.path: list[str] = []  # when it breaks, where that was

    @contextmanager
    def node(self, into: list[FieldNode], name: str) -> Iterator[FieldNode]:
        """A node that ends where reading has got to."""
        entered = FieldNode(self.c.pos, name)
        into.append(entered)
        self.path.append(name)
        try:
            yield entered
            self.path.pop()
        finally:
            entered.data = self.c.data[entered.offset : self.c.pos]

    # ---------------------------------------------------------------------------- messages

    def root(self) -> Fields:
        """The next message of the page, with the markers that decorate it."""
        alone = [s for s in self.page.specs.values() if s.id >= 0 and not s.inner and not s.marker]
        if not self.page.markers:
            return self.message(self.nodes, alone)
        with self.node(self.nodes, "message") as node:
            markers = self.markers(node)
            fields = self.rest(node, *self.choose(alone))
            node.fields = {**fields, "markers": markers}
        return node.fields

    def markers(self, node: FieldNode) -> tuple[Fields, ...]:
        """What decorates the next message of 2018."""
        specs = [self.page.find(name) for name in self.page.markers]
        start = self.c.pos
        markers: list[Fields] = []
        while self.c.left and self.c.data[self.c.pos] & 0x1F in [spec.id for spec in specs]:
            if len(markers) == MARKERS_MAX:
                raise Broken(f"more than {MARKERS_MAX} markers before one message", start)
            markers.append(self.message(node.children, specs))
        if markers and not self.c.left:
            raise Broken("a marker that decorates nothing", start)
        return tuple(markers)

    def message(self, into: list[FieldNode], specs: list[MessageSpec]) -> Fields:
        """The next message, one of `specs`."""
        spec, header = self.choose(specs)
        with self.node(into, spec.name) as node:
            node.fields = self.rest(node, spec, header)
        return node.fields

    def choose(self, specs: list[MessageSpec]) -> tuple[MessageSpec, int]:
        """Which message begins here, and its header."""
        if not self.c.left:
            raise Broken("a message is wanted, nothing is left", self.c.pos)
        header = self.c.data[self.c.pos]
        for spec in specs:
            if spec.id == header & 0x1F and all(
                bool(header & spec.bit(letter)) == value for letter, value in spec.fixed
            ):
                return spec, header
            for alias, letter in spec.aliases:
                if alias == header & 0x1F:
                    return spec, spec.id | spec.bit(letter)
        known = ", ".join(f"{spec.name} {self.id_text(spec.id)}" for spec in specs)
        start = f"the byte {header:02x} begins message {self.id_text(header & 0x1F)}"
        raise Broken(f"{start}, which is none of {known}", self.c.pos)

    def id_text(self, id: int) -> str:
        """An id as its specification writes it."""
        return f"0x{id:02x}" if self.page.protocol == "1.x" else str(id)

    def rest(self, node: FieldNode, spec: MessageSpec, header: int) -> Fields:
        """The message `spec`, which begins here."""
        node.name = self.path[-1] = spec.name
        node.meaning = spec.doc
        self.header(node, spec)
        return self.parts(DissectedPart(spec, node, header))

    def header(self, node: FieldNode, spec: MessageSpec) -> None:
        """The header byte, bit by bit."""
        owner = next(page for page in self.page.closure() if spec.name in page.specs)
        with self.node(node.children, "header") as head:
            header = self.c.number("u8")
            head.value = f"0x{header:02x}"
            letters = [letter for letter in spec.flags if letter and header & spec.bit(letter)]
            head.meaning = f"{spec.name}, " + (
                f"with {' '.join(letters)} set" if letters else "no flag set"
            )
            rows = head.children
            meaning = self.id_text(header & 0x1F)
            rows.append(bit_node(head.offset, "id", header, 0x1F, meaning, spec.name))
            if header & 0x1F != spec.id:
                rows[0].meaning += ", by the number of an older draft"
                return
            packed = (f for f in spec.fields if isinstance(f.kind, HeaderBits | ByEncoding))
            small = next(packed, None)
            if small is not None:
                value = header >> 5 & 3
                name, meaning = "shape", f"of the body: {SHAPES[value]}"
                if isinstance(small.kind, HeaderBits):
                    name, meaning = small.name, dict(small.kind.names).get(value, "reserved")
                rows.append(bit_node(head.offset, name, header, 0x60, value, meaning))
            for index, letter in enumerate(spec.flags):
                bit = 0x20 << index
                if small is not None and index < 2:
                    continue
                if not letter:
                    if header & bit:
                        rows.append(bit_node(head.offset, "-", header, bit, 1, "reserved, ignored"))
                    continue
                rows.append(self.flag_node(head, owner, spec, letter, bit, header))

    def flag_node(
        self,
        node: FieldNode,
        page: ProtocolPage,
        spec: MessageSpec,
        letter: str,
        bit: int,
        byte: int,
    ) -> FieldNode:
        """What one flag says."""
        named = explicit_flags(spec).get(letter)
        name = f"{letter} {named.name}" if named is not None else letter
        yes, no = flag_meaning(page, spec, letter)
        on = bool(byte & bit)
        return bit_node(node.offset, name, byte, bit, int(on), yes if on else no)

    def parts(self, part: DissectedPart) -> Fields:
        """The fields of a message or structure; its attributes, as a program sees them."""
        spec = part.spec
        place = extension_place(spec)
        for index, wanted in enumerate(spec.fields):
            if index == place:
                self.extensions(part)
            if not wanted.extension:
                self.field(part, wanted)
        if place == len(spec.fields):
            self.extensions(part)
        return {"message": spec.name, **part.values}

    def field(self, part: DissectedPart, wanted: Field) -> None:
        """A plain field, or its default."""
        name, kind = wanted.name, wanted.kind
        if isinstance(kind, Flag):
            within = not kind.within or part.has(kind.within)
            part.values[name] = part.has(kind.letter) if within else wanted.default
        elif isinstance(kind, HeaderBits):
            part.values[name] = self.legal(part.header >> 5 & 3, kind.legal, part.node.offset)
        elif not part.holds(wanted):
            part.values |= {name: default for name, _, default in attributes(wanted)}
        elif isinstance(kind, OneOf):
            specs = [self.page.find(option) for option in kind.names]
            part.values[name] = self.message(part.node.children, specs)
        elif isinstance(kind, Messages):
            part.values[name] = self.messages(part.node)
        elif isinstance(kind, Identity):
            self.identity(part, wanted, kind)
        else:
            with self.node(part.node.children, name) as node:
                self.present(part, wanted, node)

    def messages(self, node: FieldNode) -> tuple[Fields, ...]:
        """Network messages, as long as there are any."""
        page = next(page for page in self.page.closure() if page.name == "network")
        specs = [spec for spec in page.specs.values() if spec.id >= 0]
        messages: list[Fields] = []
        while self.c.left and self.c.data[self.c.pos] & 0x1F >= 0x19:
            messages.append(self.message(node.children, specs))
        return tuple(messages)

    # ------------------------------------------------------------------------------ fields

    def present(self, part: DissectedPart, wanted: Field, node: FieldNode) -> None:
        """A plain field that is there."""
        name, spec = wanted.name, part.spec
        match wanted.kind:
            case FlagByte(letters=letters, form=form):
                value = self.c.number(form)
                node.value = f"0x{value:02x}"
                node.meaning = note(spec, name, wanted.doc)
                for index, letter in enumerate(letters):
                    part.letters[letter] = bool(value >> index & 1)
                    node.children.append(
                        self.flag_node(node, self.page, spec, letter, 1 << index, value)
                    )
            case Ntp64():
                value = self.c.number("vle")
                part.values |= {"seconds": value >> 32, "fraction": value & 0xFFFF_FFFF}
                node.value, node.meaning = value, moment(value >> 32, value & 0xFFFF_FFFF)
            case Lease(letter=letter):
                value = self.c.number("vle") * (1000 if part.has(letter) else 1)
                self.tell(part, wanted, node, value)
            case CompactId():
                compact = bool(part.header & 0x80)
                value = 1 + (part.header >> 5 & 3) if compact else self.c.number("nat")
                part.values |= {"id": value, "compact": compact}
                node.value = value
                node.meaning = "in the header's bits L and H" if compact else ""
            case Int(low_flag=letter, limit=limit, mask=mask) if letter:
                both = self.c.number("vle", limit)
                part.letters[letter] = bool(both & 1)
                self.tell(part, wanted, node, both >> 1 & mask)
                yes, no = flag_meaning(self.page, spec, letter)
                node.children.append(
                    FieldNode(node.offset, letter, value=both & 1, meaning=yes if both & 1 else no)
                )
            case ByEncoding():
                self.by_encoding(part, wanted, node)
            case kind:
                like = kind.like if isinstance(kind, Many) else ""
                count = len(seen) if isinstance(seen := part.values.get(like), tuple) else 0
                self.tell(part, wanted, node, self.value(kind, node, count))
                self.inside(part, wanted, node)

    def tell(self, part: DissectedPart, wanted: Field, node: FieldNode, value: object) -> None:
        """Keep a value and say what it means."""
        part.values[wanted.name] = value
        node.meaning = value_meaning(part.spec, wanted, value)
        if isinstance(wanted.kind, Zid) and isinstance(value, bytes):
            node.value = zid_text(value)
        elif isinstance(value, tuple) and node.children:
            node.value = len(value)
        elif not isinstance(value, dict):
            node.value = shown(value)

    def value(self, kind: Kind, node: FieldNode, like: int = 0) -> object:
        """A value of a kind that is one value."""
        match kind:
            case Int(form=form, limit=limit, wrap=wrap, mask=mask, legal=legal):
                start = self.c.pos
                number = self.c.number(form) if wrap else self.c.number(form, limit)
                if mask:
                    number &= mask
                elif wrap:
                    number &= limit
                return self.legal(number, legal, start)
            case Bytes(limit=limit, form=form):
                return self.c.take(self.length(node, form, limit))
            case Text(limit=limit, form=form):
                return self.c.text(self.length(node, form, limit))
            case Rest(utf8=utf8):
                return self.c.text(self.c.left) if utf8 else self.c.take(self.c.left)
            case Zid():
                return self.c.zid(self.length(node, "vle", 0xFF))
            case Struct(name=name):
                spec = self.page.find(name)
                node.fields = self.parts(DissectedPart(spec, node))
                return node.fields
            case Many():
                return self.many(kind, node, like)
            case _:
                raise TypeError(f"{kind} is not one value")

    def length(self, node: FieldNode, form: str, limit: int) -> int:
        """The number of bytes that follow."""
        start = self.c.pos
        size = self.c.number(form, limit)
        node.prefix = self.c.pos - start
        return size

    def legal(self, value: int, legal: tuple[int, ...], start: int) -> int:
        """Refuse a value that means nothing."""
        if legal and value not in legal:
            raise Broken(f"{value} means nothing, only {', '.join(map(str, legal))} do", start)
        return value

    def many(self, kind: Many, node: FieldNode, like: int) -> tuple[object, ...]:
        """Several values."""
        count = kind.fixed or like
        if not kind.fixed and not kind.like:
            start = self.c.pos
            count = self.length(node, kind.form, kind.limit)
            if count > self.c.left:  # each takes a byte at least
                left = plural(self.c.left, "byte")
                raise Broken(f"{plural(count, 'element')} announced, {left} left", start)
        values: list[object] = []
        for index in range(count):
            if isinstance(kind.item, OneOf):
                specs = [self.page.find(name) for name in kind.item.names]
                values.append(self.message(node.children, specs))
                continue
            if isinstance(kind.item, Int):
                values.append(self.value(kind.item, node))
                continue
            with self.node(node.children, f"[{index}]") as item:
                value = self.value(kind.item, item)
                if isinstance(kind.item, Struct):
                    item.meaning = self.page.find(kind.item.name).doc
                else:
                    item.value = shown(value)
            values.append(value)
        return tuple(values)

    def identity(self, part: DissectedPart, wanted: Field, kind: Identity) -> None:
        """A node id packed with some low bits."""
        with self.node(part.node.children, "identity") as node:
            packed = self.c.number("u8")
            node.value, node.meaning = f"0x{packed:02x}", "the size of the node id"
            node.meaning += f", and {kind.low}" if kind.low else ""
            there = not kind.optional or bool(packed & 0x08)
            size = (packed >> 4) + 1
            meaning = (
                f"one less than the node id's {plural(size, 'byte')}" if there else "no node id"
            )
            node.children.append(bit_node(node.offset, "size", packed, 0xF0, packed >> 4, meaning))
            if kind.optional:
                meaning = "a node id follows" if there else "no node id follows"
                node.children.append(bit_node(node.offset, "I", packed, 0x08, int(there), meaning))
            if kind.low:
                mask = (1 << kind.bits) - 1
                low = packed & mask
                named = Field(kind, name=kind.low)
                meaning = value_meaning(part.spec, named, low)
                node.children.append(bit_node(node.offset, kind.low, packed, mask, low, meaning))
                part.values[kind.low] = self.legal(low, kind.legal, node.offset)
        part.values["zid"] = b""
        if there:
            with self.node(part.node.children, "zid") as node:
                part.values["zid"] = raw = self.c.zid(size)
                node.value, node.meaning = (
                    zid_text(raw),
                    "the id of the node; its lowest byte comes first",
                )

    def by_encoding(self, part: DissectedPart, wanted: Field, node: FieldNode) -> None:
        """A body whose shape the header tells."""
        value: object = None
        match part.header & 0x60:
            case 0x20:
                value = self.c.number("vle")
            case 0x40:
                value = self.c.take(self.length(node, "vle", 0xFFFF_FFFF))
            case 0x60:
                raise Broken("the header says encoding 3, which is reserved", part.node.offset)
        self.tell(part, wanted, node, value)
        if part.values["id"] == 1:
            self.inside(part, wanted, node)

    def inside(self, part: DissectedPart, wanted: Field, node: FieldNode) -> None:
        """Bytes that are a structure of their own; that they are not one breaks no message."""
        name, meaning = INSIDE.get(f"{part.spec.name}.{wanted.name}", ("", ""))
        value = part.values[wanted.name]
        if not name or not isinstance(value, bytes):
            return
        position, end, path = self.c.pos, self.c.end, list(self.path)
        self.c.end, self.c.pos = position, position - len(value)
        try:
            node.fields = self.parts(DissectedPart(self.page.find(name), node))
            self.expect_end(name)
            node.value, node.meaning = None, meaning
        except Broken as error:
            node.children.clear()
            node.meaning = f"not {meaning}: {error} (at {error.offset})"
        self.c.pos, self.c.end, self.path = position, end, path

    def expect_end(self, what: str) -> None:
        """Refuse bytes that are left over."""
        if self.c.left:
            raise Broken(f"{plural(self.c.left, 'byte')} left over behind {what}", self.c.pos)

    # -------------------------------------------------------------------------- extensions

    def extensions(self, part: DissectedPart) -> None:
        """The extensions, in whatever order they come."""
        known = {wanted.extension: wanted for wanted in part.spec.extensions}
        for wanted in known.values():
            part.values |= {name: default for name, _, default in attributes(wanted)}
        kept: list[Fields] = []
        more = bool(part.header & 0x80)
        while more:
            with self.node(part.node.children, "extension") as node:
                tag = self.c.number("u8")
                more = bool(tag & 0x80)
                node.children.append(extension_header(node.offset, tag))
                node.prefix = 1
                if tag & 0x7F in known:
                    self.extension(part, known[tag & 0x7F], node)
                else:
                    kept.append(self.unknown(part.spec, tag, node))
        if part.spec.keeps_unknown:
            part.values["extensions"] = tuple(kept)

    def extension(self, part: DissectedPart, wanted: Field, node: FieldNode) -> None:
        """A known extension."""
        node.name = self.path[-1] = f"ext {wanted.name}"
        if isinstance(wanted.kind, Unit):
            part.values[wanted.name] = True
            node.meaning = note(part.spec, wanted.name, wanted.doc)
        elif isinstance(wanted.kind, Int):
            value = self.value(wanted.kind, node)
            part.values[wanted.name] = node.value = value
            node.meaning = value_meaning(part.spec, wanted, value)
        else:
            with self.node(node.children, "length") as length:
                size = self.c.number("vle", 0xFFFF_FFFF)
                length.value, length.meaning = size, f"{plural(size, 'byte')} follow"
                if size > self.c.left:
                    raise Broken(f"{plural(size, 'byte')} wanted, {self.c.left} left", self.c.pos)
            former, self.c.end = self.c.end, self.c.pos + size
            value = self.value(wanted.kind, node)
            self.expect_end(wanted.name)
            self.c.end = former
            part.values[wanted.name] = value
            node.value = None if isinstance(value, dict) else shown(value)
            node.meaning = value_meaning(part.spec, wanted, value)

    def unknown(self, spec: MessageSpec, tag: int, node: FieldNode) -> Fields:
        """An extension that the declarations do not know."""
        node.name = self.path[-1] = f"ext 0x{tag & 0x7F:02x}"
        start = self.c.pos
        if tag & 0x10:
            raise Broken(
                f"{spec.name} has the extension 0x{tag & 0x7F:02x}, which is unknown and mandatory",
                node.offset,
            )
        match tag & 0x60:
            case 0x20:
                node.value = self.c.number("vle")
            case 0x40:
                node.value = self.c.take(self.c.number("vle", 0xFFFF_FFFF)).hex()
            case 0x60:
                raise Broken("an extension of encoding 3, which is reserved", node.offset)
        node.meaning = "unknown, " + ("kept" if spec.keeps_unknown else "passed over")
        body = self.c.data[start : self.c.pos]
        return {"message": "UnknownExtension", "header": tag & 0x7F, "body": body}
