"""A tree from key expressions to values, asked with keys or with key expressions.

One node a chunk. A node keeps its literal children in a dictionary and its wildcard children in
slots of their own, so a plain key looks up one name a level and meets only the wildcards on its
way: the cost follows the depth of the key, not the size of the tree.

    robot ── 12 ── pose          literal children: a dictionary
      │      └──── *             slot `one`
      └───── **                  slot `many`
      └───── arm$*               slot `some`: patterns, tried one after the other

A question with wildcards walks down the tree with a *set of places* in the question: those that
may lie just after the chunk reached. A set is an integer, bit k for the place before chunk k.
Each node is entered at most once whatever `**` there are on either side, so the work is bounded by
(nodes entered) x (chunks asked).

Keys and questions are canonical text: check strangers' text with `KeyExpr` first. The tree itself
has no bound; `len(tree)` is there for the owner to enforce one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar, final

from zenlake.keys.matching import chunk_includes, chunk_intersects

__all__ = ["KeyTree", "TreeEntry"]

V = TypeVar("V")

# What the chunks of a question must do with those of an entry.
MEETING: Final = 0
COVERED: Final = 1


@final
class TreeEntry(Generic[V]):
    """A key expression in the tree and the value stored there."""

    __slots__ = ("key", "value")

    def __init__(self, key: str, value: V) -> None:
        """Pair `key` with `value`."""
        self.key: Final = key
        self.value = value

    def __repr__(self) -> str:
        """Show both halves."""
        return f"Entry({self.key!r}, {self.value!r})"


@final
class _Node(Generic[V]):
    __slots__ = ("entry", "literal", "many", "one", "some")

    def __init__(self) -> None:
        self.entry: TreeEntry[V] | None = None
        # Dictionaries are made with the first child: most nodes are leaves.
        self.literal: dict[str, _Node[V]] | None = None
        self.some: dict[str, _Node[V]] | None = None
        self.one: _Node[V] | None = None
        self.many: _Node[V] | None = None

    def child(self, chunk: str) -> _Node[V] | None:
        table = self.literal
        if "*" in chunk:
            if chunk == "*":
                return self.one
            if chunk == "**":
                return self.many
            if _is_pattern(chunk):
                table = self.some
        return None if table is None else table.get(chunk)

    def grow(self, chunk: str) -> _Node[V]:
        node: _Node[V] = _Node()
        if chunk == "*":
            self.one = node
        elif chunk == "**":
            self.many = node
        elif _is_pattern(chunk):
            if self.some is None:
                self.some = {}
            self.some[chunk] = node
        else:
            if self.literal is None:
                self.literal = {}
            self.literal[chunk] = node
        return node

    def literally(self, chunk: str) -> _Node[V]:
        """The child of a chunk that has no wildcard, made if it is not there."""
        literal = self.literal
        if literal is None:
            literal = {}
            self.literal = literal
        child = literal.get(chunk)
        if child is None:
            child = _Node()
            literal[chunk] = child
        return child

    def cut(self, chunk: str) -> None:
        if chunk == "*":
            self.one = None
        elif chunk == "**":
            self.many = None
        elif _is_pattern(chunk):
            assert self.some is not None
            del self.some[chunk]
            if not self.some:
                self.some = None
        else:
            assert self.literal is not None
            del self.literal[chunk]
            if not self.literal:
                self.literal = None

    def is_bare(self) -> bool:
        return (
            self.entry is None
            and self.literal is None
            and self.some is None
            and self.one is None
            and self.many is None
        )


@final
class _Question:
    """The chunks asked, and for each kind of chunk the places where it stands."""

    __slots__ = ("chunks", "end", "exact", "many", "memo", "open", "relation", "rest", "wild")

    def __init__(self, chunks: list[str], relation: int) -> None:
        self.chunks = chunks
        self.relation = relation
        self.end = 1 << len(chunks)
        self.many = 0  # places before a `**`
        self.open = 0  # places before a chunk that a wildcard may swallow
        self.wild = 0  # places before a chunk that may match several literals
        self.exact: dict[str, int] = {}  # literal chunk -> the places where it stands
        self.memo: dict[str, int] = {}
        # The places of a key that only a `**` at the end is left for; none has none.
        self.rest = 3 << (len(chunks) - 1) if chunks[-1] == "**" else -1
        bit = 1
        for chunk in chunks:
            if not chunk.startswith("@"):
                self.open |= bit
            if chunk == "**":
                self.many |= bit
                self.wild |= bit
            elif chunk == "*" or _is_pattern(chunk):
                self.wild |= bit
            else:
                self.exact[chunk] = self.exact.get(chunk, 0) | bit
            bit <<= 1

    def settle(self, places: int) -> int:
        # A `**` may match nothing, and a canonical expression has no two in a row.
        return places | ((places & self.many) << 1)

    def flood(self, places: int) -> int:
        # Whatever lies above a place without an `@` between: the carry of one addition runs
        # through each stretch of open places and stops at its end.
        return places | ((self.open + (places & self.open)) ^ self.open)

    def related(self, chunk: str) -> int:
        """The places whose chunk, not `**`, relates to `chunk` in the way asked for."""
        relation = self.memo.get(chunk, -1)
        if relation < 0:
            relation = 0
            for k, asked in enumerate(self.chunks):
                if asked != "**" and self._relates(asked, chunk):
                    relation |= 1 << k
            self.memo[chunk] = relation
        return relation

    def _relates(self, asked: str, chunk: str) -> bool:
        if self.relation == MEETING:
            return chunk_intersects(asked, chunk)
        return chunk_includes(chunk, asked)


@final
class KeyTree(Generic[V]):
    """Values found by key expression: exactly, by intersection, or by inclusion."""

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        """Start empty."""
        self._root: _Node[V] = _Node()
        self._size = 0

    def __len__(self) -> int:
        """Count the entries."""
        return self._size

    def __contains__(self, key: str) -> bool:
        """Whether exactly `key` has a value."""
        return self.entry(key) is not None

    def __iter__(self) -> Iterator[TreeEntry[V]]:
        """Go through a snapshot of all entries, in no particular order."""
        return iter(self.entries())

    def __repr__(self) -> str:
        """Show how many entries there are."""
        return f"<KeyTree of {self._size}>"

    def entries(self) -> list[TreeEntry[V]]:
        """List every entry, in no particular order."""
        entries: list[TreeEntry[V]] = []
        stack = [self._root]
        while stack:
            node = stack.pop()
            if node.entry is not None:
                entries.append(node.entry)
            if node.literal is not None:
                stack.extend(node.literal.values())
            if node.some is not None:
                stack.extend(node.some.values())
            if node.one is not None:
                stack.append(node.one)
            if node.many is not None:
                stack.append(node.many)
        return entries

    def insert(self, key: str, value: V) -> V | None:
        """Store `value` at `key`; return the value it replaces, or None."""
        node = self._root
        if "*" in key:
            for chunk in key.split("/"):
                child = node.child(chunk)
                node = node.grow(chunk) if child is None else child
        else:
            for chunk in key.split("/"):
                node = node.literally(chunk)
        entry = node.entry
        if entry is None:
            node.entry = TreeEntry(key, value)
            self._size += 1
            return None
        before = entry.value
        entry.value = value
        return before

    def entry(self, key: str) -> TreeEntry[V] | None:
        """Return the entry whose key is exactly `key`, or None."""
        node = self._root
        if "*" in key:
            for chunk in key.split("/"):
                child = node.child(chunk)
                if child is None:
                    return None
                node = child
            return node.entry
        for chunk in key.split("/"):
            literal = node.literal
            if literal is None:
                return None
            child = literal.get(chunk)
            if child is None:
                return None
            node = child
        return node.entry

    def get(self, key: str) -> V | None:
        """Return the value stored at exactly `key`, or None."""
        entry = self.entry(key)
        return None if entry is None else entry.value

    def remove(self, key: str) -> V | None:
        """Take out the entry at exactly `key` and every node it alone needed; return its value."""
        chunks = key.split("/")
        path = [self._root]
        for chunk in chunks:
            child = path[-1].child(chunk)
            if child is None:
                return None
            path.append(child)
        entry = path[-1].entry
        if entry is None:
            return None
        path[-1].entry = None
        self._size -= 1
        for k in range(len(chunks), 0, -1):
            if not path[k].is_bare():
                break
            path[k - 1].cut(chunks[k - 1])
        return entry.value

    def clear(self) -> None:
        """Forget everything."""
        self._root = _Node()
        self._size = 0

    def intersecting(self, expr: str) -> list[TreeEntry[V]]:
        """List the entries that share at least one key with `expr`."""
        chunks = expr.split("/")
        if "*" not in expr:
            return _matching(self._root, chunks)
        return _walk(self._root, _Question(chunks, MEETING))

    def including(self, expr: str) -> list[TreeEntry[V]]:
        """List the entries that include `expr`: those that match whatever it matches."""
        chunks = expr.split("/")
        if "*" not in expr:
            return _matching(self._root, chunks)
        return _including(self._root, _Question(chunks, COVERED))


def _is_pattern(chunk: str) -> bool:
    return "$*" in chunk and not chunk.startswith("@")


def _matching(root: _Node[V], chunks: list[str]) -> list[TreeEntry[V]]:
    """The entries that match a key without wildcards, level by level."""
    level = [root]
    loops: list[_Node[V]] = []  # the `**` nodes on this level: they stay on the next
    _enter_loops(level, loops)
    for chunk in chunks:
        below: list[_Node[V]] = []
        verbatim = chunk.startswith("@")
        if loops:
            if verbatim:
                loops = []
            else:
                below.extend(loops)
        many = False
        for node in level:
            if node.literal is not None:
                child = node.literal.get(chunk)
                if child is not None:
                    below.append(child)
                    if child.many is not None:
                        many = True
            if verbatim:
                continue
            one = node.one
            if one is not None:
                below.append(one)
                if one.many is not None:
                    many = True
            if node.some is not None:
                for pattern, child in node.some.items():
                    if chunk_intersects(pattern, chunk):
                        below.append(child)
                        if child.many is not None:
                            many = True
        if not below:
            return []
        if many:
            _enter_loops(below, loops)
        level = below
    entries: list[TreeEntry[V]] = []
    for node in level:
        entry = node.entry
        if entry is not None:
            entries.append(entry)
    return entries


def _enter_loops(level: list[_Node[V]], loops: list[_Node[V]]) -> None:
    """Add the `**` below each node of the level, once: a `**` may match nothing."""
    known = set(loops) if loops else None
    for k in range(len(level)):
        many = level[k].many
        # A parent stands once on a level, so the new ones cannot repeat each other.
        if many is not None and (known is None or many not in known):
            loops.append(many)
            level.append(many)


def _walk(root: _Node[V], asked: _Question) -> list[TreeEntry[V]]:
    """The entries that the question meets."""
    entries: list[TreeEntry[V]] = []
    stack: list[tuple[_Node[V], int]] = [(root, asked.settle(1))]
    while stack:
        node, places = stack.pop()
        if places == asked.rest:
            _all_below(node, entries)
            continue
        if places & asked.end and node.entry is not None:
            entries.append(node.entry)
        stay = places & asked.many
        if node.many is not None:
            stack.append((node.many, asked.flood(places)))
        if node.one is not None:
            below = ((places & asked.related("*")) << 1) | stay
            if below:
                stack.append((node.one, asked.settle(below)))
        if node.some is not None:
            for chunk, child in node.some.items():
                below = ((places & asked.related(chunk)) << 1) | stay
                if below:
                    stack.append((child, asked.settle(below)))
        if node.literal is not None:
            _walk_literals(node.literal, places, asked, stack)
    return entries


def _all_below(top: _Node[V], entries: list[TreeEntry[V]]) -> None:
    """Add all that a `**` at the end of a question finds: no chunk but an `@` stops it."""
    stack: list[_Node[V]] = [top]
    while stack:
        node = stack.pop()
        if node.entry is not None:
            entries.append(node.entry)
        if node.many is not None:
            stack.append(node.many)
        if node.one is not None:
            stack.append(node.one)
        if node.some is not None:
            stack.extend(node.some.values())
        literal = node.literal
        if literal is not None:
            for chunk, child in literal.items():
                if not chunk.startswith("@"):
                    stack.append(child)


def _walk_literals(
    children: dict[str, _Node[V]],
    places: int,
    asked: _Question,
    stack: list[tuple[_Node[V], int]],
) -> None:
    """Go on to the literal children, by name where the question names them."""
    if places & asked.wild:
        stay = places & asked.many
        for chunk, child in children.items():
            below = (places & asked.related(chunk)) << 1
            if not chunk.startswith("@"):
                below |= stay
            if below:
                stack.append((child, asked.settle(below)))
        return
    for chunk, where in asked.exact.items():
        if places & where:
            named = children.get(chunk)
            if named is not None:
                stack.append((named, asked.settle((places & where) << 1)))


def _including(root: _Node[V], asked: _Question) -> list[TreeEntry[V]]:
    """Here the tree does the covering, and a `**` asked is one more thing to cover.

    Whether a run of `*` may step over a `**` asked depends on how the run ends, so along a run a
    second set of places is carried, for the case that a `**` follows.
    """
    entries: list[TreeEntry[V]] = []
    stack: list[tuple[_Node[V], int, int]] = [(root, 1, 1)]
    single = asked.open & ~asked.many
    while stack:
        node, places, floating = stack.pop()
        if places & asked.end and node.entry is not None:
            entries.append(node.entry)
        if node.many is not None:
            below = asked.flood(floating)
            stack.append((node.many, below, below))
        if node.one is not None:
            below = (asked.settle(floating) & single) << 1
            if below:
                stack.append((node.one, (places & single) << 1, below))
        if not places:
            continue
        if node.some is not None:
            for chunk, child in node.some.items():
                below = (places & asked.related(chunk)) << 1
                if below:
                    stack.append((child, below, below))
        if node.literal is not None:
            for chunk, where in asked.exact.items():
                if places & where:
                    named = node.literal.get(chunk)
                    if named is not None:
                        below = (places & where) << 1
                        stack.append((named, below, below))
    return entries
