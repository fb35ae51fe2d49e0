"""CBOR (RFC 8949): the entries of a map are fields; anything else is one value.

What tags say is kept to the last digit: times as text in ISO 8601, decimal fractions as text,
binary fractions as doubles. Sets are lists. Other tags leave the value that they stand before.
"""

from __future__ import annotations

import io
import math
from decimal import Decimal
from typing import Final

import cbor2

from zenlake.lake.decode.formats.bounded import named, plain_value
from zenlake.lake.decode.formats.instants import epoch_text, instant_text, iso_text
from zenlake.lake.model.decoder import Fields, Reason, Undecodable
from zenlake.lake.model.value_types import EXACT

__all__ = ["Cbor"]

MOST_DEPTH: Final = 400
"""Of values inside values, as the library reads them; `bounded` allows fewer."""


class Cbor:
    """Reads `application/cbor`."""

    encodings = ("application/cbor",)

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The entries of the map by the text of their keys, or the value."""
        return named(self.value(payload))

    def value(self, payload: bytes) -> object:
        """Return the value as columns hold it; raises `Undecodable`."""
        read = cbor2.CBORDecoder(
            io.BytesIO(payload),
            semantic_decoders=_TAGS,
            max_depth=MOST_DEPTH,
            allow_duplicate_keys=False,
        )
        try:
            value = read.decode()
        except Exception as error:  # a tag may run code of its own, and raise what it likes
            raise _reason(error) from error
        try:
            read.read(1)
        except cbor2.CBORDecodeEOF:
            return plain_value(value, _untagged)
        raise Undecodable("not CBOR: bytes follow the value")


def _reason(error: Exception) -> Undecodable:
    """Return why a payload is refused; what a tag of ours refused stands behind the error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Undecodable):
            return cause
        cause = cause.__cause__
    twice = "uplicate map key" in str(error)
    return Undecodable(f"not CBOR: {error}", Reason.NAME if twice else Reason.PAYLOAD)


def _untagged(value: object) -> object:
    if isinstance(value, cbor2.CBORTag):
        return value.value
    return None if value is cbor2.undefined else str(value)


def _as_it_is(value: object, immutable: bool) -> object:
    return value


def _time(value: object, immutable: bool) -> object:
    if not isinstance(value, str):
        raise Undecodable("a time that is no text")
    return iso_text(value)


def _epoch(value: object, immutable: bool) -> object:
    if isinstance(value, float):
        return epoch_text(value)
    if not isinstance(value, int):
        raise Undecodable("seconds since 1970 that are no number")
    return instant_text(value, "")


def _decimal(value: object, immutable: bool) -> object:
    exponent, mantissa = _pair(value)
    return str(Decimal(f"{mantissa}E{exponent}"))  # not by the context, which rounds


def _binary(value: object, immutable: bool) -> object:
    exponent, mantissa = _pair(value)
    if abs(mantissa) <= EXACT and abs(exponent) <= 1000:
        return math.ldexp(mantissa, exponent)
    raise Undecodable(f"{mantissa} times 2 to the {exponent} may be no double", Reason.RANGE)


def _pair(value: object) -> tuple[int, int]:
    if isinstance(value, list | tuple) and len(value) == 2:
        exponent, mantissa = value
        if isinstance(exponent, int) and isinstance(mantissa, int):
            return exponent, mantissa
    raise Undecodable("a fraction that is no pair of whole numbers")


_TAGS: Final = {
    0: _time,
    1: _epoch,
    4: _decimal,
    5: _binary,
    35: _as_it_is,  # the text of a pattern
    36: _as_it_is,  # the text of a mail
    258: _as_it_is,  # the items of a set
}
