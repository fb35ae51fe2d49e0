from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.keys.oracle import all_expressions, expressions, keys
from tests.steps import steps
from zenlake.keys.matching import includes, intersects
from zenlake.keys.tree import KeyTree, TreeEntry


def tree_of(*exprs: str) -> KeyTree[int]:
    tree: KeyTree[int] = KeyTree()
    for number, expr in enumerate(exprs):
        tree.insert(expr, number)
    return tree


def names(entries: list[TreeEntry[int]]) -> list[str]:
    """The keys found, sorted and with repetitions: an entry must be found once."""
    return sorted(entry.key for entry in entries)


def test_what_was_inserted_is_found_exactly() -> None:
    tree = tree_of("a", "a/b", "a/*", "a/**", "a/b$*", "@a/@$*")
    for number, key in enumerate(["a", "a/b", "a/*", "a/**", "a/b$*", "@a/@$*"]):
        assert tree.get(key) == number
        assert key in tree
    assert tree.get("a/bc") is None
    assert "a/b/c" not in tree
    assert len(tree) == 6


def test_inserting_again_replaces_and_returns_the_former_value() -> None:
    tree = tree_of("a/b")
    assert tree.insert("a/b", 7) == 0
    assert tree.get("a/b") == 7
    assert len(tree) == 1


def test_removal_prunes_every_node_that_nothing_needs() -> None:
    tree = tree_of("a/b/c", "a/b/$*x/**", "a/*/d", "a")
    assert tree.remove("a/b/c") == 0
    assert tree.remove("a/b/$*x/**") == 1
    assert tree.remove("a/*/d") == 2
    assert tree.remove("a/b") is None
    assert tree.remove("z") is None
    assert names(tree.entries()) == ["a"]
    assert tree.remove("a") == 3
    assert len(tree) == 0
    assert tree._root.is_bare()


def test_removing_a_key_keeps_what_lies_below_it() -> None:
    tree = tree_of("a", "a/b")
    tree.remove("a")
    assert names(tree.entries()) == ["a/b"]


def test_a_plain_key_meets_the_wildcards_on_its_way() -> None:
    tree = tree_of("**", "a/*", "a/b", "a/$*b", "*/b/**", "a/c", "@a/**", "a/**/b")
    assert names(tree.intersecting("a/b")) == sorted(
        ["**", "a/*", "a/b", "a/$*b", "*/b/**", "a/**/b"]
    )


def test_wildcards_on_both_sides_meet_once() -> None:
    tree = tree_of("**/a/**", "**/b/**/a", "*/**", "x", "@x/**")
    assert names(tree.intersecting("**/b/**")) == ["**/a/**", "**/b/**/a", "*/**"]
    assert names(tree.intersecting("@x/y/**")) == ["@x/**"]


def test_what_includes_an_expression_is_found() -> None:
    tree = tree_of("a/b", "a/*", "a/**", "**", "a/b$*", "*/**")
    assert names(tree.including("a/*")) == ["**", "*/**", "a/*", "a/**"]
    assert names(tree.including("a/b")) == sorted(["a/b", "a/*", "a/**", "**", "a/b$*", "*/**"])


def test_clearing_forgets_everything() -> None:
    tree = tree_of("a", "b/**")
    tree.clear()
    assert len(tree) == 0
    assert list(tree) == []
    assert tree.intersecting("**") == []


def test_entries_carry_key_and_value_and_show_both() -> None:
    (entry,) = tree_of("a/b")
    assert (entry.key, entry.value) == ("a/b", 0)
    assert repr(entry) == "Entry('a/b', 0)"
    assert repr(tree_of("a", "b")) == "<KeyTree of 2>"


def test_every_small_question_is_answered_as_by_a_list() -> None:
    every = all_expressions(3)
    tree = tree_of(*every)
    for asked in every[::3]:
        assert names(tree.intersecting(asked)) == [e for e in every if intersects(e, asked)]
        assert names(tree.including(asked)) == [e for e in every if includes(e, asked)]


@given(st.sets(expressions(), max_size=25), st.one_of(expressions(), keys()))
def test_any_question_is_answered_as_by_a_list(stored: set[str], asked: str) -> None:
    tree = tree_of(*stored)
    assert names(tree.entries()) == sorted(stored)
    assert names(tree.intersecting(asked)) == sorted(e for e in stored if intersects(e, asked))
    assert names(tree.including(asked)) == sorted(e for e in stored if includes(e, asked))


class TreeBesideADictionary(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tree: KeyTree[int] = KeyTree()
        self.plain: dict[str, int] = {}

    @rule(key=expressions(3), value=st.integers())
    def insert(self, key: str, value: int) -> None:
        assert self.tree.insert(key, value) == self.plain.get(key)
        self.plain[key] = value

    @rule(key=expressions(3))
    def remove(self, key: str) -> None:
        assert self.tree.remove(key) == self.plain.pop(key, None)

    @rule(asked=expressions(3))
    def ask(self, asked: str) -> None:
        found = {entry.key: entry.value for entry in self.tree.intersecting(asked)}
        assert found == {k: v for k, v in self.plain.items() if intersects(k, asked)}

    @invariant()
    def holds_the_same(self) -> None:
        assert {entry.key: entry.value for entry in self.tree} == self.plain
        assert len(self.tree) == len(self.plain)
        assert self.tree._root.is_bare() is not bool(self.plain)


test_a_tree_stays_equal_to_a_dictionary = TreeBesideADictionary.TestCase


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        (["**/a/" * n + "**" for n in range(1, 40)], "a/" * 80 + "a"),
        (["**/a/" * n + "**" for n in range(1, 40)], "**/a/" * 40 + "b"),
        (["/".join(["*"] * n) + "/**" for n in range(1, 80)], "**/a/" * 20 + "**"),
        (["a/" * n + "b" for n in range(100)], "**/a/" * 30 + "**"),
    ],
    ids=range(4),
)
def test_hostile_stars_are_walked_in_polynomial_time(stored: list[str], asked: str) -> None:
    tree = tree_of(*stored)
    nodes = sum(expression.count("/") + 1 for expression in stored)
    most = nodes * (asked.count("/") + 1)
    assert steps(tree.intersecting, asked) < most
    assert steps(tree.including, asked) < most
    assert names(tree.intersecting(asked)) == sorted(e for e in stored if intersects(e, asked))


def test_a_key_of_great_depth_is_no_recursion() -> None:
    deep = "a/" * 20_000 + "a"
    tree = tree_of(deep, "**/a")
    assert names(tree.intersecting(deep)) == sorted([deep, "**/a"])
    assert len(tree.entries()) == 2
    assert tree.remove(deep) == 0


def test_the_cost_of_a_plain_key_follows_its_depth_and_not_the_table() -> None:
    def visits(size: int) -> int:
        tree: KeyTree[int] = KeyTree()
        for k in range(size):
            tree.insert(f"robot/{k}/arm/pose", k)
        assert names(tree.intersecting("robot/7/arm/pose")) == ["robot/7/arm/pose"]
        return steps(tree.intersecting, "robot/7/arm/pose")

    assert visits(20_000) == visits(100)
