"""Work is spread by bytes as well as by rows: a point cloud is one row, and so is a number."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.journal.reading.sizes import BlockSize
from zenlake.lake import Pipeline, read_config
from zenlake.lake.ingest.plan import LEAST_BYTES, JournalRange, RowSizes, cut, ranges

MB = 1 << 20


def blocks(*sizes: tuple[int, int], first: int = 0) -> RowSizes:
    """Blocks one behind the other, each of so many rows and bytes."""
    found = []
    for rows, size in sizes:
        found.append(BlockSize(first, first + rows, size))
        first += rows
    return RowSizes(found)


def test_a_share_ends_where_its_bytes_do_and_has_a_row_at_least() -> None:
    clouds = blocks((10, 40 * MB), (90, 9000))
    (span,) = ranges(0, {"samples": 0}, 100, 50, clouds, 12 * MB)
    assert span.end == 3
    (span,) = ranges(0, {"samples": 3}, 100, 50, clouds, 100)
    assert span.end == 4
    (span,) = ranges(0, {"samples": 10}, 100, 50, clouds, 12 * MB)
    assert span.end == 60
    # Rows of which nothing is known are bounded by their number alone.
    (span,) = ranges(0, {"samples": 0}, 100, 50, RowSizes(), 1)
    assert span.end == 50


def test_clouds_are_spread_and_small_rows_stay_together() -> None:
    plan = [JournalRange(0, 100, {"samples": 0}), JournalRange(1, 10_000, {"samples": 0})]
    sizes = {0: blocks((100, 400 * MB)), 1: blocks((10_000, MB))}
    tasks = cut(plan, parallel=2, least=20_000, most=500_000, sizes=sizes, most_bytes=128 * MB)
    assert [[(one.partition, one.end - one.first) for one in task] for task in tasks] == [
        [(0, 32)],
        [(0, 32)],
        [(0, 32)],
        [(0, 4), (1, 10_000)],
    ]
    # Without their sizes they would be one task.
    assert len(cut(plan, parallel=2, least=20_000, most=500_000)) == 1


def test_rows_that_grow_are_not_one_task_more_than_run_at_once() -> None:
    plan, sizes = (
        [JournalRange(0, 100_000, {"samples": 0})],
        {0: blocks((50_000, 90 * MB), (50_000, 99 * MB))},
    )
    tasks = cut(plan, parallel=2, least=20_000, most=500_000, sizes=sizes, most_bytes=256 * MB)
    assert [sum(one.end - one.first for one in task) for task in tasks] == [50_000, 50_000]


sized = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 5 * LEAST_BYTES)), min_size=1, max_size=8
)


@given(
    st.lists(sized, min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 30),
    st.integers(1, 40),
    st.integers(1, 3 * LEAST_BYTES),
    st.integers(0, 5),
)
def test_each_row_is_in_one_task_in_order_and_none_is_above_its_bytes_unless_it_is_one_row(
    parts: list[list[tuple[int, int]]],
    parallel: int,
    least: int,
    most: int,
    most_bytes: int,
    late: int,
) -> None:
    sizes = {p: blocks(*each) for p, each in enumerate(parts)}
    ends = [sum(rows for rows, _ in each) for each in parts]
    plan = [JournalRange(p, end, {"a": 0, "b": min(late, end - 1)}) for p, end in enumerate(ends)]
    tasks = cut(plan, parallel=parallel, least=least, most=most, sizes=sizes, most_bytes=most_bytes)
    got = [
        (stretch.partition, offset)
        for task in tasks
        for stretch in task
        for offset in range(stretch.first, stretch.end)
    ]
    assert got == [(p, offset) for p, end in enumerate(ends) for offset in range(end)]
    for task in tasks:
        rows = sum(one.end - one.first for one in task)
        size = sum(sizes[one.partition].bytes(one.first, one.end) for one in task)
        assert 0 < rows <= most
        assert size <= most_bytes or rows == 1


@given(sized, st.integers(0, 60), st.integers(1, 60), st.integers(0, 6 * LEAST_BYTES))
def test_how_far_bytes_reach_is_what_they_have(
    parts: list[tuple[int, int]], first: int, more: int, most: int
) -> None:
    sizes, end = blocks(*parts), first + more
    stop = sizes.reach(first, end, most)
    assert first < stop <= end
    assert sizes.bytes(first, stop) <= most or stop == first + 1
    assert stop == end or sizes.bytes(first, stop + 1) > most
    assert sizes.bytes(0, sum(rows for rows, _ in parts)) == sum(size for _, size in parts)


def test_a_pipeline_cuts_its_steps_and_tasks_by_the_bytes_of_the_journal(tmp_path: Path) -> None:
    config = read_config("{batch: {bytes: 3000000, task_bytes: 1000000, task_rows: 1000}}")
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    for n in range(6):
        write(journal, [Row("cloud", bytes(900_000), n), Row("pose", b"1", n)], partitions=1)
    pipeline = Pipeline(str(lake), str(journal), Here(), config)
    assert pipeline.step().behind > 0
    some = len(rows_of(lake, "samples"))
    assert 4 <= some <= 7
    while pipeline.step().behind:
        pass
    assert sorted(row["offset"] for row in rows_of(lake, "samples")) == list(range(12))
