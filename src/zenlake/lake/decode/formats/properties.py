"""Properties, as Zenoh writes them: `k1=v1;k2=v2`."""

from __future__ import annotations

from zenlake.lake.decode.formats.plain import text, word_value
from zenlake.lake.model.decoder import Fields, Undecodable

__all__ = ["Properties"]


class Properties:
    """Reads text of the form `name=value;name=value`."""

    encodings = ("text/properties", "application/properties", "zenoh/properties")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The values by name: numbers where they look like numbers, else text."""
        properties: dict[str, object] = {}
        for part in text(payload).split(";"):
            if not part.strip():
                continue
            name, equals, value = part.partition("=")
            name = name.strip()
            if not equals or not name:
                raise Undecodable(f"'{part[:80]}' is no property; write name=value")
            if name in properties:
                raise Undecodable(f"property '{name[:80]}' is there twice")
            properties[name] = word_value(value.strip())
        return properties
