"""A ring keeps what lies around events, and no more than it may."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.recording import recording, until_heard
from tests.journal.rows import rows, told
from tests.waiting import SECONDS, until
from zenlake.journal import Journal
from zenlake.journal.ingest.ring import LATE, Ring
from zenlake.journal.options import Around

BEFORE, AFTER = 30, 10
#: What happens, in the order of time: so many microseconds later, rows or an event.
HAPPENS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0, 1, 1, 3])), max_size=40)


def received(parts: list[tuple[int, object]]) -> list[int]:
    found: list[int] = []
    for _, batch in parts:
        found += batch.column("received").cast("int64").to_pylist()  # type: ignore[attr-defined]
    return found


@given(HAPPENS)
def test_exactly_what_lies_around_events_is_kept(happens: list[tuple[int, int]]) -> None:
    ring = Ring(BEFORE, AFTER)
    now, kept, events, everything = 1000, list[int](), list[int](), list[int]()
    for later, count in happens:
        now += later
        if count:
            batch = rows(["a"] * count, time=[now] * count)
            everything += [now] * count
            kept += received(ring.enter(0, batch))
        else:
            events.append(now)
            kept += received(ring.event(now))
    wanted = [t for t in everything if any(e - BEFORE <= t <= e + AFTER for e in events)]
    assert sorted(kept) == sorted(wanted)
    assert (ring.events, ring.kept) == (len(events), len(wanted))
    ring.close()
    assert ring.passed + ring.kept == len(everything)
    assert (ring.rows, ring.bytes, ring.overflowed) == (0, 0, 0)


def test_a_batch_is_cut_where_the_window_begins_and_ends() -> None:
    ring = Ring(BEFORE, AFTER)
    assert ring.enter(1, rows(["a"] * 100, time=list(range(100)))) == []
    assert received(ring.event(60)) == list(range(30, 71))
    # An event that comes again adds only what is not kept yet; what follows is kept at once.
    assert received(ring.event(65)) == list(range(71, 76))
    assert received(ring.enter(1, rows(["a"] * 3, time=[74, 75, 76]))) == [74, 75]


def test_what_is_old_is_let_go_and_what_is_too_much_is_counted() -> None:
    ring = Ring(BEFORE, AFTER, most_bytes=20_000)
    for n in range(100):
        ring.enter(0, rows(["a"] * 10, time=[n] * 10))
        assert ring.bytes <= 20_000
    assert ring.overflowed > 0
    assert ring.rows + ring.overflowed == 1000
    held = ring.rows
    ring.enter(0, rows(["a"], time=[100 + BEFORE + LATE]))
    assert ring.passed == held
    assert ring.rows == 1


@pytest.mark.parametrize("level", [1, 5])
def test_a_recorder_writes_only_what_lies_around_an_event(tmp_path: Path, level: int) -> None:
    around = Around("alarm/*?_filter=level>3", before=3600.0, after=3600.0)
    with recording(tmp_path / "j", "r/**", around=around) as (recorder, other):
        values, alarms = other.declare_publisher("r/a"), other.declare_publisher("alarm/1")
        until_heard(values)
        until_heard(alarms)
        for n in range(10):
            values.put(str(n))
        ring = recorder.ring
        assert ring is not None
        until(lambda: ring.rows == 10)
        assert recorder.rows == 0
        alarms.put(f'{{"level": {level}}}')
        if level > 3:
            until(lambda: recorder.rows == 10)
            values.put("10")
            until(lambda: recorder.rows == 11)
        else:
            values.put("10")
            until(lambda: ring.rows == 11)
        # It does not have all values, so it answers for none.
        assert list(other.get("r/**", timeout=SECONDS)) == []
    found = [value for _, _, value in told(Journal.open(tmp_path / "j").scan())]
    assert found == ([str(n).encode() for n in range(11)] if level > 3 else [])
    assert recorder.report()["drops"] == ({} if level > 3 else {"around no event": 11})
