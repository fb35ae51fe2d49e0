from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zenlake.journal.ledger.account import MOST_GAPS, Account, Gap


def entered(*stretches: list[int], healed: bool = False, bits: int = 32) -> Account:
    account = Account("k", bits)
    for numbers in stretches:
        enter(account, numbers)
    return account


def enter(
    account: Account,
    numbers: list[int],
    times: list[int] | None = None,
    healed: list[bool] | None = None,
) -> list[Gap]:
    stamps = np.array(times if times is not None else [0] * len(numbers), np.int64)
    own = None if times is None else np.ones(len(numbers), np.bool_)
    return account.enter(
        np.array(numbers, np.int64), stamps, own, None if healed is None else np.array(healed)
    )


def counts(account: Account) -> tuple[int, int, int, int, int, int]:
    return (
        account.expected,
        account.received,
        account.missing,
        account.duplicates,
        account.reordered,
        account.healed,
    )


def test_consecutive_numbers_are_complete() -> None:
    assert counts(entered([0, 1, 2], [3, 4])) == (5, 5, 0, 0, 0, 0)


def test_the_account_begins_with_the_first_number_heard() -> None:
    account = entered([100, 101])
    assert counts(account) == (2, 2, 0, 0, 0, 0)
    assert (account.first, account.next) == (100, 102)


def test_a_jump_is_a_gap() -> None:
    account = entered([0, 1])
    assert enter(account, [5, 6]) == [(2, 4)]
    assert counts(account) == (7, 4, 3, 0, 0, 0)


def test_what_comes_late_closes_its_part_of_the_gap() -> None:
    account = entered([0, 5], [3])
    assert account.gaps == [(1, 2), (4, 4)]
    assert counts(account) == (6, 3, 3, 0, 1, 0)


def test_what_is_healed_is_no_reordering() -> None:
    account = entered([0, 5])
    enter(account, [1, 2, 3, 4], healed=[True] * 4)
    assert counts(account) == (6, 6, 0, 0, 0, 4)
    assert account.gaps == []


def test_what_comes_twice_is_a_duplicate() -> None:
    assert counts(entered([0, 1, 1, 2], [2])) == (3, 3, 0, 2, 0, 0)


def test_something_older_than_the_first_extends_the_account() -> None:
    account = entered([10, 11], [7])
    assert counts(account) == (5, 3, 2, 0, 1, 0)
    assert account.gaps == [(8, 9)]


def test_numbers_begin_again_after_thirty_two_bits() -> None:
    top = 2**32
    assert counts(entered([top - 2, top - 1, 0, 1])) == (4, 4, 0, 0, 0, 0)
    assert entered([top - 2], [1]).gaps == [(top - 1, top)]
    assert counts(entered([0], [top - 1])) == (2, 2, 0, 0, 1, 0)


def test_a_source_that_starts_over_begins_a_new_run() -> None:
    account = Account("k", 32)
    enter(account, [0, 1, 3], [10, 11, 13])
    enter(account, [0, 1, 2], [20, 21, 22])
    assert account.restarts == 1
    assert counts(account) == (7, 6, 1, 0, 0, 0)
    assert account.gaps == []
    assert account.lost == 1


def test_a_late_sample_with_a_late_clock_is_not_a_new_start() -> None:
    """Two threads of one publisher may take number and time in different order."""
    account = Account("k", 32)
    enter(account, [0, 2, 1], [10, 12, 13])
    assert account.restarts == 0
    assert counts(account) == (3, 3, 0, 0, 1, 0)


def test_without_a_clock_of_its_own_only_a_zero_after_a_while_is_a_new_start() -> None:
    account = Account("k", 32)
    hundred = np.arange(100, dtype=np.int64)
    account.enter(hundred, hundred)
    account.enter(np.array([0], np.int64), np.array([200], np.int64))
    assert account.restarts == 1
    early = Account("k", 32)
    early.enter(np.array([0, 0, 1], np.int64), np.array([1, 2, 3], np.int64))
    assert (early.restarts, early.duplicates) == (0, 1)


def test_gaps_beyond_the_bound_are_counted_and_not_listed() -> None:
    account = Account("k", 32)
    every_other = np.arange(0, 2 * (MOST_GAPS + 11), 2, dtype=np.int64)
    account.enter(every_other, np.zeros(len(every_other), np.int64))
    assert len(account.gaps) == MOST_GAPS
    assert account.unlisted == 10
    assert account.missing == MOST_GAPS + 10


class Tally:
    """The same, one row after the other, with a set of all numbers."""

    def __init__(self) -> None:
        self.came: set[int] = set()
        self.duplicates = self.reordered = self.healed = 0

    def row(self, number: int, healed: bool) -> None:
        if number in self.came:
            self.duplicates += 1
        elif healed:
            self.healed += 1
        elif self.came and number < max(self.came):
            self.reordered += 1
        self.came.add(number)

    def gaps(self) -> list[Gap]:
        return [(a + 1, b - 1) for a, b in pairwise(sorted(self.came)) if b > a + 1]


