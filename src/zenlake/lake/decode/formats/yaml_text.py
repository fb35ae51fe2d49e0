"""YAML: the entries of a mapping are fields; anything else is one value.

Only plain values are made of it, never objects. Merge keys (`<<`) are refused: a few lines of
them can ask for more memory than there is. So is a name twice in one mapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from zenlake.lake.decode.formats.bounded import MOST_DEPTH, fields_of, library
from zenlake.lake.decode.formats.plain import text
from zenlake.lake.model.decoder import Fields, Reason, Undecodable

__all__ = ["Yaml"]


class Yaml:
    """Reads `application/yaml` and `text/yaml`."""

    encodings = ("application/yaml", "text/yaml")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The entries of the mapping by the text of their keys, or the value."""
        yaml = library("yaml", "YAML")
        words = text(payload)
        try:
            loader = _loader(yaml)
            _demand_flat(yaml.parse(words, loader))
            value = yaml.load(words, loader)
        except Undecodable:
            raise
        except Exception as error:  # dates and numbers that do not exist raise what they like
            reason = " ".join(str(error).split())
            raise Undecodable(f"not YAML: {reason}"[:400]) from error
        return fields_of(value)


def _demand_flat(events: Iterable[Any]) -> None:
    # The library calls itself for each level, in C, and ends the process when the stack does.
    depth = 0
    for event in events:
        name = type(event).__name__
        if name in ("SequenceStartEvent", "MappingStartEvent"):
            depth += 1
            if depth > MOST_DEPTH:
                raise Undecodable(f"values inside values, more than {MOST_DEPTH} deep")
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            depth -= 1


@lru_cache(maxsize=1)
def _loader(yaml: Any) -> Any:
    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def flatten_mapping(self, node: Any) -> None:
            if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
                raise Undecodable("a merge key (<<), which is not read; write the entries out")
            seen: set[tuple[str, str]] = set()
            for key, _ in node.value:
                if isinstance(key.value, str):
                    if (key.tag, key.value) in seen:
                        words = f"'{key.value[:80]}' stands twice in one mapping"
                        raise Undecodable(words, Reason.NAME, key.value)
                    seen.add((key.tag, key.value))
            super().flatten_mapping(node)

        def construct_yaml_float(self, node: Any) -> float:
            number = float(super().construct_yaml_float(node))
            if math.isinf(number) and "inf" not in node.value.lower():
                raise Undecodable(f"{node.value[:40]} is beyond all doubles", Reason.RANGE)
            return number

        def construct_yaml_timestamp(self, node: Any) -> object:
            fraction = node.value.partition(".")[2]
            digits = fraction[: len(fraction) - len(fraction.lstrip("0123456789"))]
            if len(digits.rstrip("0")) > 6:
                words = f"{node.value[:40]} has digits beyond microseconds; write it in quotes"
                raise Undecodable(words, Reason.RANGE)
            return super().construct_yaml_timestamp(node)

    for kind in ("float", "timestamp"):
        Loader.add_constructor(
            f"tag:yaml.org,2002:{kind}", getattr(Loader, f"construct_yaml_{kind}")
        )

    return Loader
