"""The dissector's findings as aligned text: a tree of rows, five columns wide."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from zenlake.wire.dissector.dissect import Dissection
from zenlake.wire.dissector.meaning import quoted
from zenlake.wire.dissector.node import FieldNode, plural

__all__ = ["HEADS", "TextRow", "rows", "text"]

HEADS = ("at", "bytes", "field", "value", "meaning")

#: How many bytes stand in a line, and how many are shown of a long field.
LINE, MOST = 8, 16
#: A longer value runs into the column of the meaning.
VALUE_WIDTH = 12
#: And one that is longer than this is cut: its bytes are there, and JSON has all of it.
WIDEST = 40


@dataclass(frozen=True, slots=True)
class TextRow:
    """One line: where, which bytes, what, its value and its meaning."""

    at: str
    bytes: str
    branch: str  # the lines of the tree
    name: str
    value: str
    meaning: str
    kind: str  # "message", "field", "bits", "more" (only more bytes) or "broken"


def rows(dissection: Dissection) -> list[TextRow]:
    """All lines of the tree, without a heading."""
    lines: list[TextRow] = []
    for node in dissection.nodes:
        _add(lines, node, "", "")
    if dissection.broken is not None and dissection.path and lines[-1].value == "":
        last = lines[-1]  # the field that could not be read
        lines[-1] = replace(last, at=str(dissection.broken.offset), bytes="✗", kind="broken")
    return lines


def _add(lines: list[TextRow], node: FieldNode, branch: str, below: str) -> None:
    """A node and all below it; `branch` leads to it, `below` continues under it."""
    chunks = _bytes(node)
    at = "" if node.bits or (not node.data and not node.fields) else str(node.offset)
    kind = "bits" if node.bits else "message" if node.fields is not None else "field"
    under = below + "│" if node.children else below
    lines.append(TextRow(at, chunks[0], branch, node.name, _value(node.value), node.meaning, kind))
    for chunk in chunks[1:]:
        lines.append(TextRow("", chunk, under, "", "", "", "more"))
    for child in node.children:
        last = child is node.children[-1]
        _add(lines, child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))


def _bytes(node: FieldNode) -> list[str]:
    """The bytes of a node, in lines; of one whose parts are listed below it, how many."""
    if node.bits:
        return [node.bits]
    if any(child.data for child in node.children):
        short = node.name.startswith("ext ") and len(node.data) <= LINE
        if not short:
            return [plural(len(node.data), "byte")]
    cut = node.data if len(node.data) <= MOST + LINE else node.data[:MOST]
    pairs = [f"{byte:02x}" for byte in cut]
    if 0 < node.prefix < len(pairs):
        pairs[node.prefix - 1 : node.prefix + 1] = [
            "·".join(pairs[node.prefix - 1 : node.prefix + 1])
        ]
    lines: list[str] = [""]
    for pair in pairs:
        if len(lines[-1]) + len(pair) + 1 > 3 * LINE:
            lines.append("")
        lines[-1] += f" {pair}" if lines[-1] else pair
    if len(cut) < len(node.data):
        lines.append(f"… {len(node.data) - len(cut)} more")
    return lines


def _value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        plain = value.isascii() and value.isalnum()
        return _cut(value) if plain else quoted(value, 64)
    return _cut(json.dumps(value))


def _cut(line: str) -> str:
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def text(dissection: Dissection) -> str:
    """The whole page, without colour."""
    lines = [*heading(dissection), "", *[laid_out(cells) for cells in table(dissection)]]
    if dissection.broken is not None:
        lines += ["", *ending(dissection)] if dissection.nodes else ending(dissection)
    return "\n".join(lines) + "\n"


def heading(dissection: Dissection) -> list[str]:
    """What the bytes were taken for."""
    lines = [f"{dissection.title}.", *[f"Note: {note}." for note in dissection.notes]]
    if any("·" in row.bytes for row in rows(dissection)):
        lines.append("What stands before a · is a length, a count or the header of an extension.")
    return lines


def ending(dissection: Dissection) -> list[str]:
    """Where and why the bytes broke; nothing if they did not."""
    if dissection.broken is None:
        return []
    where = f", in {dissection.path}" if dissection.path else ""
    return [f"✗ broken at offset {dissection.broken.offset}{where}: {dissection.broken}"]


def table(dissection: Dissection) -> list[tuple[str, ...]]:
    """The lines in padded columns: place, bytes, branches, name, value, meaning, kind."""
    if not dissection.nodes:
        return []
    lines = [TextRow(*HEADS[:2], "", *HEADS[2:], "head"), *rows(dissection)]
    at = max(len(row.at) for row in lines)
    width = max(len(row.bytes) for row in lines)
    name = max(len(row.branch) + len(row.name) for row in lines)
    value = min(max(len(row.value) for row in lines), VALUE_WIDTH)
    return [
        (
            row.at.rjust(at),
            row.bytes.ljust(width),
            row.branch,
            row.name.ljust(name - len(row.branch)),
            row.value.ljust(value),
            row.meaning,
            row.kind,
        )
        for row in lines
    ]


def laid_out(cells: tuple[str, ...]) -> str:
    """One line from its columns."""
    at, octets, branch, name, value, meaning, _ = cells
    return f"{at}  {octets}  {branch}{name}  {value}  {meaning}".rstrip()
