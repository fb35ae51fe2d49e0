"""Texts of strangers on terminals and in logs: one line, and nothing that commands a terminal.

Keys, user names, schemas of encodings, errors: all of them may have escape sequences, line breaks
and characters that turn the direction of what follows. Those are shown by their numbers instead.
"""

from __future__ import annotations

import json

__all__ = ["json_text", "printable", "printable_lines"]


def printable(text: str) -> str:
    """Return a text in one line, without anything that moves a cursor or hides what follows."""
    if text.isprintable():
        return text
    return "".join(
        [mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text]
    )


def printable_lines(text: str) -> str:
    """Return a text whose line breaks are meant, each line as `printable` has it."""
    return "\n".join([printable(line) for line in text.split("\n")])


def json_text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON that a terminal can show: all else is escaped as JSON escapes it."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    return "".join(
        [mark if mark.isprintable() or mark == "\n" else json.dumps(mark)[1:-1] for mark in text]
    )
