"""Questions wait for the turn of who asks; no Spark is needed to see that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from zenlake.errors import LocalError
from zenlake.lake import LakeConfig
from zenlake.lake.query.executor import (
    WAITING,
    AskerGone,
    QueueFull,
    SqlExecutor,
    SqlQuestion,
)
from zenlake.lake.query.lake import Lake
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.table.location import LakeLocation

QUESTION = "SELECT 1"


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[SqlExecutor]:
    """One that runs one question at a time, and is busy with one until the test ends."""
    executor = SqlExecutor(Lake(LakeLocation(tmp_path), None, LakeConfig()), at_once=1)
    begun, over = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        over.wait()

    assert executor.submit("busy", work)
    until(begun.is_set)
    yield executor
    over.set()
    executor.close()


def test_one_that_has_no_turn_in_its_time_is_refused(executor: SqlExecutor) -> None:
    with pytest.raises(QueueFull, match=r"no turn within 0\.01 s"):
        executor.ask(SqlQuestion(QUESTION, QueryLimits(seconds=0.01)), "a")
    assert executor.counts.refused == 1


def test_one_whose_asker_has_gone_is_not_asked(executor: SqlExecutor) -> None:
    with pytest.raises(AskerGone):
        executor.ask(SqlQuestion(QUESTION, gone=lambda: True), "a")
    assert executor.counts.abandoned == 1


def test_only_so_many_may_wait(executor: SqlExecutor) -> None:
    for number in range(WAITING):
        assert executor.submit(number, lambda: None)
    assert executor.waiting == WAITING
    with pytest.raises(QueueFull, match=f"{WAITING} questions wait already"):
        executor.ask(QUESTION, "a")


def test_what_is_only_planned_waits_for_its_turn_too(executor: SqlExecutor) -> None:
    planned: list[str] = []
    short = SqlQuestion(QUESTION, QueryLimits(seconds=0.01))
    with pytest.raises(QueueFull, match=r"no turn within 0\.01 s"):
        executor.judged(short, "a", lambda: planned.append("a"))
    with pytest.raises(AskerGone):
        executor.judged(SqlQuestion(QUESTION, gone=lambda: True), "a", lambda: planned.append("a"))
    for number in range(WAITING - executor.waiting):
        executor.judge_later(short, number, lambda: planned.append("later"))
    with pytest.raises(QueueFull, match=f"{WAITING} questions wait already"):
        executor.judge_later(short, "a", lambda: planned.append("a"))
    assert planned == []


def test_what_is_planned_later_gives_what_it_came_to(tmp_path: Path) -> None:
    executor = SqlExecutor(Lake(LakeLocation(tmp_path), None, LakeConfig()))
    assert executor.judge_later(SqlQuestion(QUESTION), "a", lambda: 7).result() == 7
    assert executor.judged(SqlQuestion(QUESTION), "a", lambda: 8) == 8

    def wrong() -> None:
        raise LocalError("it may not run")

    with pytest.raises(LocalError, match="it may not run"):
        executor.judged(SqlQuestion(QUESTION), "a", wrong)
    executor.close()


def test_one_asker_leaves_room_for_others(executor: SqlExecutor) -> None:
    taken = [executor.submit("greedy", lambda: None) for _ in range(WAITING)]
    assert sum(taken) == WAITING // 2
    assert executor.submit("a", lambda: None)


def test_askers_take_turns_whoever_asks_most(tmp_path: Path) -> None:
    executor = SqlExecutor(Lake(LakeLocation(tmp_path), None, LakeConfig()), at_once=1)
    first, order = threading.Event(), list[str]()
    executor.submit("holder", lambda: (first.wait(), None)[1])
    until(lambda: executor.waiting == 0)
    for who in ["a"] * 4 + ["b"] * 2:
        executor.submit(who, lambda who=who: order.append(who))  # type: ignore[misc]
    first.set()
    until(lambda: len(order) == 6)
    executor.close()
    assert order == ["a", "b", "a", "b", "a", "a"]
