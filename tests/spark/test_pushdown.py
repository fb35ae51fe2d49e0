from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
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
from zenlake.expr.closure import Microseconds, SampleFields, compiled
from zenlake.expr.tree import And, Comparison, Field, Literal, Moment, Node
from zenlake.journal import JournalWriter
from zenlake.journal.disk.segment import Segment
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.spark.options import READ, SourceOptions
from zenlake.spark.pushdown import (
    EVERYTHING,
    NumberRange,
    ScanRequest,
    condition_of,
    is_applied,
    partitions_meeting,
    segments_meeting,
)
from zenlake.spark.source import JournalReader

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OPERATORS: dict[type[Filter], tuple[str, Any]] = {
    EqualTo: ("=", operator.eq),
    EqualNullSafe: ("=", operator.eq),
    GreaterThan: (">", operator.gt),
    GreaterThanOrEqual: (">=", operator.ge),
    LessThan: ("<", operator.lt),
    LessThanOrEqual: ("<=", operator.le),
}


def moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def condition(*filters: Filter) -> And:
    """What is known of all of them."""
    each = [condition_of(one) for one in filters]
    return And(tuple(one for one in each if one is not None))


def requested(*filters: Filter) -> ScanRequest:
    return ScanRequest.of(condition(*filters))


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
def test_a_comparison_becomes_a_condition_and_a_range(one: Any, span: NumberRange) -> None:
    word, _ = OPERATORS[one]
    for name in ("time", "timestamp"):
        node = condition_of(one((name,), moment(5)))
        assert node == Comparison(Field("time"), word, Moment(5, moment(5).isoformat()))
        assert is_applied(node)
        assert ScanRequest.of(node) == ScanRequest(time=span)
    node = condition_of(one(("offset",), 5))
    assert node == Comparison(Field("offset"), word, Literal(5))
    assert is_applied(node)
    assert ScanRequest.of(node) == ScanRequest(offset=span)
    node = condition_of(one(("hlc",), 5))
    assert node == Comparison(Field("hlc"), word, Literal(5))
    assert not is_applied(node), "segments are left out for it; row by row it is Spark's"
    assert ScanRequest.of(node) == EVERYTHING


@pytest.mark.parametrize(
    "one",
    [
        Not(EqualTo(("key",), "a")),
        StringContains(("key",), "a"),
        EqualTo(("value",), b"a"),
        EqualTo(("key",), 5),
        EqualTo(("time",), datetime(2026, 1, 1)),
        EqualTo(("offset",), True),
        EqualTo(("partition",), 1 << 63),
        EqualTo(("a", "b"), 1),
        In(("key",), (None,)),
        IsNotNull(("source_id",)),
    ],
)
def test_what_the_journal_cannot_decide_stays_with_spark(one: Filter) -> None:
    assert condition_of(one) is None


@pytest.mark.parametrize("name", ["time", "offset", "hlc"])
def test_one_of_several_numbers_rules_segments_out_and_stays_with_spark(name: str) -> None:
    node = condition_of(In((name,), (moment(5),) if name == "time" else (5,)))
    assert node is not None
    assert not is_applied(node)


def test_keys_are_narrowed_by_every_filter() -> None:
    both = requested(In(("key",), ("a", "b", "c")), In(("key",), ("b", "c", "d", None)))
    assert both.keys == frozenset({"b", "c"})
    assert requested(EqualTo(("key",), "a"), EqualTo(("key",), "b")).expressions(None) == []
    assert requested(EqualTo(("key",), "a//b")).expressions(None) == []
    assert requested(StringStartsWith(("key",), "a")).expressions(None) is None


def test_only_subscribed_keys_are_asked_for() -> None:
    wanted = requested(In(("key",), ("a/x", "b/x")))
    assert wanted.expressions(["a/**"]) == ["a/x"]
    assert wanted.expressions(None) == ["a/x", "b/x"]
    assert EVERYTHING.expressions(["a/**"]) == ["a/**"]
    assert EVERYTHING.expressions(None) is None


def test_rows_with_another_beginning_are_left_out() -> None:
    keys = pa.array(["ab", "b", "a", "ab"]).dictionary_encode()
    batch = pa.record_batch({"key": keys, "n": [0, 1, 2, 3]})
    wanted = requested(StringStartsWith(("key",), "a"))
    assert wanted.filter(batch).column("n").to_pylist() == [0, 2, 3]
    assert EVERYTHING.filter(batch) is batch


# --- random filters -----------------------------------------------------------------------------

NAMES = ["a", "a/b", "a/c", "ab", "b", "a/**", "*/b", "@a", "a\n"]
TIMES = [5, 5, 4, 9, 1, 2, 3, 8, 7, 6, 5, 0]
#: Offset, key and time of each row of either partition.
ROWS = [(n, NAMES[n % len(NAMES)], at) for n, at in enumerate(TIMES)]


def hlc_of(micros: int) -> int:
    return (micros << 32) // 1_000_000 - HLC_BIAS


