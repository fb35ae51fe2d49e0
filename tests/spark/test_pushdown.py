from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from tests.journal.rows import rows
from zenlake.journal import JournalWriter
from zenlake.spark.options import READ, SourceOptions
from zenlake.spark.pushdown import EVERYTHING, NumberRange, Wanted, narrow
from zenlake.spark.source import JournalReader

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def narrowed(*filters: Filter) -> Wanted:
    wanted = EVERYTHING
    for one in filters:
        wanted, _ = narrow(wanted, one)
    return wanted


@pytest.mark.parametrize(
    ("one", "span"),
    [
        (EqualTo, NumberRange(5, 6)),
        (GreaterThan, NumberRange(6, None)),
        (GreaterThanOrEqual, NumberRange(5, None)),
        (LessThan, NumberRange(None, 5)),
        (LessThanOrEqual, NumberRange(None, 6)),
    ],
)
def test_a_comparison_becomes_a_span(one: type[Filter], span: NumberRange) -> None:
    when = EPOCH + timedelta(microseconds=5)
    for name in ("time", "timestamp"):
        assert narrow(EVERYTHING, one((name,), when)) == (Wanted(time=span), True)  # type: ignore[call-arg]
    assert narrow(EVERYTHING, one(("offset",), 5)) == (Wanted(offset=span), True)  # type: ignore[call-arg]
    assert narrow(EVERYTHING, one(("hlc",), 5)) == (Wanted(hlc=span), False)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "one",
    [
        Not(EqualTo(("key",), "a")),
        StringContains(("key",), "a"),
        EqualTo(("value",), b"a"),
        EqualTo(("time",), datetime(2026, 1, 1)),
        EqualTo(("a", "b"), 1),
        IsNotNull(("source_id",)),
    ],
)
def test_what_the_journal_cannot_decide_stays_with_spark(one: Filter) -> None:
    assert narrow(EVERYTHING, one) == (EVERYTHING, False)


def test_keys_are_narrowed_by_every_filter() -> None:
    both = narrowed(In(("key",), ("a", "b", "c")), In(("key",), ("b", "c", "d")))
    assert both.keys == frozenset({"b", "c"})
    assert narrowed(EqualTo(("key",), "a"), EqualTo(("key",), "b")).nothing
    assert narrowed(EqualTo(("key",), "a//b")).nothing
    assert narrowed(StringStartsWith(("key",), "a"), StringStartsWith(("key",), "a/b")).prefix == (
        "a/b"
    )
    assert narrowed(StringStartsWith(("key",), "a"), StringStartsWith(("key",), "b")).nothing


def test_only_subscribed_keys_are_asked_for() -> None:
    wanted = Wanted(keys=frozenset({"a/x", "b/x"}))
    assert wanted.expressions(["a/**"]) == ["a/x"]
    assert wanted.expressions(None) == ["a/x", "b/x"]
    assert EVERYTHING.expressions(["a/**"]) == ["a/**"]
    assert EVERYTHING.expressions(None) is None


def segment(keys: set[str], *, listed: bool) -> SimpleNamespace:
    return SimpleNamespace(
        keys=frozenset(keys) if listed else None,
        min_key=min(keys),
        max_key=max(keys),
        min_time=10,
        max_time=20,
        min_hlc=100,
        max_hlc=200,
    )


WORDS = st.sampled_from(["a", "ab", "b", "ba", "c"])


@given(st.sets(WORDS, min_size=1), st.none() | st.sets(WORDS), WORDS, st.booleans())
def test_no_segment_with_a_wanted_key_is_left_out(
    there: set[str], named: set[str] | None, prefix: str, listed: bool
) -> None:
    wanted = Wanted(keys=None if named is None else frozenset(named), prefix=prefix)
    fits = {key for key in there if (named is None or key in named) and key.startswith(prefix)}
    assert wanted.meets(segment(there, listed=listed)) or not fits
    if listed:
        assert wanted.meets(segment(there, listed=True)) == bool(fits)


@given(st.integers(0, 30), st.integers(0, 30))
def test_no_segment_of_a_wanted_time_is_left_out(low: int, high: int) -> None:
    wanted = Wanted(time=NumberRange(low, high))
    assert wanted.meets(segment({"a"}, listed=True)) == (low <= 20 and high > 10)


def test_rows_with_another_beginning_are_left_out() -> None:
    keys = pa.array(["ab", "b", "a", "ab"]).dictionary_encode()
    batch = pa.record_batch({"key": keys, "n": [0, 1, 2, 3]})
    assert Wanted(prefix="a").filter(batch).column("n").to_pylist() == [0, 2, 3]
    assert EVERYTHING.filter(batch) is batch


NAMES = ["a", "a/b", "a/c", "ab", "b", "a/**", "*/b", "@a", "a\n"]
TIMES = [5, 5, 4, 9, 1, 2, 3, 8, 7, 6, 5, 0]
ROWS = [(NAMES[n % len(NAMES)], EPOCH + timedelta(microseconds=at)) for n, at in enumerate(TIMES)]
COMPARE: dict[type[Filter], Any] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pushdown") / "j"
    with JournalWriter.open(folder) as writer:
        writer.append(0, rows([key for key, _ in ROWS], time=TIMES))
    return str(folder)


def moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


PARTS = st.one_of(
    st.builds(lambda one, at: one(("timestamp",), at), st.sampled_from(list(COMPARE)),
              st.integers(-1, 10).map(moment)),
    st.builds(lambda one, at: one(("offset",), at), st.sampled_from(list(COMPARE)),
              st.integers(-1, len(TIMES))),
    st.builds(lambda key: EqualTo(("key",), key), st.sampled_from([*NAMES, "a//b", "c"])),
    st.builds(lambda keys: In(("key",), tuple(keys)), st.lists(st.sampled_from(NAMES), max_size=3)),
    st.builds(lambda start: StringStartsWith(("key",), start), st.sampled_from(["", "a", "*"])),
)  # fmt: skip


def meets(offset: int, key: str, at: datetime, part: Any) -> bool:
    """What Spark would say of a row."""
    value = {"key": key, "timestamp": at, "offset": offset}[part.attribute[0]]
    if isinstance(part, In):
        return value in part.value
    if isinstance(part, StringStartsWith):
        return str(value).startswith(part.value)
    return bool(COMPARE[type(part)](value, part.value))


@given(st.lists(PARTS, max_size=3))
@example([EqualTo(("key",), "a/b")])
@example([EqualTo(("key",), "a/**")])
def test_what_is_not_asked_of_spark_again_is_decided_as_spark_would(
    journal: str, parts: list[Filter]
) -> None:
    options = SourceOptions({"path": journal}, READ)
    reader = JournalReader(options, ["offset", "key"])
    left = reader.pushFilters(parts)
    found = [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in zip(*(batch.column(name).to_pylist() for name in ("offset", "key")), strict=True)
    ]
    expected = [
        (offset, key)
        for offset, (key, at) in enumerate(ROWS)
        if all(meets(offset, key, at, part) for part in parts)
    ]
    assert list(left) == []
    assert sorted(found) == expected
