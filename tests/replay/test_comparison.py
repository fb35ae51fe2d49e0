"""Two windows compared: missing, extra, different, and how far apart."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from zenlake.replay.comparison import (
    DifferenceReport,
    KeyDifferences,
    SampleContent,
    WindowComparison,
)

VALUES = st.lists(st.integers(0, 1000), unique=True, max_size=60)


def shown(value: Any, **more: Any) -> SampleContent:
    return SampleContent(0, json.dumps(value).encode(), **more)


def compared(left: list[Any], right: list[Any], tolerance: float = 0.0) -> KeyDifferences:
    found = WindowComparison(tolerance)
    for n in range(max(len(left), len(right))):
        if n < len(left):
            found.left("k", shown(left[n]))
        if n < len(right):
            found.right("k", shown(right[n]))
    return found.end().keys.get("k", KeyDifferences())


def counts(page: KeyDifferences) -> tuple[int, int, int, int]:
    return page.same, page.missing, page.extra, page.different


@given(VALUES)
def test_the_same_twice_does_not_differ(values: list[int]) -> None:
    page = compared(values, values)
    assert page.equal
    assert page.same == len(values)


@given(VALUES, st.sets(st.integers(0, 59), max_size=5))
def test_what_was_left_out_is_missing_and_nothing_else(values: list[int], out: set[int]) -> None:
    fewer = [value for n, value in enumerate(values) if n not in out]
    gone = len(values) - len(fewer)
    assert counts(compared(values, fewer)) == (len(fewer), gone, 0, 0)
    assert counts(compared(fewer, values)) == (len(fewer), 0, gone, 0)


@given(st.lists(st.integers(0, 9), max_size=40), st.lists(st.integers(0, 9), max_size=40))
def test_every_sample_is_counted_once_on_each_side(left: list[int], right: list[int]) -> None:
    page = compared(left, right)
    assert page.same + page.different + page.missing == len(left)
    assert page.same + page.different + page.extra == len(right)
    assert page.equal == (left == right)


def test_a_value_that_changed_is_different_by_a_distance() -> None:
    left = [{"n": n, "pose": {"x": float(n)}, "name": "a"} for n in range(10)]
    right = [dict(one, pose={"x": one["pose"]["x"] + 0.25}) for one in left]  # type: ignore[index]
    page = compared(left, right)
    assert counts(page) == (0, 0, 0, 10)
    assert page.reasons == {"numbers": 10}
    assert page.fields["pose.x"].facts() == {"count": 10, "max": 0.25, "mean": 0.25}
    near = compared(left, right, tolerance=0.25)
    assert near.equal
    assert near.near == 10


def test_reasons_say_what_differs() -> None:
    found = WindowComparison()
    plain = shown({"a": 1})
    pairs = [
        (plain, SampleContent(1, b"")), (plain, SampleContent(0, plain.payload, (5, None))),
        (plain, SampleContent(0, plain.payload, attachment=b"x")),
        (plain, SampleContent(0, b"\xff")),
        (plain, shown({"b": 1})), (shown({"a": "x"}), shown({"a": "y"})),
        (shown([1, 2, 3]), shown([1, 2.5])), (shown(21.5), shown(21.75)),
    ]  # fmt: skip
    for n, (left, right) in enumerate(pairs):
        found.pair(f"{n}", left, right)
    keys = found.end().keys
    assert [sorted(keys[f"{n}"].reasons) for n in range(len(pairs))] == [
        ["kind", "payload"], ["encoding"], ["attachment"], ["payload"],
        ["fields"], ["values"], ["fields", "numbers"], ["numbers"],
    ]  # fmt: skip
    assert keys["6"].fields["[]"].most == 0.5
    assert keys["7"].fields["value"].most == 0.25


def test_what_waits_is_bounded_and_a_lone_key_is_missing() -> None:
    found = WindowComparison(most_bytes=10_000)
    for n in range(5000):
        found.left("lone", shown({"n": n}))
        assert found.waiting_bytes <= 10_000
    found.right("other", shown(1))
    report: DifferenceReport = found.end()
    assert report.keys["lone"].missing == 5000
    assert report.keys["other"].extra == 1
    assert not report.equal
    assert report.totals()["missing"] == 5000
    assert len(report.keys["lone"].examples) == 3


def test_hostile_payloads_are_only_different() -> None:
    deep = b"[" * 100_000
    page = WindowComparison()
    page.pair("k", SampleContent(0, deep), SampleContent(0, deep + b"1"))
    page.pair("k", SampleContent(0, b'{"a": NaN}'), SampleContent(0, b'{"a": 1e999}'))
    page.pair("k", SampleContent(0, b"1" * 400), SampleContent(0, b"2" * 400))
    report = page.end()
    assert report.keys["k"].different == 3
    json.dumps(report.keys["k"].facts(), allow_nan=False)