def comparisons(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda one, value: one((name,), value), st.sampled_from(list(OPERATORS)), values
    ) | st.builds(lambda among: In((name,), tuple(among)), st.lists(values, min_size=1, max_size=3))


KEYS = st.sampled_from([*NAMES, "a//b", "c"])
PREFIXES = st.builds(
    lambda start: StringStartsWith(("key",), start), st.sampled_from(["", "a", "a/", "*", "c"])
)
PARTS: st.SearchStrategy[Any] = st.one_of(
    comparisons("key", KEYS),
    PREFIXES,
    comparisons("timestamp", st.integers(-1, 10).map(moment)),
    comparisons("offset", st.integers(-1, len(TIMES))),
    comparisons("partition", st.integers(-1, 2)),
    comparisons("hlc", st.sampled_from(TIMES).map(hlc_of)),
)


def is_met(part: Any, partition: int, offset: int, key: str, at: int) -> bool:
    """What Spark would say of a row."""
    value: Any = {
        "key": key,
        "timestamp": moment(at),
        "offset": offset,
        "partition": partition,
        "hlc": hlc_of(at),
    }[part.attribute[0]]
    if isinstance(part, In):
        return value in part.value
    if isinstance(part, StringStartsWith):
        return str(value).startswith(part.value)
    _, compare = OPERATORS[type(part)]
    return bool(compare(value, part.value))


def is_accepted(node: Node, partition: int, offset: int, key: str, at: int) -> bool | None:
    """What the tree says of a row."""
    record = {
        "key": key,
        "time": Microseconds(at),
        "offset": offset,
        "partition": partition,
        "hlc": hlc_of(at),
    }
    return compiled(node)(SampleFields(record))


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rows in either of two partitions, in segments of four, of which the last still grows."""
    folder = tmp_path_factory.mktemp("pushdown") / "j"
    for start in range(0, len(ROWS), 4):
        some = ROWS[start : start + 4]
        with JournalWriter.open(folder, partitions=2, segment_bytes=1) as writer:
            for partition in range(2):
                batch = rows([key for _, key, _ in some], time=[at for _, _, at in some])
                writer.append(partition, batch)
    return str(folder)


@given(st.lists(PARTS, max_size=3))
@example([EqualTo(("key",), "a/b")])
@example([EqualTo(("key",), "a/**")])
@example([In(("offset",), (1, 9))])
@example([EqualTo(("hlc",), hlc_of(5))])
def test_what_is_not_asked_of_spark_again_is_decided_as_spark_would(
    journal: str, parts: list[Filter]
) -> None:
    options = SourceOptions({"path": journal, "filterPushdown": "true"}, READ)
    reader = JournalReader(options, ["partition", "offset", "key"])
    left = list(reader.pushFilters(parts))
    found = sorted(
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    known = {(n, offset): (n, offset, key, at) for n in range(2) for offset, key, at in ROWS}
    expected = [row for row in known.values() if all(is_met(part, *row) for part in parts)]
    node = condition(*parts)
    assert [row for row in known.values() if is_accepted(node, *row)] == expected
    given = [known[partition, offset] for partition, offset, _ in found]
    assert [row for row in given if all(is_met(part, *row) for part in left)] == expected
    assert [key for _, _, key in found] == [key for _, _, key, _ in given]


SEGMENTS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 9)), min_size=1, max_size=4),
        st.booleans(),
    ),
    max_size=4,
)


@given(SEGMENTS, st.lists(PARTS, max_size=3))
@example([([("a", 1), ("b", 1)], True)], [StringStartsWith(("key",), "a")])
@example([([("a", 1), ("b", 1)], False)], [StringStartsWith(("key",), "ab")])
def test_no_segment_or_partition_with_a_wanted_row_is_left_out(
    told: list[tuple[list[tuple[str, int]], bool]], parts: list[Filter]
) -> None:
    segments = []
    first = 0
    for of_segment, listed in told:
        keys, times = zip(*of_segment, strict=True)
        segments.append(
            Segment(
                first=first,
                end=first + len(keys),
                bytes=1,
                path="",
                sealed=True,
                min_time=min(times),
                max_time=max(times),
                min_hlc=hlc_of(min(times)),
                max_hlc=hlc_of(max(times)),
                keys=frozenset(keys) if listed else None,
                min_key=min(keys),
                max_key=max(keys),
            )
        )
        first += len(keys)
    node = condition(*parts)
    partitions, kept = partitions_meeting(node, 3), segments_meeting(node, segments)
    for partition in range(3):
        for segment, (of_segment, listed) in zip(segments, told, strict=True):
            accepted = [
                is_accepted(node, partition, offset, key, at)
                for offset, (key, at) in enumerate(of_segment, segment.first)
            ]
            assert not any(accepted) or (segment in kept and partition in partitions)
            if listed and {part.attribute[0] for part in parts} == {"key"}:  # type: ignore[attr-defined]
                assert (segment in kept) == any(accepted), "its keys say all"
