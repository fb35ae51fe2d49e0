"""When alerts are raised and cleared, beside a model that looks at every moment."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import LocalError
from zenlake.lake.continuous import alert_state
from zenlake.lake.continuous.alert_state import AlertState, Change
from zenlake.lake.continuous.manager import reached

SUBJECTS = ("a", "b", "c")
EVENTS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(SUBJECTS), st.booleans()), max_size=30
).map(lambda events: sorted(events, key=lambda event: event[0]))


def model(
    events: list[tuple[int, str, bool]], hold: int, end: int
) -> list[tuple[int, str, str, int]]:
    """For each subject, moment by moment: what is known, since when, and whether it was told."""
    found = []
    for subject in SUBJECTS:
        since: int | None = None
        told = False
        for now in range(end + 1):
            # What a moment raises comes before what is heard in it.
            if since is not None and not told and now == since + hold:
                told = True
                found.append((now, subject, "raised", since))
            for time, about, holds in events:
                if time != now or about != subject:
                    continue
                if holds and since is None:
                    since, told = now, hold == 0
                    if told:
                        found.append((now, subject, "raised", since))
                elif not holds and since is not None:
                    if told:
                        found.append((now, subject, "cleared", since))
                    since = None
    return sorted(found)


def told(changes: list[Change]) -> list[tuple[int, str, str, int]]:
    return sorted((one.time, one.subject, one.state, one.since) for one in changes)


@given(EVENTS, st.integers(0, 15), st.data())
def test_every_moment_counts_whenever_it_is_looked_at(
    events: list[tuple[int, str, bool]], hold: int, data: st.DataObject
) -> None:
    # Two events of a subject at one moment have no order that both could know.
    seen: dict[tuple[int, str], bool] = {}
    for time, subject, holds in events:
        seen.setdefault((time, subject), holds)
    events = [(time, subject, holds) for (time, subject), holds in seen.items()]
    state = AlertState(hold)
    changes: list[Change] = []
    for time, subject, holds in events:
        if data.draw(st.booleans()):
            changes += state.passed(data.draw(st.integers(0, time)))
        if data.draw(st.booleans()):
            # Killed, and started again from what was noted.
            kept = json.loads(json.dumps(state.plain()))
            state = AlertState(hold)
            state.load(kept)
        changes += state.heard(time, subject, holds, {})
    changes += state.passed(60)
    assert told(changes) == model(events, hold, 60)


def test_what_comes_late_counts_for_nothing() -> None:
    state = AlertState(0)
    state.heard(10, "a", True, {})
    assert [one.state for one in state.heard(20, "a", False, {})] == ["cleared"]
    assert state.heard(15, "a", True, {}) == []
    assert state.heard(20, "a", True, {}) == []
    assert [one.state for one in state.heard(21, "a", True, {"n": 1})] == ["raised"]
    assert state.heard(18, "a", False, {}) == []
    assert (state.raised, state.pending) == (1, 0)


def test_subjects_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_state, "MOST", 3)
    state = AlertState(5)
    for n in range(3):
        state.heard(n, f"robot/{n}", True, {})
    with pytest.raises(LocalError, match="more than 3 subjects"):
        state.heard(4, "robot/4", True, {})


def test_time_goes_as_far_as_everything_was_heard() -> None:
    looks = [(1.0, (0, 0)), (2.0, (5, 0)), (3.0, (5, 7)), (4.0, (9, 7))]
    assert reached(looks, [[5, 7]]) == 3.0
    assert reached(looks, [[9, 9], [5, 0]]) == 2.0
    assert reached(looks, [[9, 7]]) == 4.0
    assert reached(looks, []) is None
    assert reached(looks[1:], [[4, 7]]) is None
