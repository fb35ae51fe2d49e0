"""JSON: the members of an object are fields; anything else is one value."""

from __future__ import annotations

import json
from typing import Final, NoReturn

from zenlake.lake.model.decoder import WHOLE, Fields, Undecodable

__all__ = ["Json"]


def _refuse(text: str) -> NoReturn:
    raise Undecodable(f"{text} is not a number of JSON")


_STRICT: Final = json.JSONDecoder(parse_constant=_refuse)
"""Made once: making one takes longer than reading a small payload."""


class Json:
    """Reads `application/json` and `text/json`."""

    encodings = ("application/json", "text/json")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The members of the object, or the value."""
        try:
            value = _STRICT.decode(payload.decode(json.detect_encoding(payload), "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise Undecodable(f"not JSON: {error}") from error
        return value if isinstance(value, dict) else {WHOLE: value}
