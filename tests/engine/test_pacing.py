from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.engine.congestion import BLOCK, BLOCK_FIRST, DROP, CongestionRules
from zenlake.engine.pacing import BATCH, IDLE, LINGER, Pacing

BURST = 1 << 20


@given(
    st.integers(1, 64),
    st.integers(0, 1 << 22),
    st.lists(st.one_of(st.none(), st.integers(1, BURST))),
)
def test_a_lane_holds_what_is_written_at_once_and_a_blocked_link_is_given_little(
    depth: int, burst: int, writes: list[int | None]
) -> None:
    pacing = Pacing(depth)
    pacing.burst = burst
    for size in writes:
        before = pacing.stride
        if size is None:
            pacing.took_part()
            assert (pacing.stride, pacing.depth) == (0, depth)
        else:
            pacing.took_all(size)
            assert before <= pacing.stride or before >= burst, "it grows while all is taken"
        assert 0 <= pacing.stride <= burst
        assert pacing.depth == max(depth, pacing.stride // BATCH)


def test_full_batches_wait_for_more_of_them_but_not_long() -> None:
    pacing = Pacing(2)
    pacing.burst = BURST
    while pacing.stride < BURST:
        pacing.took_all(BURST)
    assert pacing.is_burst_due(1, 10.0), "none went for a long time"
    assert not pacing.is_burst_due(BATCH, 10.0 + LINGER / 2)
    assert pacing.is_burst_due(BURST, 10.0 + LINGER / 2), "as many as the link takes at once"
    assert not pacing.is_burst_due(BATCH, 10.0 + LINGER), "that was a moment ago"
    assert pacing.is_burst_due(BATCH, 10.0 + 2 * LINGER)


def test_a_caller_writes_itself_when_no_other_has_for_a_moment() -> None:
    pacing = Pacing(2)
    pacing.last_direct = 5.0
    assert not pacing.is_idle(5.0 + IDLE / 2)
    assert pacing.is_idle(5.0 + 2 * IDLE)


def test_what_a_full_lane_means_depends_on_congestion_control_and_on_who_waits() -> None:
    rules = CongestionRules(0.5, 2.0)
    assert rules.may_drop(5, True, DROP)
    assert rules.may_drop(5, False, BLOCK), "best effort is never worth a session"
    assert not rules.may_drop(5, True, BLOCK)
    assert not rules.may_drop(5, True, BLOCK_FIRST)
    rules.blocking[5] = True
    assert rules.may_drop(5, True, BLOCK_FIRST)
    assert not rules.may_drop(4, True, BLOCK_FIRST), "of another priority"
    assert (rules.patience(True), rules.patience(False)) == (0.5, 2.0)
