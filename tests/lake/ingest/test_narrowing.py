from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.ingest.narrowing import PIECES, Narrowing, SearchResult, Trial
from zenlake.lake.ingest.plan import JournalRange, cut

NAMES = ("samples", "battery", "imu", "pose")


class World:
    """Tables and a journal of which some rows kill workers."""

    def __init__(
        self,
        rows: int,
        deadly: set[tuple[str, int]],
        named: Callable[[int], int | None] = lambda tasks: 0,
    ) -> None:
        """`named`: which of the tasks that died Spark names; None if it names none."""
        self.at = dict.fromkeys(NAMES, 0)
        self.rows = rows
        self.deadly = deadly
        self.jobs = self.deaths = 0
        self.named = named

    def offset(self, table: str, partition: int) -> int:
        return self.at[table]

    def run(self, trial: Trial, skips: list[tuple[str, int]]) -> JournalRange | None:
        """Commit a range, or give what a worker died of."""
        self.jobs += 1
        span = trial.range
        pieces = cut([span], parallel=max(2, trial.pieces), least=1, most=1000)
        died = [one for (one,) in pieces if self._deadly_in(one) - set(skips)]
        if not died:
            self.at |= dict.fromkeys(span.starts, span.end)
            return None
        self.deaths += 1
        which = self.named(len(died))
        return span if which is None else died[which]

    def _deadly_in(self, one: JournalRange) -> set[tuple[str, int]]:
        rows = {(t, n) for t, start in one.starts.items() for n in range(start, one.end)}
        return rows & self.deadly


def searched(
    world: World, narrowing: Narrowing, guilty: list[tuple[str, int]], times: int = 4
) -> None:
    """Add all that is found guilty, with the search kept as JSON between all trials."""
    while (trial := narrowing.trial(world.offset)) is not None:
        died = world.run(trial, guilty)
        if died is not None:
            verdict = narrowing.died(trial, died.first, died.end, times)
            assert verdict is not SearchResult.INNOCENT
            if verdict is SearchResult.GUILTY:
                (table,) = trial.range.starts
                guilty.append((table, died.first))
                narrowing.blame()
        narrowing = Narrowing(json.loads(json.dumps(narrowing.plain())))


def test_the_row_and_its_table_are_found_in_few_deaths_and_all_others_pass() -> None:
    world = World(100_000, {("imu", 61_700)})
    guilty: list[tuple[str, int]] = []
    narrowing = Narrowing()
    narrowing.accuse([JournalRange(0, 100_000, dict.fromkeys(NAMES, 0))])
    assert narrowing.tables == set(NAMES)
    searched(world, narrowing, guilty)
    assert guilty == [("imu", 61_700)]
    assert world.at["samples"] == 100_000
    assert min(world.at.values()) > 61_700, "what is left is read as ever"
    assert world.deaths <= 7


@given(
    st.integers(1, 300),
    st.sets(st.tuples(st.sampled_from(NAMES), st.integers(0, 299)), max_size=4),
    st.sampled_from([1, 4]),
    st.data(),
)
def test_whatever_kills_workers_is_found_and_nothing_else(
    rows: int, deadly: set[tuple[str, int]], times: int, data: st.DataObject
) -> None:
    def named(tasks: int) -> int | None:
        return data.draw(st.none() | st.integers(0, tasks - 1))

    deadly = {(table, row) for table, row in deadly if row < rows}
    world = World(rows, deadly, named)
    guilty: list[tuple[str, int]] = []
    while min(world.at.values()) < rows:
        plan = JournalRange(0, rows, {t: at for t, at in world.at.items() if at < rows})
        died = world.run(Trial(plan), guilty)
        if died is not None:
            narrowing = Narrowing()
            narrowing.accuse([died])
            searched(world, narrowing, guilty, times)
    assert sorted(guilty) == sorted(deadly)


def test_a_row_is_guilty_when_it_was_tried_twice_and_innocent_if_one_dies_without_it_too() -> None:
    narrowing = Narrowing()
    narrowing.accuse([JournalRange(3, 8, {"pose": 7})])
    verdicts = []
    for _ in range(2):
        trial = narrowing.trial(lambda table, partition: 7)
        assert trial == Trial(JournalRange(3, 8, {"pose": 7}), PIECES)
        verdicts.append(narrowing.died(trial, 7, 8, 1))
    assert verdicts == [SearchResult.SEARCHING, SearchResult.GUILTY]
    narrowing.blame()
    trial = narrowing.trial(lambda table, partition: 7)
    assert trial is not None
    assert narrowing.died(trial, 7, 8, 4) is SearchResult.INNOCENT
    assert narrowing.tables == frozenset()


def test_what_comes_before_the_rows_is_read_first_and_may_kill_as_well() -> None:
    narrowing = Narrowing()
    narrowing.accuse([JournalRange(0, 20, {"pose": 10})])
    trial = narrowing.trial(lambda table, partition: 2)
    assert trial == Trial(JournalRange(0, 10, {"pose": 2}))
    assert narrowing.died(trial, 2, 10) is SearchResult.SEARCHING
    assert narrowing.trial(lambda table, partition: 2) == Trial(
        JournalRange(0, 10, {"pose": 2}), PIECES
    )
    assert narrowing.trial(lambda table, partition: 10) == Trial(
        JournalRange(0, 20, {"pose": 10}), PIECES
    )


def test_a_death_that_does_not_come_again_blames_nobody() -> None:
    world = World(100, set())
    guilty: list[tuple[str, int]] = []
    narrowing = Narrowing()
    narrowing.accuse([JournalRange(0, 100, dict.fromkeys(NAMES, 0))])
    searched(world, narrowing, guilty)
    assert guilty == []
    assert world.jobs == 2


def test_tables_that_stop_or_are_gone_are_tried_no_more() -> None:
    narrowing = Narrowing(["not one", 7, [["pose"]], [["pose", "imu"], 0, 2, 9, 0, False]])
    assert narrowing.tables == {"pose", "imu"}
    at = {"imu": 2}
    assert narrowing.trial(lambda table, partition: at.get(table)) == Trial(
        JournalRange(0, 9, {"imu": 2}), PIECES
    )
    assert narrowing.trial(lambda table, partition: None) is None
    assert narrowing.tables == frozenset()
