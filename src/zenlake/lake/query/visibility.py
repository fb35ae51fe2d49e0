"""What of a lake's tables, views and alerts is shown to somebody who may not read every key.

Columns, the text of a view and the condition of an alert tell what is published under which keys.
So a table is shown to those who may read the keys that it is made of, and a view or an alert to
those who may read what it publishes; the question behind it, which may name any key, to nobody
whose keys are restricted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from zenlake.keys import KeyFormat
from zenlake.keys.readable import ReadableKeys
from zenlake.lake.decode.ros2_tables import DESCRIBED
from zenlake.lake.decode.table_description import OTHER_KEYS
from zenlake.lake.model.config import FIXED
from zenlake.lake.model.typed_table import TypedTable

__all__ = [
    "keys_behind",
    "published_by",
    "shown_definition",
    "shown_tables",
    "table_keys",
]

#: What a definition tells of itself to those who may not read every key.
_HARMLESS: Final = ("name", "kind", "keys", "state", "rights", "created")


def published_by(kind: str, name: str) -> str:
    """The keys that a view or an alert publishes."""
    return f"{kind}/{name}/**"


def shown_definition(facts: Mapping[str, Any], readable: ReadableKeys) -> dict[str, Any] | None:
    """What somebody is told of a view or an alert; None: nothing."""
    if readable.unrestricted:
        return dict(facts)
    if not readable.lets(published_by(facts["kind"], facts["name"])):
        return None
    return {name: facts[name] for name in _HARMLESS if name in facts}


def table_keys(name: str, described: str, specs: Iterable[TypedTable]) -> str | None:
    """The keys that a table's columns tell of; empty: none, None: nobody knows."""
    if name in FIXED:
        return ""
    if OTHER_KEYS in described:
        return None
    kind = described.partition(" ")[0]
    if kind in ("view", "alert"):
        return published_by(kind, name)
    for spec in specs:
        if spec.name == name:
            keys = str(KeyFormat(spec.format).key_expr)
            return _topic(keys) if spec.ros2 else keys
    if described.startswith(DESCRIBED):
        return _topic(described.removeprefix(DESCRIBED))
    return None


def keys_behind(described: Mapping[str, str], specs: Iterable[TypedTable]) -> tuple[str, ...]:
    """The keys that what is in these tables was published under; `**` where any may be."""
    specs = tuple(specs)
    found: set[str] = set()
    for name, words in described.items():
        keys = table_keys(name, words, specs)
        # Views and alerts publish under keys of their own what they found under others.
        if not keys or words.startswith(("view ", "alert ")):
            return ("**",)
        found.add(keys)
    return tuple(sorted(found)) or ("**",)


def shown_tables(
    described: Mapping[str, str], specs: Iterable[TypedTable], readable: ReadableKeys
) -> set[str]:
    """The tables, given with what they say of themselves, that somebody is told of."""
    specs = tuple(specs)
    shown: set[str] = set()
    for name, words in described.items():
        keys = table_keys(name, words, specs)
        if readable.unrestricted or keys == "" or (keys is not None and readable.lets(keys)):
            shown.add(name)
    return shown


def _topic(topic: str) -> str:
    """The keys of a topic of ROS 2: after the number of its domain, before its type."""
    return f"*/{topic.strip('/')}/**"
