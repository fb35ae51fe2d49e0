"""Single samples, columns and SQL decide alike what is newest, whatever was said in whatever order.

They are `NewestValues`, `merged` and `fresh`. Each is compared with an oracle that sorts everything
that was ever said.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import zenlake.lake
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import START, Row, batch
from tests.newest.oracle import Said, answers, tell
from zenlake.lake import Pipeline
from zenlake.lake.ingest.latest import as_state, live, memory, merged
from zenlake.lake.model.sample_rows import sample_rows
from zenlake.newest import NewestValues

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = ["a/b", "a/xc", "d/b", "a/@x"]
WIDE = ["a/*", "**", "*/b", "a/$*c"]
#: The last is the second by its bytes, and the greatest by the digits of its text: 1, 2, 201.
CLOCKS = [b"\x01", b"\x02", b"\x01\x02"]

History = list[Said]
"""Samples in the order in which they arrive; by their times they come in any order, some twice."""


def _numbered(events: list[tuple[str, bool, tuple[int, bytes]]], again: list[int]) -> History:
    said = [
        Said(key, at, id, None if deleted else str(n))
        for n, (key, deleted, (at, id)) in enumerate(events)
    ]
    return said + [said[n] for n in again if n < len(said)]


def histories(least: int) -> st.SearchStrategy[History]:
    return st.builds(
        _numbered,
        st.lists(
            st.tuples(
                st.sampled_from(KEYS) | st.sampled_from(WIDE),
                st.sampled_from([False, False, True]),
                st.tuples(st.integers(0, 7), st.sampled_from(CLOCKS)),
            ),
            min_size=least,
            max_size=12,
            # No clock tells a time twice.
            unique_by=lambda event: event[2],
        ),
        st.lists(st.integers(0, 11), max_size=2),
    )


def expected(history: History) -> dict[str, str]:
    return {key: value for key, (_, _, value) in answers([*set(history)]).items()}


def of_single_samples(history: History) -> dict[str, str]:
    storage: NewestValues[str] = NewestValues()
    for one in history:
        tell(storage, one)
    return {held.key: held.value for held in storage.held() if held.value is not None}


def rows(history: History, heard: float | None = None) -> list[Row]:
    return [
        Row(
            one.key,
            b"" if one.value is None else one.value.encode(),
            at=one.time,
            kind=int(one.value is None),
            heard=heard,
            id=one.id,
        )
        for one in history
    ]


def of_columns(history: History, cuts: list[int]) -> dict[str, str]:
    """What is shown after merging batch by batch, by way of a file and what is in its footer."""
    table = sample_rows(batch(rows(history)), "j", 0)
    state = merged([table.slice(0, 0)])
    for start, end in itertools.pairwise(sorted({0, len(history), *cuts})):
        state = merged([as_state(live(state), memory(state)), table.slice(start, end - start)])
    return {row["key"]: row["value"].decode() for row in live(state).to_pylist()}


@given(histories(0), st.lists(st.integers(0, 12), max_size=3))
@example(
    [Said("a/b", 0, b"\x01", "0"), Said("a/*", 2, b"\x01", "1"), Said("**", 1, b"\x01", None)], [1]
)
@example([Said("a", 1, b"\x01\x02", "0"), Said("a", 1, b"\x02", "1")], [])
def test_single_samples_and_columns_answer_as_the_order_of_time_says(
    history: History, cuts: list[int]
) -> None:
    assert of_single_samples(history) == expected(history)
    assert of_columns(history, [cut for cut in cuts if cut < len(history)]) == expected(history)


@pytest.mark.spark
@pytest.mark.timeout(240)
# Each example is dozens of histories beside each other, and a lake.
@settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.large_base_example],
)
@given(st.lists(histories(6), min_size=30, max_size=30))
def test_sql_answers_so_too_of_what_a_table_has_and_what_came_since(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, several: list[History]
) -> None:
    place = tmp_path_factory.mktemp("newest")
    apart = [
        [replace(one, key=f"{n}/{one.key}") for one in history] for n, history in enumerate(several)
    ]
    first = [one for history in apart for one in history[: len(history) // 2]]
    since = [one for history in apart for one in history[len(history) // 2 :]]
    for said in (first, since):
        # Deletions are remembered for a while after they were heard.
        write(place / "journal", rows(said, heard=time.time() - START), 1)
        pipeline = Pipeline(str(place / "lake"), str(place / "journal"), Here())
        pipeline.step()
        if said is first:
            pipeline.finish()
    in_table = {row["key"]: row["value"].decode() for row in rows_of(place / "lake", "latest")}
    assert in_table == expected(first), "SQL has to merge the rest"
    answer = zenlake.lake.open(place / "lake", spark).sql("SELECT key, value FROM latest").collect()
    found = {row.key: bytes(row.value).decode() for row in answer}
    assert found == of_single_samples(first + since) == expected(first + since)
    assert len(answer) == len(found)
