"""The text of the functions that read a decorated message: markers first, then what they mark.

This is the header rule of the 2018 protocol. A marker looks like a message but says something
about the next one; so the reader of a message takes the markers before it along.
"""

# ruff: noqa: E501 (lines that hold the text of other lines)

from __future__ import annotations

from collections.abc import Mapping

from zenlake.wire.declared.attributes import markers_type
from zenlake.wire.declared.schema import MARKERS_MAX, MessageSpec
from zenlake.wire.generator.emit import CodeBlock, snake

#: The usual first: data, by id and by name.
USUAL = (7, 9)


def marked_reader_text(specs: list[MessageSpec], names: Mapping[str, MessageSpec]) -> str:
    """`read_message` for `specs` with `read_markers` and `write_markers` for their decorations."""
    markers = [names[name] for name in specs[0].markers]
    kinds = markers_type(specs[0])
    return "\n\n".join((_reader(specs, markers, kinds), _markers(markers, kinds), _writer(kinds)))


def _reader(specs: list[MessageSpec], markers: list[MessageSpec], kinds: str) -> str:
    """The function that reads one message and the markers before it."""
    out = CodeBlock()
    specs = sorted(specs, key=lambda spec: (spec.id not in USUAL, spec.id))
    expected = ", ".join(f"{s.name} {s.id}" for s in sorted(specs, key=lambda spec: spec.id))
    with out.under(f"def read_message(r: Reader) -> {' | '.join(spec.name for spec in specs)}:"):
        out('"""Read one message and the markers that decorate it."""')
        out("header = r.u8()")
        out("kind = header & 0x1F")
        out(f"markers: {kinds} = ()")
        with out.under(f"if {' or '.join(f'kind == {spec.id}' for spec in markers)}:"):
            out("markers = read_markers(r, header)")
            out("header = r.u8()")
            out("kind = header & 0x1F")
        for spec in specs:
            with out.under(f"if kind == {spec.id}:"):
                out(f"return read_{snake(spec.name)}(r, header, markers)")
        for spec in specs:
            for alias, letter in spec.aliases:
                with out.under(f"if kind == {alias}:"):
                    header = f"0x{spec.id | spec.bit(letter):02x}"
                    out(f"return read_{snake(spec.name)}(r, {header}, markers)")
        out(
            f'raise DecodeError(f"the message {{kind}} at offset {{r.pos - 1}} is none of: {expected}", '
            "r.pos - 1)"
        )
    return out.text()


def _markers(markers: list[MessageSpec], kinds: str) -> str:
    """The function that reads all markers before a message."""
    out = CodeBlock()
    item = " | ".join(spec.name for spec in markers)
    with out.under(f"def read_markers(r: Reader, header: int) -> {kinds}:"):
        out('"""Read the markers that begin with `header`; the next byte begins their message."""')
        out("start = r.pos - 1")
        out(f"markers: list[{item}] = []")
        with out.under("while True:"):
            out("kind = header & 0x1F")
            word = "if"
            for spec in markers:
                with out.under(f"{word} kind == {spec.id}:"):
                    out(f"markers.append(read_{snake(spec.name)}(r, header))")
                word = "elif"
            with out.under("else:"):
                out("r.pos -= 1")
                out("return tuple(markers)")
            with out.under(f"if len(markers) > {MARKERS_MAX}:"):
                out(
                    'raise DecodeError(f"the message at offset {start} has more than '
                    f'{MARKERS_MAX} markers", start)'
                )
            with out.under("if r.pos >= r.end:"):
                out(
                    'raise DecodeError(f"the marker at offset {start} decorates nothing: '
                    'the bytes end at {r.end}", start)'
                )
            out("header = r.u8()")
    return out.text()


def _writer(kinds: str) -> str:
    """The function that writes the markers before a message."""
    out = CodeBlock()
    with out.under(f"def write_markers(markers: {kinds}, w: Writer) -> None:"):
        out('"""Append the markers of a message, in their order."""')
        with out.under(f"if len(markers) > {MARKERS_MAX}:"):
            out(
                f'raise EncodeError(f"a message has at most {MARKERS_MAX} markers, '
                'not {len(markers)}")'
            )
        with out.under("for marker in markers:"):
            out("decoration: Message = marker")
            out("decoration.write(w)")
    return out.text()
