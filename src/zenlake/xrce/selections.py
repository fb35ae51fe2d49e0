"""Selections: a resource, its tags, and a predicate on the content.

    zenoh://myhouse/*/LightStatus#{transient}?{luminosity>0}

`#` and `?` may be left out when nothing follows them, and a predicate may stand in the braces of
the tags: the paper's own example does.
"""

from __future__ import annotations

from dataclasses import dataclass

from zenlake.xrce.names import Name, parse_name


@dataclass(frozen=True, slots=True)
class Selected:
    """What a selection asks for."""

    name: Name
    predicate: str = ""


def parse_selection(text: str) -> Selected:
    """Read a selection; raises `DecodeError` for what is none. The predicate is not looked at."""
    body = text
    predicate = ""
    if "?{" in text and text.endswith("}"):
        body, _, predicate = text.partition("?{")
        predicate = predicate[:-1].strip()
        body = body.removesuffix("#")
    elif text.endswith("#?"):
        body = text[:-2]
    elif text.endswith("?{}"):
        body = text[:-3]
    path, hash, marks = body.partition("#")
    if hash and marks.startswith("{") and marks.endswith("}") and not _plain(marks[1:-1]):
        if not predicate:
            predicate = marks[1:-1].strip()
        body = path
    return Selected(parse_name(body), predicate)


def _plain(marks: str) -> bool:
    return all(c.isalnum() or c in "_-," for c in marks)
