"""Samples come in the order of time, whatever the pieces, in memory that is bounded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import LocalError
from zenlake.recorded.columns import encoding_words
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.replay.order import in_order
from zenlake.replay.rows import ROWS, from_answer, from_lake
from zenlake.replay.sources import AnswerSource

ROW = st.tuples(st.integers(0, 30), st.integers(0, 2))


def table(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Rows of (hlc, partition, offset)."""
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in ROWS.names}
    columns |= {"key": ["k"] * len(rows), "value": [b""] * len(rows)}
    for place, name in enumerate(("hlc", "partition", "offset")):
        columns[name] = [row[place] for row in rows]
    return pa.table(columns, schema=ROWS)


@given(
    st.lists(st.lists(ROW, min_size=1, max_size=8), max_size=8),
    st.sampled_from([1, 400, 1 << 30]),
)
def test_all_rows_come_once_and_in_order(pieces: list[list[tuple[int, int]]], held: int) -> None:
    offset = 0
    numbered: list[list[tuple[int, int, int]]] = []
    for piece in pieces:
        rows = []
        for hlc, partition in piece:
            rows.append((hlc, partition, offset))
            offset += 1
        numbered.append(rows)
    numbered.sort(key=lambda rows: min(rows)[0])
    given_pieces = [(min(rows)[0], table(rows)) for rows in numbered]
    found = [
        (row["hlc"], row["partition"], row["offset"])
        for part in in_order(given_pieces, held)
        for row in part.to_pylist()
    ]
    assert found == sorted(row for rows in numbered for row in rows)


def test_what_is_earlier_than_the_next_piece_does_not_wait_for_it() -> None:
    read = []

    def pieces() -> Any:
        for at in (0, 10, 20):
            read.append(at)
            yield at, table([(at, 0, at), (at + 3, 0, at + 1)])

    found = in_order(pieces())
    assert next(found)["hlc"].to_pylist() == [0, 3]
    assert read == [0, 10]
    assert [part["hlc"].to_pylist() for part in found] == [[10, 13], [20, 23]]


def test_runs_that_are_put_aside_are_merged_batch_by_batch(monkeypatch: Any) -> None:
    monkeypatch.setattr("zenlake.replay.order.RUN_ROWS", 2)
    pieces = [(0, table([(hlc, 0, hlc * 10 + n) for hlc in range(n, 40, 3)])) for n in range(3)]
    found = list(in_order(pieces, held=1))
    assert [hlc for part in found for hlc in part["hlc"].to_pylist()] == list(range(40))
    assert max(part.num_rows for part in found) < 20, "nothing was merged before all was read"


@pytest.mark.parametrize(
    ("text", "id", "schema"),
    [
        (None, 0, None),
        ("zenoh/bytes", 0, None),
        ("application/json;pose", 5, "pose"),
        ("my/own;v2", 65535, "my/own;v2"),
        ("unknown(4000)", 4000, None),
        ("unknown(4000);a\nb", 4000, "a\nb"),
        ("unknown(65535);text/plain", 65535, "text/plain"),
    ],
)
def test_words_of_a_lake_are_numbers_again(text: str | None, id: int, schema: str | None) -> None:
    row = {name: pa.nulls(1, ROWS.field(name).type) for name in ROWS.names}
    row |= {"key": pa.array(["k"]), "value": pa.array([b""]), "hlc": pa.array([0])}
    row |= {"encoding": pa.array([text], pa.string()), "kind": pa.array(["put"])}
    row |= {"stamp_id": pa.array(["1ab"])}
    found = from_answer(pa.table(row)).to_pylist()[0]
    assert (found["encoding_id"], found["encoding_schema"]) == (id, schema)
    assert (found["kind"], found["stamp_id"]) == (0, b"\xab\x01")


@given(st.integers(0, 65535), st.none() | st.text(st.characters(codec="utf-8"), max_size=5))
def test_encodings_survive_the_words_of_a_lake(id: int, schema: str | None) -> None:
    text = encoding_words(pa.array([id], pa.int32()), pa.array([schema], pa.string()))
    row = {name: pa.nulls(1, ROWS.field(name).type) for name in ROWS.names}
    row |= {"encoding": text, "kind": pa.array(["put"]), "stamp_id": pa.array(["ab"])}
    found = from_lake(pa.table(row))
    assert (found["encoding_id"].to_pylist(), found["encoding_schema"].to_pylist()) == (
        [id],
        [schema or None],
    )
    assert found["stamp_id"].to_pylist() == [b"\xab"]


def test_an_answer_in_sql_needs_key_value_and_time() -> None:
    second = 1_000_000
    times = pa.array([3 * second, 1 * second + 1], pa.timestamp("us", tz="UTC"))
    answer = pa.table({"key": ["a", "b"], "value": ["x", "y"], "time": times})
    rows = from_answer(answer)
    assert rows["hlc"].to_pylist()[0] + HLC_BIAS == 3 << 32
    source = AnswerSource(answer)
    assert source.span() == (1_000_001_000, 3_000_000_000)
    assert [part["key"].to_pylist() for part in source.rows()] == [["b", "a"]]
    assert [part["key"].to_pylist() for part in source.rows(2_000_000_000)] == [["a"]]
    with pytest.raises(LocalError, match=r"has no value.*SELECT \* FROM samples"):
        from_answer(pa.table({"key": ["a"], "time": times[:1]}))
