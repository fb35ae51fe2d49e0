"""Which typed tables the keys of a batch belong to: each key is looked up once, for all tables.

A lake may have hundreds of tables, and a batch keys of a few of them. Asking each table about each
key would cost tables times keys; here a key walks over all formats at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from zenlake.keys import KeyExpr, KeyFormat
from zenlake.keys.tree import KeyTree
from zenlake.lake.decode.key_columns import coded_keys
from zenlake.lake.model.typed_table import TypedTable
from zenlake.ros2.bridge import bridged_keys
from zenlake.ros2.names import parse_key

__all__ = ["KeyRouter", "RoutedKeys"]

MOST_KEYS: Final = 100_000


@final
class KeyRouter:
    """Finds the tables that a key may belong to."""

    def __init__(self, tables: Iterable[TypedTable]) -> None:
        """Route to these tables."""
        self._keys: KeyTree[list[str]] = KeyTree()
        self._topics: KeyTree[list[str]] = KeyTree()
        self._bridged: dict[str, list[str]] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        for table in tables:
            tree = self._topics if table.ros2 else self._keys
            expr = str(KeyFormat(table.format).key_expr)
            names = tree.get(expr)
            if names is None:
                tree.insert(expr, [table.name])
            else:
                names.append(table.name)
            for key in bridged_keys(table.type) if table.ros2 else ():
                self._bridged.setdefault(key, []).append(table.name)

    def tables_of(self, key: str) -> tuple[str, ...]:
        """Return the names of the tables whose keys may include a key; each looks closer itself."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KEYS:
                self._known.clear()
            self._known[key] = found = self._found(key)
        return found

    def _found(self, key: str) -> tuple[str, ...]:
        names = [name for entry in self._keys.including(key) for name in entry.value]
        names += self._bridged.get(key, ())
        data = parse_key(key) if len(self._topics) else None
        if data is not None and data.buffer in ("", "cpu"):
            topic = data.topic.strip("/")
            if topic and _is_canonical(topic):
                names += [n for entry in self._topics.including(topic) for n in entry.value]
        return tuple(dict.fromkeys(names))


def _is_canonical(topic: str) -> bool:
    try:
        return str(KeyExpr(topic)) == topic
    except ValueError:
        return False


@final
class RoutedKeys:
    """The keys of a batch of rows of `samples`, and the tables of each."""

    def __init__(self, rows: pa.Table, router: KeyRouter) -> None:
        """Look up each key of the rows once."""
        coded = coded_keys(rows["key"])
        self.keys: list[str] = coded.dictionary.to_pylist()
        self.codes: np.ndarray[Any, np.dtype[np.int64]] = coded.indices.to_numpy(
            zero_copy_only=False
        )
        self._tables: dict[str, list[int]] = {}
        self.unknown: list[int] = []
        """The places of the keys that belong to no table."""
        for code, key in enumerate(self.keys):
            names = router.tables_of(key)
            if not names:
                self.unknown.append(code)
            for name in names:
                self._tables.setdefault(name, []).append(code)

    def of_table(self, name: str) -> list[int]:
        """Return the places of the keys that a table may have."""
        return self._tables.get(name, [])

    def after(self, skip: int) -> RoutedKeys:
        """Return the same without the first rows."""
        if not skip:
            return self
        rest = object.__new__(RoutedKeys)
        rest.keys, rest._tables, rest.unknown = self.keys, self._tables, self.unknown
        rest.codes = self.codes[skip:]
        return rest
