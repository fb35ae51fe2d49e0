"""Reads YAML into the tree that JSON5 is read into; needs PyYAML, the extra `yaml`.

Anchors are refused: a file of a few lines can name a value that doubles itself thirty times.
"""

from __future__ import annotations

import importlib
from typing import Any

from zenlake.config.json5 import MOST_NESTING, MOST_TEXT, Content, Located, Unreadable
from zenlake.errors import ConfigError

__all__ = ["read_yaml"]


def read_yaml(text: str) -> Located:
    """Read one YAML document; raises `Unreadable` on anything else."""
    try:
        # Looked up by name, because the package works without it.
        yaml: Any = importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise ConfigError(
            "reading YAML needs PyYAML; install it with: pip install 'zenlake[yaml]'"
        ) from None
    if len(text) > MOST_TEXT:
        raise Unreadable(f"{len(text)} characters; at most {MOST_TEXT} are read", 0)
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        return _Converter(loader).node(root, 0) if root is not None else Located(None, 0, 0)
    except RecursionError:
        raise Unreadable(f"nested more than {MOST_NESTING} deep", 0) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise Unreadable(f"not YAML: {reason}", mark.index if mark else 0) from None


class _Converter:
    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.seen: set[int] = set()

    def node(self, node: Any, nesting: int) -> Located:
        at: int = node.start_mark.index
        if nesting > MOST_NESTING:
            raise Unreadable(f"nested more than {MOST_NESTING} deep", at)
        if id(node) in self.seen:
            raise Unreadable("anchors and aliases are not read; write the value again", at)
        self.seen.add(id(node))
        if node.id == "mapping":
            members: dict[str, Located] = {}
            for name_node, value_node in node.value:
                name = name_node.value
                name_at: int = name_node.start_mark.index
                if not isinstance(name, str):
                    raise Unreadable("expected a name", name_at)
                if name in members:
                    raise Unreadable(f"{name!r} is written twice in one object", name_at)
                members[name] = self.node(value_node, nesting + 1)
                members[name].name_at = name_at
            return Located(members, at, at)
        if node.id == "sequence":
            return Located([self.node(item, nesting + 1) for item in node.value], at, at)
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
        found: Content = value
        return found
