"""The text of a message's class: constructor, `write`, `to_dict`."""

# ruff: noqa: E501 (lines that hold the text of other lines)

from __future__ import annotations

from zenlake.wire.declared.attributes import (
    attributes,
    explicit_flags,
    extension_place,
    spec_attributes,
)
from zenlake.wire.declared.schema import (
    REQUIRED,
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
from zenlake.wire.generator.emit import (
    CodeBlock,
    Names,
    UnionName,
    by_value,
    flag_conditions,
    present,
)


class ClassText:
    """Writes the class of a message."""

    def __init__(self, spec: MessageSpec, names: Names, union_name: UnionName) -> None:
        """For `spec`, which may use the structures `names`."""
        self.spec = spec
        self.names = names
        self.union_name = union_name
        self.out = CodeBlock()

    def text(self) -> str:
        """The class."""
        spec, out = self.spec, self.out
        attrs = spec_attributes(spec)
        with out.under(f"class {spec.name}(Message):"):
            out(f'"""{spec.doc}"""')
            out("")
            slots = ", ".join(f'"{name}"' for name, _, _ in sorted(attrs))
            out(f"__slots__ = ({slots}{',' if len(attrs) == 1 else ''})")
            out("")
            out(f'NAME: ClassVar[str] = "{spec.name}"')
            fields = ", ".join(f'"{name}"' for name, _, _ in attrs)
            out(f"FIELDS: ClassVar[tuple[str, ...]] = ({fields}{',' if len(attrs) == 1 else ''})")
            out("")
            self.constructor(attrs)
            self.writer()
            self.dictionary()
        return out.text()

    def constructor(self, attrs: list[tuple[str, str, object]]) -> None:
        """`__init__`, by keyword."""
        if not attrs:
            return
        arguments = ", ".join(
            f"{name}: {kind}" + ("" if default is REQUIRED else f" = {default!r}")
            for name, kind, default in attrs
        )
        with self.out.under(f"def __init__(self, *, {arguments}) -> None:"):
            self.out('"""Make it from its fields, in wire order."""')
            for name, kind, _ in attrs:
                self.out(f"self.{name}: {kind} = {name}")
        self.out("")

    # ------------------------------------------------------------------------------- write

    def condition(self, field: Field) -> str:
        """When the field is written."""
        explicit = explicit_flags(self.spec)
        parts: list[str] = []
        for condition in field.conditions:
            if condition.name:
                parts.append(by_value(condition, f"self.{condition.name}"))
            elif condition.flag in explicit:
                parts.append(f"self.{explicit[condition.flag].name}")
            else:
                parts.append(f"flag_{condition.flag.lower()}")
        return " and ".join(parts)

    def bit_condition(self, letter: str) -> str:
        """When a flag is set, or nothing if it never is."""
        explicit = explicit_flags(self.spec)
        if letter in explicit:
            kind = explicit[letter].kind
            own = f"self.{explicit[letter].name}"
            assert isinstance(kind, Flag)
            return f"{self.bit_condition(kind.within)} and {own}" if kind.within else own
        return f"flag_{letter.lower()}" if letter in flag_conditions(self.spec) else ""

    def writer(self) -> None:
        """`write`."""
        spec, out = self.spec, self.out
        with out.under("def write(self, w: Writer) -> None:"):
            out('"""Append its bytes."""')
            before = len(out.lines)
            if spec.markers:
                with out.under("if self.markers:"):
                    out("write_markers(self.markers, w)")
            for letter, condition in flag_conditions(spec).items():
                out(f"flag_{letter.lower()} = {condition}")
            if spec.id >= 0:
                self.header()
            block = self.extension_place()
            for index, field in enumerate(spec.fields):
                if index == block:
                    self.extensions()
                if not field.extension:
                    self.write_field(field)
            if block == len(spec.fields):
                self.extensions()
            if len(out.lines) == before:
                out("pass")
        out("")

    def extension_place(self) -> int:
        """Before which field the extensions stand."""
        return extension_place(self.spec)

    def header(self) -> None:
        """The header byte."""
        spec, out = self.spec, self.out
        base = spec.id
        for letter, value in spec.fixed:
            base |= spec.bit(letter) if value else 0
        out(f"header = 0x{base:02x}")
        for letter in spec.flags[: 2 if spec.extensible else 3]:
            if not letter or letter in dict(spec.fixed):
                continue
            condition = self.bit_condition(letter)
            if condition:
                with out.under(f"if {condition}:"):
                    out(f"header |= 0x{spec.bit(letter):02x}")
        for field in spec.fields:
            match field.kind:
                case HeaderBits(legal=legal):
                    with out.under(f"if self.{field.name} not in {legal!r}:"):
                        out(
                            f'raise EncodeError(f"{spec.name}.{field.name} is {{self.{field.name}}}: one of {legal}")'
                        )
                    out(f"header |= self.{field.name} << 5")
                case Lease(letter=letter):
                    with out.under("if self.lease % 1000 == 0:"):
                        out(f"header |= 0x{spec.bit(letter):02x}")
                case ByEncoding():
                    out(f"body = self.{field.name}")
                    with out.under("if body is not None:"):
                        out("header |= 0x20 if isinstance(body, int) else 0x40")
                case CompactId():
                    with out.under("if self.compact:"):
                        with out.under("if not 1 <= self.id <= 4:"):
                            out(
                                'raise EncodeError(f"a compact id is 1 to 4, not {self.id}: use compact=False")'
                            )
                        out("header |= 0x80 | ((self.id - 1) << 5)")
                case _:
                    pass
        if spec.extensible and (spec.extensions or spec.keeps_unknown):
            counted = [f"({present(f.name, f.default)})" for f in spec.extensions]
            if spec.keeps_unknown:
                counted.append("len(self.extensions)")
            self.count(counted)
            with out.under("if more:"):
                out("header |= 0x80")
        out("w.u8(header)")

    def count(self, counted: list[str]) -> None:
        """`more`: how many extensions are still to come."""
        kept = counted.pop() if self.spec.keeps_unknown else "0"
        self.out(f"more = {kept}")
        for condition in counted:
            with self.out.under(f"if {condition[1:-1]}:"):
                self.out("more += 1")

    def extensions(self) -> None:
        """The extensions that are there, each telling whether another follows."""
        spec, out = self.spec, self.out
        for field in spec.extensions:
            with out.under(f"if {present(field.name, field.default)}:"):
                out("more -= 1")
                out(f"w.u8(0x{field.extension:02x} | (0x80 if more else 0))")
                self.write_extension(field)
        if spec.keeps_unknown:
            with out.under("for extension in self.extensions:"):
                out("more -= 1")
                out("extension.append(w, more > 0)")

    def write_extension(self, field: Field) -> None:
        """The body of one extension."""
        out, name = self.out, field.name
        match field.kind:
            case Unit():
                pass
            case Int() as kind:
                self.write_int(kind, f"self.{name}")
            case Rest():
                out(f"w.sized(self.{name}, 0xFFFFFFFF)")
            case Struct():
                out("place = w.hold()")
                out("start = w.size")
                out(f"self.{name}.write(w)")
                out("w.fill(place, start, 0xFFFFFFFF)")
            case Many(item=item, fixed=fixed):
                with out.under(f"if len(self.{name}) != {fixed}:"):
                    out(
                        f'raise EncodeError(f"{self.spec.name}.{name} has {{len(self.{name})}} numbers: {fixed}")'
                    )
                out("place = w.hold()")
                out("start = w.size")
                with out.under(f"for item in self.{name}:"):
                    self.write_value(item, "item")
                out("w.fill(place, start, 0xFFFFFFFF)")
            case kind:
                raise TypeError(f"{kind} cannot be an extension")

    def write_field(self, field: Field) -> None:
        """A plain field, if it is there."""
        if isinstance(field.kind, Flag | HeaderBits):
            return
        condition = self.condition(field)
        if condition:
            with self.out.under(f"if {condition}:"):
                self.write_present(field)
            if self.spec.refuses_stray and all(c.name for c in field.conditions):
                self.refuse_stray(field)
        else:
            self.write_present(field)

    def refuse_stray(self, field: Field) -> None:
        """Refuse a value that the wire has no place for, rather than lose it."""
        reasons = " and ".join(f"{c.name} is {{self.{c.name}}}" for c in field.conditions)
        with self.out.under(f"elif {present(field.name, field.default)}:"):
            self.out(
                f'raise EncodeError(f"{self.spec.name}.{field.name} has no place if {reasons}: '
                'leave it out")'
            )

    def write_present(self, field: Field) -> None:
        """A plain field that is there."""
        out, name, kind = self.out, field.name, field.kind
        match kind:
            case FlagByte(letters=letters, form=form):
                out(f"{name} = 0")
                for index, letter in enumerate(letters):
                    with out.under(f"if {self.bit_condition(letter)}:"):
                        out(f"{name} |= 0x{1 << index:02x}")
                out(f"w.u8({name})" if form == "u8" else f"w.vle({name}, 0xFF)")
            case Identity() as packed:
                self.write_identity(packed)
            case Ntp64():
                out("w.ntp64(self.seconds, self.fraction)")
            case Lease():
                out(
                    "w.vle(self.lease // 1000 if self.lease % 1000 == 0 else self.lease, 0xFFFFFFFFFFFFFFFF)"
                )
            case CompactId():
                with out.under("if not self.compact:"):
                    out("w.nat(self.id)")
            case Int(low_flag=letter) as number if letter:
                with out.under(f"if self.{name} < 0 or self.{name} > 0x{number.mask:x}:"):
                    out(
                        f'raise EncodeError(f"{self.spec.name}.{name} is {{self.{name}}}: 0 to {number.mask}")'
                    )
                out(
                    f"w.vle((self.{name} << 1) | (1 if {self.bit_condition(letter)} else 0), 0x{number.limit:X})"
                )
            case Int() as number if field.default is None:
                out(f"value = self.{name}")
                out("assert value is not None")
                self.write_int(number, "value")
            case Many(like=like) if like:
                with out.under(f"if len(self.{name}) != len(self.{like}):"):
                    out(f'raise EncodeError(f"{self.spec.name}.{name}: one for each of {like}")')
                with out.under(f"for {name[:-1]} in self.{name}:"):
                    self.write_value(kind.item, name[:-1])
            case Many(item=item, limit=limit, form=form):
                source = f"self.{name}"
                if field.default is None:
                    out(f"{name} = self.{name}")
                    out(f"assert {name} is not None")
                    source = name
                out(
                    f"w.nat(len({source}))"
                    if form == "nat"
                    else f"w.vle(len({source}), 0x{limit:X})"
                )
                with out.under(f"for {name[:-1]} in {source}:"):
                    self.write_value(item, name[:-1])
            case Struct() if field.default is None:
                out(f"{name} = self.{name}")
                with out.under(f"if {name} is not None:"):
                    out(f"{name}.write(w)")
            case OneOf():
                # By its base class: a direct call through the table of methods.
                out(f"{name}: Message = self.{name}")
                out(f"{name}.write(w)")
            case Messages():
                with out.under(f"for {name[:-1]} in self.{name}:"):
                    out(f"{name[:-1]}.write(w)")
            case ByEncoding():
                with out.under("if isinstance(body, int):"):
                    out("w.vle(body, 0xFFFFFFFFFFFFFFFF)")
                with out.under("elif body is not None:"):
                    out("w.sized(body, 0xFFFFFFFF)")
            case _:
                self.write_value(kind, f"self.{name}")

    def write_identity(self, kind: Identity) -> None:
        """A packed node id."""
        out = self.out
        low = ""
        if kind.low:
            legal = kind.legal or tuple(range(1 << kind.bits))
            with out.under(f"if self.{kind.low} not in {legal!r}:"):
                out(
                    f'raise EncodeError(f"{self.spec.name}.{kind.low} is {{self.{kind.low}}}: one of {legal}")'
                )
            low = f" | self.{kind.low}"
        if kind.optional:
            with out.under("if self.zid:"):
                out(f"w.u8(((len(self.zid) - 1) << 4) | 0x08{low})")
                out("w.zid(self.zid)")
            with out.under("else:"):
                out(f"w.u8(self.{kind.low})")
            return
        with out.under("if not 1 <= len(self.zid) <= 16:"):
            out('raise EncodeError(f"a node id has 1 to 16 bytes, not {len(self.zid)}")')
        out(f"w.u8(((len(self.zid) - 1) << 4){low})")
        out("w.zid(self.zid)")

    def write_int(self, kind: Int, value: str) -> None:
        """A number."""
        if kind.legal:
            with self.out.under(f"if {value} not in {kind.legal!r}:"):
                self.out(
                    f'raise EncodeError(f"{self.spec.name}: {{{value}}} is not one of {kind.legal}")'
                )
        match kind.form:
            case "u8" if 0 < kind.mask < 0x80:
                self.out(f"w.vle({value}, 0x{kind.mask:X})")  # one byte, as it is that small
            case "u8":
                self.out(f"w.u8({value})")
            case "u16":
                self.out(f"w.u16({value})")
            case "nat":
                self.out(f"w.nat({value})")
            case _:
                limit = kind.mask or kind.limit
                self.out(f"w.vle({value}, 0x{limit:X})")

    def write_value(self, kind: Kind, value: str) -> None:
        """A value of a kind that is one value."""
        out = self.out
        match kind:
            case Int():
                self.write_int(kind, value)
            case Bytes(limit=limit, form="vle"):
                out(f"w.sized({value}, 0x{limit:X})")
            case Bytes():
                out(f"w.nat(len({value}))")
                out(f"w.raw({value})")
            case Text(limit=limit, form="vle"):
                out(f"w.text({value}, 0x{limit:X})")
            case Text():
                out(f"encoded = w.utf8({value})")
                out("w.nat(len(encoded))")
                out("w.raw(encoded)")
            case Rest(utf8=utf8):
                out(f"w.raw(w.utf8({value}))" if utf8 else f"w.raw({value})")
            case Zid():
                out(f"w.vle(len({value}), 16)")
                out(f"w.zid({value})")
            case Struct():
                out(f"{value}.write(w)")
            case OneOf():
                out(f"item: Message = {value}")
                out("item.write(w)")
            case Many(item=item, form=form):
                out(f"w.nat(len({value}))" if form == "nat" else f"w.vle(len({value}), 0xFFFFFFFF)")
                with out.under(f"for inner in {value}:"):
                    self.write_value(item, "inner")
            case _:
                raise TypeError(f"{kind} is not one value")

    # ----------------------------------------------------------------------------- to_dict

    def dictionary(self) -> None:
        """`to_dict`."""
        spec, out = self.spec, self.out
        with out.under("def to_dict(self) -> dict[str, object]:"):
            out('"""Its fields as JSON can hold them; what is absent on the wire is left out."""')
            out(f'fields: dict[str, object] = {{"message": "{spec.name}"}}')
            if spec.markers:
                with out.under("if self.markers:"):
                    out('fields["markers"] = [marker.to_dict() for marker in self.markers]')
            for field in spec.fields:
                by_name = [c for c in field.conditions if c.name]
                for name, _, default in attributes(field):
                    condition = ""
                    if by_name and len(by_name) == len(field.conditions):
                        condition = self.condition(field)
                    elif field.conditions or field.extension or default is None:
                        condition = "" if default is REQUIRED else present(name, default)
                    line = f'fields["{name}"] = {self.shown(field, name)}'
                    if condition:
                        with out.under(f"if {condition}:"):
                            out(line)
                    else:
                        out(line)
            if spec.keeps_unknown:
                with out.under("if self.extensions:"):
                    out('fields["extensions"] = [item.to_dict() for item in self.extensions]')
            out("return fields")

    def shown(self, field: Field, name: str) -> str:
        """How an attribute is shown."""
        value = f"self.{name}"
        if isinstance(field.kind, Zid) or (isinstance(field.kind, Identity) and name == "zid"):
            return f"zid_text({value})"
        match field.kind:
            case Bytes() | Rest(utf8=False):
                return f"{value}.hex()"
            case Struct() | OneOf():
                return f"{value}.to_dict()"
            case Messages() | Many(item=Struct() | OneOf()):
                return f"[item.to_dict() for item in {value}]"
            case Many(item=Bytes()):
                return f"[item.hex() for item in {value}]"
            case Many():
                return f"list({value})"
            case ByEncoding():
                return f"{value}.hex() if isinstance({value}, bytes) else {value}"
            case _:
                return value
