"""The simulated fleet: the same seed tells the same story, and the story is a robot's."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from zenlake.demo import Emission, Fleet, Robot
from zenlake.demo.fleet import FLOOR


def story(fleet: Fleet, until: float) -> list[tuple[float, str, Emission]]:
    told = []
    while fleet.due < until:
        now = fleet.due
        for robot, said in fleet.step(now):
            told += [(now, robot.name, one) for one in said]
    return told


def test_the_same_seed_tells_the_same_story() -> None:
    first = story(Fleet.of(3, 10, 100, seed=7), 20)
    assert first == story(Fleet.of(3, 10, 100, seed=7), 20)
    assert first != story(Fleet.of(3, 10, 100, seed=8), 20)


def test_each_robot_speaks_at_its_rate() -> None:
    told = story(Fleet.of(4, 10, 0, seed=1), 10)
    for name in "1234":
        poses = [one for _, who, one in told if who == name and one.key.endswith("/pose")]
        batteries = [one for _, who, one in told if who == name and one.key.endswith("/battery")]
        assert 98 <= len(poses) <= 101
        assert 9 <= len(batteries) <= 11


def test_pictures_are_about_as_large_as_asked_and_none_without_a_camera() -> None:
    sizes = [
        len(one.payload or b"")
        for _, _, one in story(Fleet.of(2, 10, 1000, seed=1), 10)
        if one.key.endswith("/camera")
    ]
    assert len(sizes) >= 18
    assert all(700 <= size <= 1302 for size in sizes)
    assert not [1 for _, _, one in story(Fleet.of(2, 10, 0, seed=1), 10) if "camera" in one.key]


def test_a_fault_that_is_over_is_deleted() -> None:
    faults = [one for _, _, one in story(Fleet.of(20, 1, 0, seed=3), 300) if "fault" in one.key]
    begun = [json.loads(one.payload) for one in faults if one.payload is not None]
    assert begun
    assert {"code", "text"} == set(begun[0])
    assert [one for one in faults if one.payload is None]


def test_robots_are_out_of_reach_now_and_then_and_come_back() -> None:
    fleet = Fleet.of(20, 1, 0, seed=3)
    seen: dict[str, list[bool]] = {robot.name: [] for robot in fleet.robots}
    while fleet.due < 600:
        for robot, _ in fleet.step(fleet.due):
            seen[robot.name].append(robot.out_of_reach)
    gone = [name for name, times in seen.items() if any(times)]
    assert gone
    assert all(False in seen[name][seen[name].index(True) :] for name in gone[:1])


def test_a_fleet_that_was_held_up_does_not_speak_for_all_the_time_it_lost() -> None:
    fleet = Fleet.of(1, 10, 0, seed=1)
    assert sum(len(said) for _, said in fleet.step(3600.0)) < 40


@given(seed=st.integers(), rate=st.floats(0.1, 100))
def test_a_robot_stays_on_the_floor_and_in_its_right_mind(seed: int, rate: float) -> None:
    fleet = Fleet.of(1, rate, 0, seed)
    robot: Robot = fleet.robots[0]
    for _ in range(200):
        fleet.step(fleet.due)
        assert 0 <= robot.x <= FLOOR
        assert 0 <= robot.y <= FLOOR
        assert 0 <= robot.percent <= 100
        assert 0 <= robot.celsius <= 80