rows = st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=40)


@given(rows, st.sampled_from([0, 2**32 - 15]), st.data())
def test_the_account_agrees_with_a_tally_however_rows_are_cut(
    found: list[tuple[int, bool]], start: int, data: st.DataObject
) -> None:
    tally = Tally()
    for number, healed in found:
        tally.row(number, healed)
    account = Account("k", 32)
    at = 0
    while at < len(found):
        size = data.draw(st.integers(1, len(found) - at))
        part = found[at : at + size]
        enter(
            account,
            [(number + start) % 2**32 for number, _ in part],
            healed=[healed for _, healed in part],
        )
        account = Account.from_state(json.loads(json.dumps(account.state())))
        at += size
    span = max(tally.came) - min(tally.came) + 1
    assert counts(account) == (
        span,
        len(tally.came),
        span - len(tally.came),
        tally.duplicates,
        tally.reordered,
        tally.healed,
    )
    assert account.rows == len(found)
    lowest = min(tally.came) - account.first
    assert [(a + lowest, b + lowest) for a, b in account.gaps] == tally.gaps()


timed = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20)


@given(timed, st.data())
def test_new_runs_are_found_however_rows_are_cut(
    found: list[tuple[int, int]], data: st.DataObject
) -> None:
    whole, parts = Account("k", 32), Account("k", 32)
    enter(whole, [number for number, _ in found], [time for _, time in found])
    at = 0
    while at < len(found):
        size = data.draw(st.integers(1, len(found) - at))
        part = found[at : at + size]
        enter(parts, [number for number, _ in part], [time for _, time in part])
        at += size
    assert whole == parts
    assert whole.rows == len(found) == whole.received + whole.duplicates


def test_what_did_not_come_was_sent_before_what_followed_it() -> None:
    account = Account("k", 32)
    enter(account, [0, 5, 9], [1000, 2000, 3000])
    assert [account.sent_before(n) for n in (3, 4, 6, 8)] == [1998, 1999, 2997, 2999]
    assert account.sent_before(5) is account.sent_before(10) is None
    enter(account, [7], [4000], healed=[True])
    assert [account.sent_before(n) for n in (6, 8)] == [2999, 2999]
    assert Account.from_state(account.state()) == account
    # Numbers older than the first one were sent before it, whenever they come.
    late = Account("k", 32)
    enter(late, [10], [500])
    enter(late, [7], [500])
    assert late.sent_before(9) == 499


def test_an_account_that_was_kept_without_times_of_gaps_is_taken_up() -> None:
    account = entered([0, 5])
    state = {name: value for name, value in account.state().items() if name != "since"}
    taken = Account.from_state(state)
    assert taken.gaps == [(1, 4)]
    assert taken.sent_before(3) is None
    enter(taken, [2], healed=[True])
    assert taken.gaps == [(1, 1), (3, 4)]


# ------------------------------------------------------------------------------- heartbeats


def test_a_heartbeat_shows_what_was_lost_at_the_end() -> None:
    account = entered([0, 1, 2])
    assert account.heartbeat(5, 9) == [(3, 5)]
    assert counts(account) == (6, 3, 3, 0, 0, 0)
    assert account.open_gaps == [(3, 5)]
    assert [account.lacks(number) for number in (2, 3, 5, 6)] == [False, True, True, False]
    assert account.heartbeat(7, 9) == [(6, 7)]
    assert account.open_gaps == [(3, 7)]


def test_a_heartbeat_that_tells_nothing_new_changes_nothing() -> None:
    account = entered([0, 1, 2])
    before = account.state()
    for number in (2, 1, 0, 2**32 - 1):
        assert not account.is_news(number)
        assert account.heartbeat(number, 9) == []
    assert account.state() == before


def test_what_somebody_else_told_is_put_right_by_the_next_heartbeat_of_the_source() -> None:
    account = entered(list(range(100)))
    assert account.heartbeat(99 + 2**31, 500) == [(100, 99 + 2**31)]
    enter(account, [*range(100, 150), *range(151, 200)])
    assert account.is_news(210)
    assert account.heartbeat(210, 600) == []
    assert account.open_gaps == [(150, 150), (200, 210)]
    assert account.missing == 12
    # What came already is not taken back by an old one.
    assert not account.is_news(198)
    account.heartbeat(199, 700)
    assert account.open_gaps == [(150, 150)]


def test_numbers_that_were_only_told_are_not_lost_when_the_source_is_heard_at_last() -> None:
    account = Account("k", 32)
    account.heartbeat(10**9, 5)
    account.heartbeat(2 * 10**9, 6)
    enter(account, [7, 8])
    assert counts(account) == (2, 2, 0, 0, 0, 0)


