"""JSON: the members of an object are fields; anything else is one value.

A number with a fraction or an exponent becomes the nearest double, as in other readers of JSON.
What would be another value than was written is refused: a name twice in one object, of which only
one could be kept, and a number beyond all doubles.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from zenlake.lake.model.decoder import WHOLE, Fields, Reason, Undecodable

__all__ = ["Json"]


def _refuse(text: str) -> NoReturn:
    raise Undecodable(f"{text} is not a number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Undecodable(f"{digits[:40]} is beyond all doubles", Reason.RANGE)
    return number


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Undecodable(f"'{name[:80]}' stands twice in one object", Reason.NAME, name)
            seen.add(name)
    return members


_STRICT: Final = json.JSONDecoder(
    parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_named_once
)
"""Made once: making one takes longer than reading a small payload."""


class Json:
    """Reads `application/json` and `text/json`."""

    encodings = ("application/json", "text/json")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The members of the object, or the value."""
        try:
            value = _STRICT.decode(payload.decode(json.detect_encoding(payload), "surrogatepass"))
        except Undecodable:
            raise
        except (ValueError, RecursionError) as error:
            raise Undecodable(f"not JSON: {error}") from error
        return value if isinstance(value, dict) else {WHOLE: value}
