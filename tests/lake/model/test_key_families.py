"""Which keys are one table, and what it is called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.keys import KeyFormat
from zenlake.lake.model.config import FIXED
from zenlake.lake.model.key_families import MOST_PENDING, MOST_TABLES, FamilyFinder, KeyFamily


def found_of(*keys: str, finder: FamilyFinder | None = None) -> dict[str, str]:
    """Return the formats of families whose keys come at once, by the names of their tables."""
    finder = finder or FamilyFinder()
    finder.observe(keys, {}, 0.0)
    return {one.name: one.format for one in finder.find((), 2.0)}


@pytest.mark.parametrize(
    ("keys", "tables"),
    [
        (["robot/7/battery", "robot/8/battery"], {"battery": "robot/${id:*}/battery"}),
        (["robot/alice/battery"], {"battery": "robot/${id:*}/battery"}),
        (["fleet/robots/r2d2/pose"], {"pose": "fleet/${fleet:*}/${part2:*}/pose"}),
        (
            ["plant/a/line/3/motor/temp"],
            {"temp": "plant/${plant:*}/line/${line:*}/motor/temp"},
        ),
        (["home/kitchen/temp", "home/attic/temp"], {"temp": "home/${id:*}/temp"}),
        (["home/kitchen/temp"], {"temp": "home/kitchen/temp"}),
        (["air/co2", "air/pm25"], {"co2": "air/co2", "pm25": "air/pm25"}),
        (["sensors/17"], {"sensors": "sensors/${id:*}"}),
        (
            ["rover/6f0d3a52-9c1e-4a55-8d58-0f2a5f0e9b11/imu"],
            {"imu": "rover/${id:*}/imu"},
        ),
        (["day/2026-11-19/rain"], {"rain": "day/${id:*}/rain"}),
        (["mac/00:1b:44:11:3a:b7/up"], {"up": "mac/${id:*}/up"}),
        (["demo/example/zenoh-python-pub"], {"zenoh_python_pub": "demo/example/zenoh-python-pub"}),
        (["Größe/Höhe"], {"h_he": "Größe/Höhe"}),
        (["a.b/c-d"], {"c_d": "a.b/c-d"}),
        (["x/9volts"], {"n9volts": "${id:*}/9volts"}),
        (["api/v2/state"], {"state": "api/v2/state"}),
        ([f"log/{chr(97 + n)}{chr(97 + n)}" for n in range(16)], {"log": "log/${id:*}"}),
    ],
)
def test_chunks_that_vary_become_parts(keys: list[str], tables: dict[str, str]) -> None:
    assert found_of(*keys) == tables


def test_a_name_that_is_taken_gets_the_chunk_before_it() -> None:
    keys = ("robot/1/battery", "truck/1/battery", "camera/1/samples", "db/order", "x/3/time/4")
    assert found_of(*keys) == {
        "battery": "robot/${id:*}/battery",
        "camera_samples": "camera/${id:*}/samples",
        "db_order": "db/order",
        "truck_battery": "truck/${id:*}/battery",
        "table_time": "${part1:*}/${part2:*}/time/${time_3:*}",
    }


def test_a_wider_family_lies_beside_the_one_that_was_found() -> None:
    finder = FamilyFinder()
    assert found_of("home/kitchen/temp", finder=finder) == {"temp": "home/kitchen/temp"}
    finder.observe(["home/attic/temp"], {}, 10.0)
    (wider,) = finder.find({"temp"}, 12.0)
    assert (wider.name, wider.format) == ("home_temp", "home/${id:*}/temp")
    # After a restart as well: what was found is known by its formats.
    again = FamilyFinder(["home/kitchen/temp"])
    again.observe(["home/attic/temp"], {}, 0.0)
    assert [one.format for one in again.find({"temp"}, 2.0)] == ["home/${id:*}/temp"]


def test_a_family_is_read_from_where_the_first_of_its_keys_came() -> None:
    finder = FamilyFinder()
    finder.observe(["robot/1/pose"], {"j/0": 10, "j/1": 5}, 0.0)
    finder.observe(["robot/2/pose"], {"j/0": 20, "j/1": 4, "j/2": 7}, 1.0)
    assert finder.due_at() == 2.0
    assert finder.find((), 1.9) == []
    (pose,) = finder.find((), 2.0)
    assert pose.since == {"j/0": 10, "j/1": 4, "j/2": 7}
    assert finder.due_at() is None


def test_keys_that_are_too_wild_are_named_with_the_reason() -> None:
    finder = FamilyFinder()
    long = "/".join("abcdefghijklmnopqrstuvwxyz"[:17])
    finder.observe(["1/2", "a/**", "@/x/router", long, "view/busy/1", "alert/low/x"], {}, 0.0)
    assert finder.find((), 100.0) == []
    assert {one.reason: one.examples for one in finder.refusals} == {
        "keys of more than 16 chunks or 500 characters": (long,),
        "keys of which every chunk varies": ("1/2",),
        "keys with wildcards or verbatim chunks": ("a/**", "@/x/router"),
    }


def test_tables_appear_in_bounds_and_at_a_bounded_rate() -> None:
    finder = FamilyFinder()
    words = [f"{a}{b}{c}" for a in "pqrstuvwxyz" for b in "pqrstuvwxyz" for c in "pqrstuvwxyz"]
    keys = [f"{word}/{word[::-1]}s/on" for word in words]
    finder.observe(keys, {}, 0.0)
    at_once = finder.find((), 2.0)
    assert len(at_once) == 60
    assert len(finder.find((), 3.0)) == 0
    assert len(finder.find((), 62.0)) == 30
    for minute in range(2, 40):
        finder.find((), minute * 60.0)
    assert finder.made == MOST_TABLES
    (refused,) = finder.refusals
    assert refused.reason.startswith("more than 500 tables")
    assert (refused.count, len(refused.examples)) == (len(keys) - MOST_TABLES, 10)


def test_new_keys_are_remembered_in_bounds() -> None:
    finder = FamilyFinder()
    finder.observe((f"n/w{'x' * (n % 400)}{n}/a/on" for n in range(MOST_PENDING + 5)), {}, 0.0)
    assert len(finder.pending) == MOST_PENDING
    assert [one.count for one in finder.refusals] == [5]


CHUNK = st.sampled_from(
    ["robot", "7", "8", "alice", "bob", "pose", "temp", "home", "line", "a", "samples"]
)
KEYS = st.lists(st.lists(CHUNK, min_size=1, max_size=4).map("/".join), max_size=12)


@given(KEYS, st.randoms(use_true_random=False))
def test_the_order_of_keys_that_come_at_once_changes_nothing(
    keys: list[str], random: object
) -> None:
    other = list(keys)
    random.shuffle(other)  # type: ignore[attr-defined]
    assert found_of(*keys) == found_of(*other)


@given(st.lists(KEYS, max_size=5))
def test_each_key_gets_a_table_and_none_ever_changes(batches: list[list[str]]) -> None:
    finder = FamilyFinder()
    made: dict[str, KeyFamily] = {}
    now = 0.0
    for keys in batches:
        known = [KeyFormat(one.format) for one in made.values()]
        new = [key for key in keys if not any(one.matches(key) for one in known)]
        finder.observe(new, {}, now)
        now += 60.0
        for one in finder.find(set(made), now):
            assert one.name not in made
            assert one.name not in FIXED
            made[one.name] = one
    wild = {key for one in finder.refusals for key in one.examples}
    formats = [KeyFormat(one.format) for one in made.values()]
    for key in {key for keys in batches for key in keys} - wild:
        assert any(one.matches(key) for one in formats)
