"""How long key expressions take to relate, and a key to find its matches in a tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from zenlake.keys.keyexpr import KeyExpr
from zenlake.keys.matching import includes, intersects
from zenlake.keys.tree import KeyTree

KEY = "site/4/robot/77/pose"


def relating(relate: Callable[[str, str], bool], a: str, b: str) -> Callable[[int], None]:
    def run(n: int) -> None:
        for _ in range(n):
            relate(a, b)

    return run


def checking(text: str) -> Callable[[int], None]:
    def run(n: int) -> None:
        for _ in range(n):
            KeyExpr(text)

    return run


def tree_match(size: int) -> Callable[[int], None]:
    """A key of five chunks against `size` expressions, one in a thousand with wildcards."""
    tree: KeyTree[int] = KeyTree()
    for k in range(size):
        robot = f"site/{k // 1000}/robot/{k % 1000}"
        tree.insert(f"{robot}/**" if k % 1000 == 999 else f"{robot}/pose", k)
    tree.insert("site/*/robot/77/*", -1)
    tree.insert("**/pose", -2)
    assert len(tree.intersecting(KEY)) == 3

    def run(n: int) -> None:
        for _ in range(n):
            tree.intersecting(KEY)

    return run


# Each entry makes what it needs and returns a function that does `n` operations.
CASES: dict[str, Callable[[], Callable[[int], None]]] = {
    "keys: intersects, 5 plain chunks": partial(relating, intersects, KEY, "site/4/robot/77/posf"),
    "keys: intersects, 5 chunks with *": partial(relating, intersects, "site/*/robot/*/pose", KEY),
    "keys: intersects, 5 chunks with **": partial(relating, intersects, "site/**/pose", KEY),
    "keys: intersects, 5 chunks with $*": partial(
        relating, intersects, "site/4/rob$*/7$*/pose", KEY
    ),
    "keys: intersects, ** on both sides": partial(
        relating, intersects, "site/**/77/pose", "**/robot/**/pose"
    ),
    "keys: includes, 5 chunks with **": partial(relating, includes, "site/**", KEY),
    "keys: check and wrap 5 chunks": partial(checking, KEY),
    "keys: tree match, 10 000 expressions": partial(tree_match, 10_000),
    "keys: tree match, 1 000 000 expressions": partial(tree_match, 1_000_000),
}
