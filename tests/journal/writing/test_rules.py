"""Which segment has rows that a rule wants away, and when: without any file."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import KeyExprError, LocalError
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.segment import Segment
from zenlake.journal.options import RetainRule
from zenlake.journal.writing.rules import RetainRules

CAMERA = RetainRule("camera/**", 100.0)
ALL = RetainRule("**", 1000.0)


def segment(first: int, closed: float, *keys: str, listed: bool = True) -> Segment:
    """A sealed segment of ten rows with these keys."""
    names = frozenset(keys) if listed else None
    stats = (0, 0, 0, 0, names, min(keys), max(keys))
    return Segment(first, first + 10, 1, f"p0000/{first}.arrow", True, *stats, closed)


def unseen(partition: int, segment: Segment) -> float:
    return 0.0


def test_the_first_rule_that_includes_a_key_decides() -> None:
    rules = RetainRules([CAMERA, ALL])
    assert rules.age_of("camera/front") == 100.0
    assert rules.age_of("robot/pose") == 1000.0
    # A put of many is of no camera alone.
    assert rules.age_of("*/front") == 1000.0
    assert RetainRules([CAMERA]).age_of("robot/pose") == math.inf


def test_a_segment_is_due_when_its_last_row_is_as_old_as_the_rule_says() -> None:
    rules = RetainRules([CAMERA, ALL])
    one = segment(0, 50.0, "camera/front", "robot/pose")
    manifests = [Manifest(0, (one,))]
    assert rules.next(manifests, 149.9, None, unseen) is None
    due = rules.next(manifests, 150.0, None, unseen)
    assert due is not None
    assert (due.segment, due.age) == (one, 100.0)
    gone = rules.gone(due.age)
    assert gone("camera/front")
    assert not gone("robot/pose")
    # What is retired already is not looked for, and the next rule comes in its time.
    done = dataclasses.replace(one, retired=3, retired_keys=frozenset(["camera/front"]))
    assert rules.due_at(done) == 1050.0


def test_what_readers_lack_is_left_alone_and_so_is_what_lies_elsewhere() -> None:
    rules = RetainRules([CAMERA])
    far = dataclasses.replace(segment(10, 0.0, "camera/a"), path="s3://bucket/j/10.arrow")
    manifests = [Manifest(0, (segment(0, 0.0, "camera/a"), far))]
    assert rules.next(manifests, 1e6, (9,), unseen) is None
    due = rules.next(manifests, 1e6, (10,), unseen)
    assert due is not None
    assert due.segment.first == 0
    assert rules.next([Manifest(10, (far,))], 1e6, None, unseen) is None


def test_of_a_segment_with_too_many_keys_to_list_each_age_is_looked_at_once() -> None:
    rules = RetainRules([CAMERA, ALL])
    many = segment(0, 50.0, "a", "z", listed=False)
    assert rules.due_at(many) == 150.0
    assert rules.due_at(many, seen=120.0) == 1050.0
    assert rules.due_at(many, seen=1000.0) == math.inf


@given(
    st.lists(st.tuples(st.sampled_from(["a", "camera/x"]), st.integers(0, 300)), min_size=1),
    st.integers(0, 500),
)
def test_the_segment_that_is_due_the_longest_comes_first(
    entries: list[tuple[str, int]], now: int
) -> None:
    rules = RetainRules([CAMERA])
    segments = tuple(segment(10 * n, closed, key) for n, (key, closed) in enumerate(entries))
    due = rules.next([Manifest(0, segments)], now, None, unseen)
    closes = [closed for key, closed in entries if key == "camera/x" and closed + 100 <= now]
    assert (due is None) == (not closes)
    if due is not None:
        assert due.segment.closed == min(closes)


def test_a_rule_that_keeps_nothing_or_names_no_keys_is_refused() -> None:
    with pytest.raises(LocalError, match=r"keeping 'a' for 0 s is keeping nothing"):
        RetainRule("a", 0)
    with pytest.raises(KeyExprError):
        RetainRules([RetainRule("a//b", 1.0)])
