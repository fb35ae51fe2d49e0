from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.brake import FREE, FREE_USER, LONGEST, LONGEST_NAME, REMEMBERED, LoginBrake


def test_a_thousand_guesses_take_hours_and_not_a_second() -> None:
    brake, now = LoginBrake(), 0.0
    for _ in range(1000):
        now += brake.wait("10.0.0.7", now)
        brake.failed("10.0.0.7", "anna", now)
    assert now > 12 * 3600


def test_a_few_mistakes_cost_nothing_and_a_success_forgives_them() -> None:
    brake = LoginBrake()
    for _ in range(FREE):
        brake.failed("10.0.0.7", "anna", 0.0)
    assert brake.wait("10.0.0.7", 0.0, "anna") == 0.0
    brake.failed("10.0.0.7", "anna", 0.0)
    assert brake.wait("10.0.0.7", 0.0) == 1.0
    assert brake.waiting(0.0) == [("10.0.0.7", FREE + 1, 1.0)]
    assert brake.wait("10.0.0.8", 0.0) == 0.0
    brake.succeeded("10.0.0.7", "anna")
    assert brake.wait("10.0.0.7", 0.0, "anna") == 0.0


def test_guesses_from_many_addresses_do_not_lock_a_user_out_from_home() -> None:
    brake = LoginBrake()
    brake.succeeded("home", "anna")
    for n in range(FREE_USER + 5):
        brake.failed(f"10.0.0.{n}", "anna", 0.0)
    assert brake.wait("elsewhere", 0.0, "anna") == 1.0
    assert brake.wait("home", 0.0, "anna") == 0.0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0, 100)), max_size=50))
def test_nobody_waits_longer_than_a_minute(told: list[tuple[int, int, float]]) -> None:
    brake, now = LoginBrake(), 0.0
    for address, user, pause in told:
        now += pause
        brake.failed(str(address), str(user), now)
        assert 0.0 <= brake.wait(str(address), now, str(user)) <= LONGEST


def test_strangers_fill_only_so_much_memory() -> None:
    brake = LoginBrake()
    for n in range(REMEMBERED + 100):
        brake.failed(str(n), str(n), 0.0)
        brake.succeeded(str(-n), str(n))
    assert len(brake._addresses) <= REMEMBERED
    assert len(brake._users) <= REMEMBERED
    assert len(brake._welcome) <= REMEMBERED


def test_long_names_are_remembered_by_how_they_begin() -> None:
    brake = LoginBrake()
    begun = "x" * LONGEST_NAME
    for number in range(FREE_USER + 1):
        brake.failed(f"address {number}", begun + str(number), 0.0)
    assert list(brake._users) == [begun]
    assert brake.wait("another", 0.0, begun + "more") == 1.0
    brake.succeeded("another", begun + "more")
    assert brake.wait("another", 0.0, begun + "more") == 0.0
