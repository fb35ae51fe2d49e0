"""The description of a typed table in its log: the keys that its rows are of."""

from __future__ import annotations

from typing import Final

from zenlake.lake.decode.ros2_tables import Ros2Tables
from zenlake.lake.model.typed_table import TypedTable

__all__ = ["OTHER_KEYS", "described_as"]

OTHER_KEYS: Final = "Rows of before are of other keys."
"""In the description of a typed table whose configuration named other keys once."""


def described_as(spec: TypedTable, before: str = "") -> str:
    """The description of a typed table; `before`: what it is now, if it has one."""
    topic = Ros2Tables.described(spec)
    if topic:
        return topic
    words = f"Samples of {spec.format}."
    same = f"{before} ".startswith(f"{words} ") or not before.startswith("Samples of ")
    others = OTHER_KEYS if OTHER_KEYS in before or not same else ""
    return " ".join(filter(None, (words, spec.comment, others)))
