"""The text of the functions that read a message, and of those that only pass over it."""

# ruff: noqa: E501 (lines that hold the text of other lines)

from __future__ import annotations

from zenlake.wire.declared.attributes import (
    attributes,
    explicit_flags,
    extension_place,
    item_type,
    markers_type,
    spec_attributes,
)
from zenlake.wire.declared.schema import (
    EXT_UNIT,
    EXT_Z64,
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
    Rest,
    Struct,
    Text,
    Unit,
    Zid,
)
from zenlake.wire.generator.emit import CodeBlock, Names, UnionName, by_value, minimum_size, snake


class ReaderText:
    """Writes the function that reads a message, or the one that only passes over it."""

    def __init__(self, spec: MessageSpec, names: Names, union_name: UnionName, skip: bool) -> None:
        """For `spec`; `skip`: make nothing, only find the end."""
        self.spec = spec
        self.names = names
        self.union_name = union_name
        self.skip = skip
        self.out = CodeBlock()
        conditions = [c for f in spec.fields for c in f.conditions]
        self.needed = {c.name for c in conditions} | {
            f.kind.like for f in spec.fields if isinstance(f.kind, Many)
        }
        self.explicit = explicit_flags(spec)

    def text(self) -> str:
        """The function."""
        spec, out = self.spec, self.out
        header = ", header: int" if spec.id >= 0 else ""
        if spec.markers:
            header += f", markers: {markers_type(spec)}"
        verb, result = ("skip", "None") if self.skip else ("read", spec.name)
        with out.under(f"def {verb}_{snake(spec.name)}(r: Reader{header}) -> {result}:"):
            purpose = "Pass over the rest of" if self.skip else "Read the rest of"
            what = "" if spec.id >= 0 else " (a structure)"
            out(f'"""{purpose} {spec.name}{what}."""')
            before = len(out.lines)
            place = extension_place(spec)
            for index, field in enumerate(spec.fields):
                if index == place:
                    self.extensions()
                if not field.extension:
                    self.field(field)
            if place == len(spec.fields):
                self.extensions()
            if not self.skip:
                arguments = ", ".join(f"{name}={name}" for name, _, _ in spec_attributes(spec))
                out(f"return {spec.name}({arguments})")
            elif len(out.lines) == before:
                out("pass")
        return out.text()

    def letter(self, letter: str) -> str:
        """The condition that a flag is set on the wire."""
        bit = self.spec.bit(letter)
        if bit:
            return f"header & 0x{bit:02x}"
        for field in self.spec.fields:
            match field.kind:
                case FlagByte(letters=letters) if letter in letters:
                    return f"{field.name} & 0x{1 << letters.index(letter):02x}"
                case Int(low_flag=low) if low == letter:
                    return f"{field.name}_and_flag & 1"
                case _:
                    pass
        raise KeyError(letter)

    def condition(self, field: Field) -> str:
        """When the field is on the wire."""
        return " and ".join(
            by_value(c, c.name) if c.name else self.letter(c.flag) for c in field.conditions
        )

    def field(self, field: Field) -> None:
        """A plain field."""
        out, name, kind = self.out, field.name, field.kind
        if isinstance(kind, Flag):
            if not self.skip or name in self.needed:
                value = f"({self.letter(kind.letter)}) != 0"
                if kind.within:
                    value = f"{value} if {self.letter(kind.within)} else {field.default!r}"
                out(f"{name} = {value}")
            return
        condition = self.condition(field)
        if not condition:
            self.value(field)
            return
        keep = not self.skip or name in self.needed or isinstance(kind, FlagByte)
        if isinstance(kind, Int) and kind.low_flag:
            out(f"{name}_and_flag = 0")
        if isinstance(kind, FlagByte):
            out(f"{name} = 0")
        elif keep:
            for attribute, annotation, default in attributes(field):
                out(f"{attribute}: {annotation} = {default!r}")
        with out.under(f"if {condition}:"):
            self.value(field)

    def value(self, field: Field) -> None:
        """A plain field that is there."""
        out, name, kind = self.out, field.name, field.kind
        keep = not self.skip or name in self.needed
        match kind:
            case FlagByte(form=form):
                out(f"{name} = r.u8()" if form == "u8" else f"{name} = r.vle(0xFFFFFFFFFFFFFFFF)")
            case HeaderBits(legal=legal):
                out(f"{name} = (header >> 5) & 3")
                if legal != (0, 1, 2, 3):
                    self.check(name, legal)
            case Identity() as packed:
                self.identity(packed)
            case Ntp64():
                out("r.skip_vle()" if self.skip else "seconds, fraction = r.ntp64()")
            case Lease(letter=letter):
                out("r.skip_vle()" if self.skip else "lease = r.vle(0xFFFFFFFFFFFFFFFF)")
                if not self.skip:
                    with out.under(f"if {self.letter(letter)}:"):
                        out("lease *= 1000")
            case CompactId():
                out("compact = (header & 0x80) != 0")
                out("id = 1 + ((header >> 5) & 3) if compact else r.nat()")
            case Int(low_flag=letter) as number if letter:
                out(f"{name}_and_flag = r.vle(0x{number.limit:X})")
                if keep:
                    out(f"{name} = ({name}_and_flag >> 1) & 0x{number.mask:x}")
            case Many() as several:
                self.many(several, name)
            case OneOf(names=names):
                verb = "skip" if self.skip else "read"
                target = "" if self.skip else f"{name} = "
                out(f"{target}{verb}_{self.union_name(names, self.spec.name)}(r)")
            case Messages():
                if not self.skip:
                    out("read: list[Message] = []")
                with out.under("while r.pos < r.end and r.data[r.pos] & 0x1F >= 0x19:"):
                    out("skip_network(r)" if self.skip else "read.append(read_network(r))")
                if not self.skip:
                    out(f"{name} = tuple(read)")
            case ByEncoding():
                self.by_encoding(name)
            case _:
                self.one(kind, name, keep)

    def one(self, kind: Kind, name: str, keep: bool) -> None:
        """A value of a kind that is one value."""
        out = self.out
        if not keep:
            match kind:
                case Int(form="u8"):
                    out("r.skip(1)")
                case Int(form="u16"):
                    out("r.skip(2)")
                case Int():
                    out("r.skip_vle()")
                case Bytes(limit=limit) | Text(limit=limit):
                    out(f"r.skip(r.vle(0x{limit:X}))")
                case Zid():
                    out("r.skip(r.vle(16))")
                case Rest():
                    out("r.pos = r.end")
                case Struct(name=struct):
                    out(f"skip_{snake(struct)}(r)")
                case _:
                    raise TypeError(f"{kind} is not one value")
            return
        out(f"{name} = {self.expression(kind)}")
        if isinstance(kind, Int) and kind.legal:
            self.check(name, kind.legal)

    def expression(self, kind: Kind) -> str:
        """The expression that reads a value."""
        match kind:
            case Int(form=form, limit=limit, wrap=wrap, mask=mask):
                match form:
                    case "u8":
                        text = "r.u8()"
                    case "u16":
                        text = "r.u16()"
                    case "nat":
                        text = "r.nat()"
                    case _:
                        text = f"r.vle(0x{0xFFFF_FFFF_FFFF_FFFF if wrap else limit:X})"
                if mask:
                    return f"{text} & 0x{mask:02x}"
                return f"{text} & 0x{limit:X}" if wrap else text
            case Bytes(limit=limit, form="vle"):
                return f"r.take(r.vle(0x{limit:X}))"
            case Bytes():
                return "r.take(r.nat())"
            case Text(limit=limit, form="vle"):
                return f"r.text(r.vle(0x{limit:X}))"
            case Text():
                return "r.text(r.nat())"
            case Rest(utf8=utf8):
                return "r.text(r.end - r.pos)" if utf8 else "r.rest()"
            case Zid():
                return "r.zid(r.vle(0xFF))"
            case Struct(name=struct):
                return f"read_{snake(struct)}(r)"
            case OneOf(names=names):
                return f"read_{self.union_name(names, self.spec.name)}(r)"
            case _:
                raise TypeError(f"{kind} is not one value")

    def check(self, name: str, legal: tuple[int, ...]) -> None:
        """Refuse a value that means nothing."""
        with self.out.under(f"if {name} not in {legal!r}:"):
            self.out(
                f'raise DecodeError(f"{self.spec.name}.{name} is {{{name}}} before offset {{r.pos}}: '
                f'one of {legal}", r.pos)'
            )

    def identity(self, kind: Identity) -> None:
        """A packed node id."""
        out = self.out
        out("packed = r.u8()")
        if self.skip:
            if kind.optional:
                with out.under("if packed & 0x08:"):
                    out("r.skip((packed >> 4) + 1)")
            else:
                out("r.skip((packed >> 4) + 1)")
            return
        if kind.low:
            out(f"{kind.low} = packed & 0x{(1 << kind.bits) - 1:02x}")
            if kind.legal:
                self.check(kind.low, kind.legal)
        value = "r.zid((packed >> 4) + 1)"
        out(f'zid = {value} if packed & 0x08 else b""' if kind.optional else f"zid = {value}")

    def many(self, kind: Many, name: str) -> None:
        """Several values."""
        out, item = self.out, kind.item
        keep = not self.skip
        size = minimum_size(item, self.names)
        if kind.fixed:
            number = str(kind.fixed)
        elif kind.like:
            number = f"len({kind.like})" if keep else f"{kind.like}_count"
        elif kind.form == "nat":
            out("start = r.pos")
            out(f"{name}_count = r.nat()")
            out(f"r.room({name}_count, {size}, start)")
            number = f"{name}_count"
        else:
            out(f"{name}_count = r.count(0x{kind.limit:X}, {size})")
            number = f"{name}_count"
        if keep:
            out(f"{name}_list: list[{item_type(item)}] = []")
        with out.under(f"for _ in range({number}):"):
            if not keep:
                self.one(item, "_", False)
            elif isinstance(item, Many):
                inner = ReaderText(self.spec, self.names, self.union_name, False)
                inner.out.depth = out.depth
                inner.many(item, "inner")
                out.lines.extend(inner.out.lines)
                out(f"{name}_list.append(inner)")
            else:
                out(f"{name}_list.append({self.expression(item)})")
        if keep:
            out(f"{name} = tuple({name}_list)")

    def by_encoding(self, name: str) -> None:
        """A body whose shape the header tells."""
        out = self.out
        if not self.skip:
            out(f"{name}: int | bytes | None = None")
        out("shape = header & 0x60")
        with out.under("if shape == 0x20:"):
            out("r.skip_vle()" if self.skip else f"{name} = r.vle(0xFFFFFFFFFFFFFFFF)")
        with out.under("elif shape == 0x40:"):
            out("r.skip(r.vle(0xFFFFFFFF))" if self.skip else f"{name} = r.take(r.vle(0xFFFFFFFF))")
        with out.under("elif shape == 0x60:"):
            out(
                f'raise DecodeError(f"{self.spec.name} has the reserved encoding 3 at offset {{r.pos}}", r.pos)'
            )

    # -------------------------------------------------------------------------- extensions

    def extensions(self) -> None:
        """The extensions, in whatever order they come."""
        spec, out = self.spec, self.out
        for field in spec.extensions:
            if not self.skip or field.name in self.needed:
                for attribute, annotation, default in attributes(field):
                    out(f"{attribute}: {annotation} = {default!r}")
        if spec.keeps_unknown and not self.skip:
            out("kept: list[UnknownExtension] | None = None")
        with out.under("if header & 0x80:"), out.under("while True:"):
            out("tag = r.u8()")
            known = [f for f in spec.extensions if not self.skip or self.interesting(f)]
            if known:
                out("kind = tag & 0x7F")
            word = "if"
            for field in known:
                with out.under(f"{word} kind == 0x{field.extension:02x}:"):
                    self.extension(field)
                word = "elif"
            if word == "if":
                self.unknown()
            else:
                with out.under("else:"):
                    self.unknown()
            with out.under("if tag < 0x80:"):
                out("break")
        if spec.keeps_unknown and not self.skip:
            out("extensions = () if kept is None else tuple(kept)")

    def interesting(self, field: Field) -> bool:
        """Whether a skipper must look at an extension: it is mandatory, or others depend on it."""
        return bool(field.extension & 0x10) or field.name in self.needed

    def unknown(self) -> None:
        """An extension that nobody here knows."""
        if self.spec.keeps_unknown and not self.skip:
            with self.out.under("if kept is None:"):
                self.out("kept = []")
            self.out(f'keep_extension(kept, r, tag, "{self.spec.name}")')
        else:
            self.out(f'r.skip_extension(tag, "{self.spec.name}")')

    def extension(self, field: Field) -> None:
        """A known extension."""
        out, name = self.out, field.name
        shape = field.extension & 0x60
        if self.skip and name not in self.needed:
            if shape == EXT_UNIT:
                out("pass")
            elif shape == EXT_Z64:
                out("r.skip_vle()")
            else:
                out("r.skip(r.vle(0xFFFFFFFF))")
            return
        match field.kind:
            case Unit():
                out(f"{name} = True")
            case Int() as kind:
                out(f"{name} = {self.expression(kind)}")
                if kind.legal:
                    self.check(name, kind.legal)
            case Rest():
                out(f"{name} = r.take(r.vle(0xFFFFFFFF))")
            case Struct() as kind:
                out("former = r.narrow(r.vle(0xFFFFFFFF))")
                out(f"{name} = {self.expression(kind)}")
                out(f'r.widen(former, "{self.spec.name}.{name}")')
            case Many() as several:
                out("former = r.narrow(r.vle(0xFFFFFFFF))")
                self.many(several, name)
                out(f'r.widen(former, "{self.spec.name}.{name}")')
            case kind:
                raise TypeError(f"{kind} cannot be an extension")


