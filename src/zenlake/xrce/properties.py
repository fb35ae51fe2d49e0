"""What the standard properties say.

A property's value is defined as a prefix of its bytes: what trails is ignored. Ids that nobody
here knows are passed over. If an id comes twice, the first one counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from zenlake.errors import DecodeError
from zenlake.wire.cursor import Reader, Writer
from zenlake.xrce.codec import Property

VENDOR = 0  # two bytes, as DDSI has them
CONDUITS = 2  # how many conduits are supported: the highest id and one more
SN_LENGTH = 4  # bits of a sequence number
RELIABILITY = 6
DURABILITY = 8  # 0 volatile, 1 transient, 2 persistent
COMMIT_MODE = 10  # how many commits may be without their result
AUTHENTICATION = 12  # opaque
CLIENT_HASH = 14  # opaque

#: What a numeric property is when it is absent.
DEFAULTS = {CONDUITS: 1, SN_LENGTH: 14, RELIABILITY: 1, DURABILITY: 0, COMMIT_MODE: 0}


def value_of(properties: Iterable[Property], id: int) -> bytes | None:
    """The bytes of a property, or None if it is absent."""
    for item in properties:
        if item.id == id:
            return item.value
    return None


def number_of(properties: Iterable[Property], id: int) -> int:
    """The value of a numeric property, or its default if it is absent."""
    value = value_of(properties, id)
    if value is None:
        return DEFAULTS[id]
    try:
        return Reader(value).nat()
    except DecodeError as error:
        raise DecodeError(
            f"property {id} is {value.hex()!r}, which begins with no number"
        ) from error


def number(id: int, value: int) -> Property:
    """A numeric property."""
    w = Writer()
    w.nat(value)
    return Property(id=id, value=w.getvalue())
