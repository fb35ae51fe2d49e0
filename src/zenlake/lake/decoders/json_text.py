"""JSON: the members of an object are fields; anything else is one value."""

from __future__ import annotations

import json
from typing import NoReturn

from zenlake.lake.decoders import WHOLE, Fields, Undecodable

__all__ = ["Json"]


def _refuse(text: str) -> NoReturn:
    raise Undecodable(f"{text} is not a number of JSON")


class Json:
    """Reads `application/json` and `text/json`."""

    encodings = ("application/json", "text/json")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The members of the object, or the value."""
        try:
            value = json.loads(payload, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise Undecodable(f"not JSON: {error}") from error
        return value if isinstance(value, dict) else {WHOLE: value}
