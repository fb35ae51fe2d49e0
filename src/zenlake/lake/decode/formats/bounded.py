"""What libraries make of bytes, as values that columns can hold, up to a bound.

References let a value stand in many places though it was written once, so a small payload may
become a huge value, or one without an end; the bound is on what is walked over.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any, Final

from zenlake.lake.model.decoder import WHOLE, Fields, Reason, Undecodable

__all__ = ["MOST_DEPTH", "MOST_ITEMS", "fields_of", "library", "named", "plain_value"]

MOST_ITEMS: Final = 100_000
MOST_DEPTH: Final = 200

Other = Callable[[object], object]
"""A value in the place of one that no column holds."""


def fields_of(value: object, other: Other = str) -> Fields:
    """The entries of a mapping by the text of their keys, or the value as one field."""
    return named(plain_value(value, other))


def named(value: object) -> Fields:
    """Return the entries of a mapping, or any other plain value as one field."""
    return value if isinstance(value, dict) else {WHOLE: value}


def plain_value(value: object, other: Other = str) -> object:
    """Return a value made of what columns hold, with the texts of keys; raises `Undecodable`."""
    return _plain(value, [MOST_ITEMS], other, 0)


def library(module: str, what: str) -> Any:
    """A module of the extra `formats`; where it is missing the samples wait in quarantine."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Undecodable(
            f"reading {what} needs {module.partition('.')[0]}; run: pip install "
            "'zenlake[formats]', then `zenlake lake rebuild` for this table",
            Reason.DECODER,
        ) from error


def _plain(value: object, room: list[int], other: Other, depth: int) -> object:
    room[0] -= 1
    if room[0] < 0:
        raise Undecodable(f"more than {MOST_ITEMS:,} values, those that are repeated counted")
    if depth > MOST_DEPTH:
        raise Undecodable(f"values inside values, more than {MOST_DEPTH} deep")
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Mapping):
        named = {str(k): _plain(v, room, other, depth + 1) for k, v in value.items()}
        if len(named) < len(value):
            raise Undecodable("two keys are the same as text", Reason.NAME)
        return named
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, room, other, depth + 1) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return _plain(other(value), room, other, depth + 1)
