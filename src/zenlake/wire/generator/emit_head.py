"""The text of what lanes need that make no message: heads, and the numbers by name.

A lane that handles a message where it lies wants to know how it begins, and where its value is.
So a message that is declared with a `head` gets two functions beside its class: one that writes
all that stands before that field, and one that passes over it. The numbers of all messages are a
module of their own (`zenlake.wire.numbers`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from zenlake.wire.declared.attributes import explicit_flags, spec_attributes
from zenlake.wire.declared.schema import REQUIRED, MessageSpec, OneOf, ProtocolPage
from zenlake.wire.generator.emit import CodeBlock, Names, UnionName, by_value, snake
from zenlake.wire.generator.emit_class import ClassText
from zenlake.wire.generator.emit_reader import ReaderText

NUMBERS_HEAD = '''"""The numbers of Zenoh 1.x by name: messages, their flags, their extensions.

Generated from `wire/declared` by `make wire`. Do not edit: change the declarations. Lanes that read
and write messages in place use these; compiled, each is the number itself.
"""

from __future__ import annotations

from typing import Final

#: Of a header: which message it is, and whether extensions follow. Of an extension's header: which
#: it is, and whether another follows.
ID: Final = 0x1F
EXTENSION: Final = 0x7F
MORE: Final = 0x80
'''


def head_text(spec: MessageSpec, names: Names, union_name: UnionName) -> str:
    """Two functions: write what stands before the field `spec.head`, and pass over it.

    The second only where a value is found by it: there, or in a body with a head of its own.
    """
    at = [field.name for field in spec.fields].index(spec.head)
    head = spec.fields[at]
    before = spec.fields[:at]
    # What takes the place of the field (`unless`) cannot be written.
    instead = {condition.name for condition in head.conditions}
    written = replace(
        spec, fields=tuple(f for f in before if f.name not in instead), keeps_unknown=False
    )
    lines = ClassText(written, names, union_name)
    lines.writer()
    arguments = ", ".join(
        f"{name}: {kind}" + ("" if default is REQUIRED else f" = {default!r}")
        for name, kind, default in spec_attributes(written)
    )
    out = CodeBlock()
    with out.under(f"def {snake(spec.name)}_head(*, {arguments}) -> bytes:"):
        out(f'"""All of {spec.name} that stands before its {spec.head}."""')
        out("w = Writer()")
        for line in lines.out.lines[2:-1]:
            own = re.sub(r"\bself\.", "", line.removeprefix("    "))
            if not re.fullmatch(r" *(\w+) = \1", own):
                out(own)
        out("return w.getvalue()")
    if isinstance(head.kind, OneOf) and not any(names[name].head for name in head.kind.names):
        return out.text()
    out("")
    out("")
    reader = ReaderText(replace(spec, fields=before), names, union_name, True)
    reader.needed |= instead
    there = " and ".join(by_value(c, c.name) for c in head.conditions) or "True"
    with out.under(f"def skip_{snake(spec.name)}_head(r: Reader, header: int) -> bool:"):
        passed = f"Pass over what stands before the {spec.head} of {spec.name}"
        out(f'"""{passed}; whether that follows."""')
        for line in reader.text().splitlines()[2:]:
            out(line.removeprefix("    "))
        out(f"return {there}")
    return out.text()


def numbers_text(pages: Iterable[ProtocolPage]) -> str:
    """The module of all numbers."""
    out = CodeBlock()
    for page in pages:
        for spec in page.specs.values():
            if spec.id < 0:
                continue
            out("")
            name = snake(spec.name).upper()
            out(f"{name}: Final = 0x{spec.id:02X}")
            for letter in spec.flags:
                meaning = flag_name(spec, letter) if letter else ""
                if meaning:
                    out(f"{name}_FLAG_{meaning.upper()}: Final = 0x{spec.bit(letter):02X}")
            for field in spec.extensions:
                out(f"{name}_EXT_{field.name.upper()}: Final = 0x{field.extension:02X}")
        if page.name == "network":
            first = min(spec.id for spec in page.specs.values() if spec.id >= 0)
            out("")
            out("#: Messages inside frames count from here on; transport messages lie below.")
            out(f"FIRST_NETWORK: Final = 0x{first:02X}")
    return NUMBERS_HEAD + out.text()


def flag_name(spec: MessageSpec, letter: str) -> str:
    """What a flag says: the field that it is, or that it announces; empty if neither."""
    explicit = explicit_flags(spec)
    if letter in explicit:
        return explicit[letter].name
    for field in spec.fields:
        if any(condition.flag == letter for condition in field.conditions):
            return field.name
    return ""
