"""Instants as text in ISO 8601, with every digit of their second."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from typing import Final

from zenlake.clock.unix_time import EPOCH
from zenlake.lake.model.decoder import Reason, Undecodable

__all__ = ["epoch_text", "instant_text", "iso_text"]

MOST_DIGITS: Final = 400
"""More than any double needs, however small."""

_FRACTION: Final = re.compile(r"[.,](\d+)", re.ASCII)


def instant_text(seconds: int, fraction: str) -> str:
    """Return an instant as text; `fraction` has the digits of its second behind the point."""
    try:
        whole = EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        words = f"a time {seconds} seconds from 1970 is not in the years 1 to 9999"
        raise Undecodable(words, Reason.RANGE) from error
    return f"{whole.isoformat()[:-6]}{_shown(fraction)}+00:00"


def epoch_text(seconds: float) -> str:
    """Return the instant so many seconds after 1970, with all digits of a double."""
    if not abs(seconds) < 1e12:
        raise Undecodable(f"a time {seconds} seconds from 1970", Reason.RANGE)
    with localcontext(prec=MOST_DIGITS):
        exact = Decimal(repr(seconds))
        whole = math.floor(exact)
        fraction = format(exact - whole, "f").partition(".")[2]
    return instant_text(whole, fraction)


def iso_text(text: str) -> str:
    """Return a time in ISO 8601 as `datetime` writes it, but with all digits of its second."""
    try:
        moment = datetime.fromisoformat(_FRACTION.sub("", text, count=1))
    except ValueError as error:
        raise Undecodable(f"not a time: {error}") from error
    found = _FRACTION.search(text)
    clock = moment.replace(tzinfo=None).isoformat()
    return clock + _shown(found[1] if found else "") + moment.isoformat()[len(clock) :]


def _shown(fraction: str) -> str:
    """Return the digits with their point: none, six, or as many as there are."""
    digits = fraction.rstrip("0")
    return f".{digits:0<6}" if digits else ""