def reader_text(spec: MessageSpec, names: Names, union_name: UnionName) -> str:
    """The function that reads a message."""
    return ReaderText(spec, names, union_name, skip=False).text()


def skipper_text(spec: MessageSpec, names: Names, union_name: UnionName) -> str:
    """The function that passes over a message without making anything."""
    return ReaderText(spec, names, union_name, skip=True).text()


def union_reader_text(name: str, specs: list[MessageSpec], skip: bool) -> str:
    """The function that reads one of several messages by its header."""
    texts = []
    kinds = sorted({spec.id for spec in specs})
    expected = ", ".join(f"{spec.name} 0x{spec.id:02x}" for spec in specs)
    result = " | ".join(spec.name for spec in specs)
    for verb in ("read", "skip") if skip else ("read",):
        out = CodeBlock()
        with out.under(f"def {verb}_{name}(r: Reader) -> {result if verb == 'read' else 'None'}:"):
            out(f'"""{"Read" if verb == "read" else "Pass over"} one message: {result}."""')
            out("header = r.u8()")
            out("kind = header & 0x1F")
            for kind in order(kinds):
                with out.under(f"if kind == 0x{kind:02x}:"):
                    for spec in (s for s in specs if s.id == kind):
                        call = f"{verb}_{snake(spec.name)}(r, header)"
                        lines = [f"return {call}"] if verb == "read" else [call, "return"]
                        if spec.fixed:
                            letter, value = spec.fixed[0]
                            test = f"header & 0x{spec.bit(letter):02x}"
                            with out.under(f"if {test}:" if value else f"if not {test}:"):
                                for line in lines:
                                    out(line)
                        else:
                            for line in lines:
                                out(line)
            out(
                f'raise DecodeError(f"0x{{kind:02x}} at offset {{r.pos - 1}} is none of: {expected}", '
                "r.pos - 1)"
            )
        texts.append(out.text())
    return "\n\n".join(texts)


def order(kinds: list[int]) -> list[int]:
    """The usual first: Push among network messages, Frame among transport messages."""
    usual = (0x1D, 0x05)
    return [k for k in kinds if k in usual] + [k for k in kinds if k not in usual]
