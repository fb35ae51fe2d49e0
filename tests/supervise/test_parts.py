"""When a part is started, killed and started again: no clock, no process."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.supervise.parts import Order, RestartPolicy, State, SupervisedPart

POLICY = RestartPolicy(patience=30, silence=10, pause=0.5, longest=8, steady=60)


def started(now: float = 0.0) -> SupervisedPart:
    part = SupervisedPart("the lake", POLICY, now)
    assert part.tick(now) is Order.START
    return part


def test_a_part_is_started_once_and_is_up_when_it_says_so() -> None:
    part = started()
    assert part.tick(1) is Order.NONE
    part.ready(2)
    assert (part.state, part.since, part.restarts) == (State.UP, 2, 0)


def test_each_failure_in_a_row_doubles_the_pause_up_to_the_longest() -> None:
    part, now, pauses = started(), 0.0, []
    for _ in range(7):
        part.ended(now, "ended with 1")
        pauses.append(part.again_at - now)
        assert part.tick(part.again_at - 0.01) is Order.NONE
        now = part.again_at
        assert part.tick(now) is Order.START
    assert pauses == [0.5, 1, 2, 4, 8, 8, 8]
    assert part.restarts == 7


def test_what_was_up_for_long_begins_again_with_the_shortest_pause() -> None:
    part = started()
    for now in (1.0, 10.0):
        part.ended(now, "was killed by SIGKILL")
        part.tick(part.again_at)
    part.ready(20)
    for now in range(21, 80, 5):
        part.heard(now)
        assert part.tick(now) is Order.NONE
    assert part.reason == "was killed by SIGKILL"
    part.heard(80)
    part.tick(80)
    assert (part.failures, part.reason) == (0, "")
    part.ended(90, "was killed by SIGKILL")
    assert part.again_at == 90.5


def test_a_refusal_waits_the_longest_pause_at_once() -> None:
    part = started()
    part.ended(1, "lake.json5 is wrong", refused=True)
    assert part.again_at == 9


def test_what_does_not_come_up_is_killed_and_started_again() -> None:
    part = started()
    assert part.tick(29.9) is Order.NONE
    assert part.tick(30) is Order.KILL
    assert part.tick(31) is Order.NONE, "it is killed once"
    part.ended(31, "was killed by SIGKILL")
    assert part.reason == "was not up after 30 s and was killed"
    assert part.tick(31.5) is Order.START


def test_what_falls_silent_is_killed_and_what_speaks_is_not() -> None:
    part = started()
    part.ready(1)
    part.heard(9)
    assert part.tick(18.9) is Order.NONE
    assert part.tick(19) is Order.KILL
    part.ended(19, "whatever")
    assert part.reason == "said nothing for 10 s and was killed"


def test_a_part_that_was_stopped_is_not_started_again() -> None:
    part = started()
    part.ready(1)
    part.stop(2)
    part.ended(3, "ended with 0")
    assert part.tick(1000) is Order.NONE
    assert part.state is State.STOPPED


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from(["tick", "ready", "heard", "end"]))))
def test_whatever_happens_it_is_started_again_within_the_longest_pause(
    events: list[tuple[float, str]],
) -> None:
    part, now, running = SupervisedPart("a part", POLICY), 0.0, False
    for passed, event in events:
        now += passed
        if event == "tick":
            order = part.tick(now)
            assert not (order is Order.START and running), "it never runs twice"
            assert not (order is Order.KILL and not running)
            running = running or order is Order.START
            if order is Order.KILL:
                part.ended(now, "was killed")
                running = False
        elif event == "end" and running:
            part.ended(now, "ended with 1")
            running = False
        elif event == "ready" and running:
            part.ready(now)
        elif event == "heard" and running:
            part.heard(now)
    if not running:
        assert part.tick(now + POLICY.longest) is Order.START
