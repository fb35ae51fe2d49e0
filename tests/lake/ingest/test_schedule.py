from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.ingest.schedule import (
    BURST,
    QUICK,
    STEADY,
    CommitSchedule,
    RewriteSchedule,
)


def followed(
    schedule: CommitSchedule, seconds: float, rate: float, takes: float = 0.3
) -> list[float]:
    """When steps begin while rows come at a rate: each takes all that waits."""
    now, taken, begun = 0.0, 0.0, []
    while now < seconds:
        waiting = int(now * rate - taken)
        wait = schedule.wait(now, waiting)
        if wait == 0.0:
            begun.append(now)
            taken += waiting
            schedule.stepped(now, now + takes)
            now += takes
        else:
            now += 0.05 if wait is None else max(0.01, wait)
    return begun


def test_nothing_that_waits_is_no_step() -> None:
    assert CommitSchedule().wait(0.0, 0) is None


def test_a_quiet_lake_commits_at_once() -> None:
    schedule = CommitSchedule()
    for now in (0.0, 30.0, 60.0, 90.0):
        assert schedule.wait(now, 1) == 0.0
        schedule.stepped(now, now + 0.3)


def test_a_steady_flow_is_committed_every_ten_seconds_after_the_first_few() -> None:
    begun = followed(CommitSchedule(), 100.0, 130.0)
    assert len([at for at in begun if at < 5.0]) == BURST
    assert all(b - a > QUICK - 1e-6 for a, b in itertools.pairwise(begun))
    assert 11 <= len(begun) <= 10 + BURST


def test_a_slow_machine_commits_less_often() -> None:
    begun = followed(CommitSchedule(), 200.0, 130.0, takes=3.0)
    assert len(begun) <= 200 / 15 + BURST


def test_what_the_operator_says_is_obeyed_while_rows_come() -> None:
    begun = followed(CommitSchedule(every=10.0), 30.0, 130.0)
    assert len(begun) == 3
    assert len(followed(CommitSchedule(every=0.2), 10.0, 130.0, takes=0.01)) >= 45


def test_far_behind_nothing_is_waited_for() -> None:
    for schedule in (CommitSchedule(far=1000), CommitSchedule(every=60.0, far=1000)):
        schedule.stepped(0.0, 0.3)
        schedule.stepped(0.4, 0.7)
        assert schedule.wait(0.8, 1000) == 0.0
        assert schedule.wait(0.8, 999) != 0.0


def test_a_failure_is_tried_again_later_and_later_and_success_forgets_it() -> None:
    schedule = CommitSchedule(far=10)
    waits = []
    for _ in range(9):
        waits.append(schedule.failed(100.0))
        assert schedule.wait(100.0, 10) == waits[-1]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.5, 30.0)
    assert schedule.wait(131.0, 10) == 0.0
    schedule.stepped(131.0, 131.1)
    assert (schedule.failures, schedule.failed(200.0)) == (0, 0.5)


@given(
    st.floats(1, 100_000),
    st.floats(0.01, 5),
    st.none() | st.floats(0.1, 30),
)
def test_no_flow_makes_more_steps_than_credit_or_the_operator_allows(
    rate: float, takes: float, every: float | None
) -> None:
    schedule = CommitSchedule(every, far=10**12)
    begun = followed(schedule, 120.0, rate, takes)
    most = 120.0 / STEADY + BURST + 1 if every is None else 120.0 / max(every, takes) + 1
    assert len(begun) <= most
    assert begun


def test_a_table_is_written_anew_when_the_news_are_worth_it() -> None:
    rewriting = RewriteSchedule(share=0.5, soonest=10.0, latest=100.0)
    assert not rewriting.due(0.0, 0, 0)
    assert rewriting.due(0.0, 1, 1000)
    rewriting.done(0.0)
    assert not rewriting.due(5.0, 10_000, 1000)
    assert not rewriting.due(10.0, 1999, 1000)
    assert rewriting.due(10.0, 2000, 1000)
    assert rewriting.due(100.0, 1, 1000)
    assert not rewriting.due(100.0, 0, 1000)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=300), st.integers(1, 5000))
def test_rewriting_costs_at_most_its_share_of_what_comes(news: list[int], size: int) -> None:
    rewriting = RewriteSchedule(share=0.25, soonest=0.0, latest=1e9)
    waiting, written = 0, 0
    for now, more in enumerate(news):
        waiting += more
        if rewriting.due(float(now), waiting, size):
            rewriting.done(float(now))
            written, waiting = written + size, 0
    assert written <= size + 0.25 * sum(news)
