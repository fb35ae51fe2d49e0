"""Reads YAML into the tree that JSON5 is read into; needs PyYAML, the extra `yaml`.

Anchors are refused: a file of a few lines can name a value that doubles itself thirty times.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from zenlake.config.json5 import MOST_NESTING, Content, Located, Unreadable
from zenlake.errors import ConfigError

__all__ = ["read_yaml"]

MOST_YAML = 256 * 1024


def read_yaml(text: str) -> Located:
    """Read one YAML document; raises `Unreadable` on anything else."""
    try:
        # Looked up by name, because the package works without it.
        yaml: Any = importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise ConfigError(
            "reading YAML needs PyYAML; install it with: pip install 'zenlake[yaml]'"
        ) from None
    if len(text) > MOST_YAML:
        raise Unreadable(f"{len(text)} characters; at most {MOST_YAML} of YAML are read", 0)
    try:
        _check_nesting(yaml.parse(text, Loader=yaml.SafeLoader))
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        return _Converter(loader).node(root) if root is not None else Located(None, 0, 0)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise Unreadable(f"not YAML: {reason}", mark.index if mark else 0) from None


def _check_nesting(events: Iterable[Any]) -> None:
    """Stop at what is nested too deep, before PyYAML takes time that grows with its square."""
    nesting = 0
    for event in events:
        kind = type(event).__name__
        if kind in ("SequenceStartEvent", "MappingStartEvent"):
            nesting += 1
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            nesting -= 1
        if nesting > MOST_NESTING:
            raise Unreadable(f"nested more than {MOST_NESTING} deep", event.start_mark.index)
        if kind == "AliasEvent":
            raise Unreadable(
                "anchors and aliases are not read; write the value again", event.start_mark.index
            )


class _Converter:
    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def node(self, node: Any) -> Located:
        at: int = node.start_mark.index
        if node.id == "mapping":
            members: dict[str, Located] = {}
            for name_node, value_node in node.value:
                name = name_node.value
                name_at: int = name_node.start_mark.index
                if not isinstance(name, str):
                    raise Unreadable("expected a name", name_at)
                if name in members:
                    raise Unreadable(f"{name!r} is written twice in one object", name_at)
                members[name] = self.node(value_node)
                members[name].name_at = name_at
            return Located(members, at, at)
        if node.id == "sequence":
            return Located([self.node(item) for item in node.value], at, at)
        return Located(self.scalar(node, at), at, at)

    def scalar(self, node: Any, at: int) -> Content:
        """The value of a scalar, if JSON has such values; dates and bytes stay text."""
        kind = node.tag.rpartition(":")[2]
        if kind not in ("null", "bool", "int", "float"):
            return str(node.value)
        try:
            value = self.loader.construct_object(node)
        except (ValueError, OverflowError):
            raise Unreadable("this number cannot be read", at) from None
        if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
            raise Unreadable("this number is not finite; JSON cannot repeat it", at)
        content: Content = value
        return content
