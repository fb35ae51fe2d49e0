"""The pace of a replay: a clock that is an argument."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import LocalError
from zenlake.replay.commands import Command, command_of, moment_at, range_at, typed
from zenlake.replay.pace import MAX, Pace, speed_of

S = 1_000_000_000
SPEEDS = st.sampled_from([0.5, 1.0, 4.0, 100.0])


@given(SPEEDS, st.lists(st.integers(0, 1000 * S), min_size=1).map(sorted))
def test_samples_are_due_in_order_and_at_their_distances(speed: float, moments: list[int]) -> None:
    pace = Pace(speed, moments[0], now=10.0)
    before = 0.0
    for moment in moments:
        wait = pace.wait(moment, 10.0)
        assert wait is not None
        assert wait == pytest.approx((moment - moments[0]) / S / speed, abs=1e-6)
        assert wait >= before
        before = wait


@given(SPEEDS, st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_a_pause_moves_everything_by_its_length(
    speed: float, before: float, pause: float, after: float
) -> None:
    pace, free = Pace(speed, 0, 0.0), Pace(speed, 0, 0.0)
    pace.pause(before)
    assert pace.wait(10**15, before + pause) is None
    pace.resume(before + pause)
    assert pace.position(before + pause + after) == pytest.approx(
        free.position(before + after), abs=1000
    )


def test_steps_pass_one_sample_each_and_stand_still_again() -> None:
    pace = Pace(1.0, 0, 0.0)
    pace.step(2, 0.0)
    for moment in (5 * S, 6 * S):
        assert pace.wait(moment, 0.0) == 0.0
        pace.passed(moment)
    assert pace.wait(7 * S, 99.0) is None
    assert pace.position(99.0) == 6 * S
    pace.resume(100.0)
    assert pace.wait(7 * S, 100.25) == pytest.approx(0.75)


def test_max_waits_for_nothing_and_another_speed_goes_on_from_the_last_sample() -> None:
    pace = Pace(MAX, 0, 0.0)
    assert pace.wait(10**18, 0.0) == 0.0
    pace.passed(50 * S)
    pace.go(2.0, 7.0)
    assert pace.wait(60 * S, 7.0) == pytest.approx(5.0)
    pace.seek(59 * S, 8.0)
    assert pace.wait(60 * S, 8.0) == pytest.approx(0.5)
    # Held up for long, it catches up.
    assert pace.wait(60 * S, 100.0) == 0.0


def test_speeds_as_people_write_them() -> None:
    assert speed_of("original") == 1.0
    assert speed_of("max") == MAX
    assert speed_of("0.25") == 0.25
    for wrong in ("fast", "0", "-1", "inf", "nan", ""):
        with pytest.raises(LocalError, match="is no speed"):
            speed_of(wrong)


@pytest.mark.parametrize(
    ("payload", "command"),
    [
        (b"pause", Command("pause")),
        (b'"resume"', Command("resume")),
        (b'{"do": "step", "count": 5}', Command("step", 5)),
        (b'{"do": "step"}', Command("step", 1)),
        (b'{"do": "speed", "to": "max"}', Command("speed", MAX)),
        (b'{"do": "seek", "to": "1970-01-01T00:00:01Z"}', Command("seek", S)),
        (b'{"do": "seek", "to": "-1.5s"}', Command("seek", -3 * S // 2, relative=True)),
    ],
)
def test_commands_on_the_bus(payload: bytes, command: Command) -> None:
    assert command_of(payload) == command


@pytest.mark.parametrize(
    "payload",
    [b"", b"dance", b"{", b"[]", b"\xff", b'{"do": 1}', b'{"do": "seek"}', b'{"do": "speed"}',
     b'{"do": "step", "count": 0}', b'{"do": "step", "count": true}', b"x" * 5000,
     b'{"do": "seek", "to": "now(-1h)"}', b'{"do": "seek", "to": "+1 year"}',
     b'{"do": "speed", "to": 1e999}'],
)  # fmt: skip
def test_what_is_no_command_is_refused(payload: bytes) -> None:
    with pytest.raises((LocalError, ValueError)) as told:
        command_of(payload)
    assert isinstance(told.value, LocalError)


@given(st.binary(max_size=40))
def test_no_bytes_are_anything_but_a_command_or_refused(payload: bytes) -> None:
    with contextlib.suppress(LocalError):
        assert command_of(payload).do


def test_the_keyboard() -> None:
    assert [one.do for one in typed(b" s\x1b[C\x1b[D+-xq")] == [
        "toggle", "step", "seek", "seek", "faster", "slower", "stop",
    ]  # fmt: skip


def test_moments_of_the_command_line() -> None:
    now = 1_000_000 * S
    assert moment_at("-10m", now) == now - 600 * S
    assert moment_at("now()", now) == now
    assert moment_at("1970-01-02", now) == 86_400 * S
    assert moment_at("1970-01-01T00:01", now) == 60 * S
    assert moment_at("1970-01-01T00:01Z", now) == 60 * S
    assert moment_at("1970-01-01T00:01:01.5Z", now) == 61_500_000_000
    with pytest.raises(ValueError, match="yesterday"):
        moment_at("yesterday", now)
    with pytest.raises(LocalError, match="the end must be later"):
        range_at("-1m", "-2m", now)
    found = range_at("-2m", "-1m", now)
    assert found.contains(now - 120 * S)
    assert not found.contains(now - 60 * S)