def test_a_sample_that_a_heartbeat_overtook_is_not_out_of_order() -> None:
    account = entered([0])
    account.heartbeat(2, 9)
    enter(account, [1, 2])
    assert counts(account) == (3, 3, 0, 0, 0, 0)
    assert account.open_gaps == []


def test_what_a_heartbeat_told_of_is_healed_like_any_gap() -> None:
    account = entered([0])
    account.heartbeat(3, 9)
    enter(account, [2, 3], healed=[True, True])
    assert account.open_gaps == [(1, 1)]
    enter(account, [1], healed=[True])
    assert counts(account) == (4, 4, 0, 0, 0, 3)


def test_a_source_known_by_its_heartbeat_has_lost_only_what_it_sent_since() -> None:
    account = Account("k", 32)
    assert account.heartbeat(99, 9) == []
    assert counts(account) == (0, 0, 0, 0, 0, 0)
    assert account.heartbeat(101, 9) == [(100, 101)]
    assert counts(account) == (2, 0, 2, 0, 0, 0)
    assert enter(account, [103]) == [(100, 102)]
    assert counts(account) == (4, 1, 3, 0, 0, 0)
    # One that was under way when the first heartbeat came.
    early = Account("k", 32)
    early.heartbeat(99, 9)
    enter(early, [99, 100])
    assert counts(early) == (2, 2, 0, 0, 0, 0)


def test_a_late_sample_of_a_source_known_by_its_heartbeat_opens_what_was_told() -> None:
    account = Account("k", 32)
    account.heartbeat(10, 9)
    assert enter(account, [8]) == [(9, 10)]
    assert account.open_gaps == [(9, 10)]
    assert enter(account, [9, 10]) == []
    assert account.open_gaps == []


def test_numbers_told_before_a_source_began_again_are_not_expected_of_it_now() -> None:
    account = Account("k", 32)
    enter(account, [0, 1], [10, 11])
    account.heartbeat(3, 12)
    enter(account, [0, 1], [20, 21])
    assert (account.restarts, account.lost) == (1, 2)
    assert counts(account) == (6, 4, 2, 0, 0, 0)
    only_told = Account("k", 32)
    only_told.heartbeat(500, 9)
    enter(only_told, [0, 1])
    assert (only_told.restarts, counts(only_told)) == (1, (2, 2, 0, 0, 0, 0))


def test_heartbeats_are_understood_where_numbers_begin_again() -> None:
    top = 2**32
    account = entered([top - 2])
    assert account.heartbeat(1, 9) == [(top - 1, top + 1)]
    assert account.missing == 3


def test_what_nothing_followed_was_sent_after_all_that_came_and_before_its_heartbeat() -> None:
    account = Account("k", 32)
    enter(account, [0, 1], [1000, 2000])
    account.heartbeat(3, 5000)
    assert [account.sent_before(number) for number in (2, 3)] == [4998, 4999]
    # A publisher's clock may be ahead of ours.
    ahead = Account("k", 32)
    enter(ahead, [0, 1], [1000, 9000])
    ahead.heartbeat(3, 5000)
    assert [ahead.sent_before(number) for number in (2, 3)] == [9001, 9002]


def test_an_account_that_was_kept_before_heartbeats_were_heard_is_taken_up() -> None:
    account = entered([0, 5])
    later = ("claimed", "told", "based")
    state = {name: value for name, value in account.state().items() if name not in later}
    assert Account.from_state(state) == account


said = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("rhb")), min_size=1, max_size=40)


@given(said, st.sampled_from([0, 2**32 - 15]))
def test_with_heartbeats_the_account_agrees_with_a_tally(
    found: list[tuple[int, str]], start: int
) -> None:
    """`r` came, `h` was healed, `b` was told of."""
    tally = Tally()
    account = Account("k", 32)
    told: list[int] = []
    for number, what in found:
        wire = (number + start) % 2**32
        if what == "b":
            known = tally.came or told
            high = max([*tally.came, *told], default=number)
            opened = account.heartbeat(wire, 0)
            assert sum(last - first + 1 for first, last in opened) == max(number - high, 0)
            # The last word counts, unless it is older than what came.
            if not known or number >= max(tally.came, default=found[0][0]):
                told = [number]
        else:
            tally.row(number, what == "h")
            enter(account, [wire], healed=[what == "h"])
        account = Account.from_state(json.loads(json.dumps(account.state())))
    # The first word says where to begin, if it is a heartbeat: after the number it tells.
    begins = {*tally.came}
    if found[0][1] == "b":
        begins.add(found[0][0] + 1)
    low, high = min(begins), max([*tally.came, *told])
    expected = high - low + 1
    assert account.expected == expected
    assert account.received == len(tally.came)
    assert account.missing == expected - len(tally.came)
    assert (account.duplicates, account.healed) == (tally.duplicates, tally.healed)
    missing = {n for first, last in account.open_gaps for n in range(first, last + 1)}
    shift = low - account.first
    assert {n + shift for n in missing} == set(range(low, high + 1)) - tally.came
