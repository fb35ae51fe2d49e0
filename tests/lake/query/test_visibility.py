"""Definitions are shown to who may read the keys that they tell of."""

from __future__ import annotations

import pytest

from zenlake.keys.readable import ALL_KEYS, ReadableChoice, ReadableKeys
from zenlake.lake.decode.table_description import OTHER_KEYS, described_as
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.query.visibility import keys_behind, shown_definition, shown_tables, table_keys

POSES = TypedTable("poses", "robot/${id:*}/pose")
ODOM = TypedTable("odom", "${robot:*}/odom", ros2=True)
SPECS = (POSES, ODOM)
TABLES = {
    "samples": "",
    "quarantine": "",
    "poses": "",
    "odom": "",
    "busy": "view 17",
    "low": "alert 18",
    "chatter": "ROS 2 topic /chatter",
    "foreign": "somebody made it",
}
VIEW = {
    "name": "busy", "kind": "view", "sql": "SELECT * FROM samples WHERE key = 'secret/plan'",
    "keys": "view/busy/**", "state": "stopped", "why": "no column secret", "created": 1.0,
}  # fmt: skip


def allowing(*allowed: str, denied: tuple[str, ...] = ()) -> ReadableKeys:
    return ReadableKeys(((ReadableChoice(allowed, denied),),))


def test_who_may_read_everything_is_shown_everything() -> None:
    assert shown_tables(TABLES, SPECS, ALL_KEYS) == set(TABLES)
    assert shown_definition(VIEW, ALL_KEYS) == VIEW


@pytest.mark.parametrize(
    ("readable", "shown"),
    [
        (allowing("other/**"), set()),
        (allowing("robot/**"), {"poses"}),
        (allowing("robot/7/pose"), set()),
        (allowing("view/**", "robot/**", denied=("robot/*/pose",)), {"busy"}),
        (allowing("alert/low/**"), {"low"}),
        (allowing("*/chatter/**"), {"chatter"}),
        (allowing("**"), {"poses", "odom", "busy", "low", "chatter"}),
    ],
)
def test_a_table_is_shown_to_who_may_read_the_keys_that_it_is_made_of(
    readable: ReadableKeys, shown: set[str]
) -> None:
    assert shown_tables(TABLES, SPECS, readable) == shown | {"samples", "quarantine"}


@pytest.mark.parametrize(
    ("read", "keys"),
    [
        ({"poses"}, {"robot/*/pose"}),
        ({"poses", "chatter"}, {"robot/*/pose", "*/chatter/**"}),
        ({"poses", "samples"}, {"**"}),
        ({"poses", "low"}, {"**"}),
        ({"busy"}, {"**"}),
        ({"foreign"}, {"**"}),
        (set(), {"**"}),
    ],
)
def test_rows_of_a_table_come_from_its_keys_and_those_of_a_view_from_any(
    read: set[str], keys: set[str]
) -> None:
    found = keys_behind({name: TABLES[name] for name in read}, SPECS)
    assert set(found) == keys
    assert len(found) == len(keys)


def test_a_table_that_was_filled_from_other_keys_before_says_so_until_it_is_made_again() -> None:
    first = described_as(POSES)
    assert described_as(POSES, first) == first
    assert described_as(POSES, "") == first
    moved = TypedTable("poses", "bot.2/${id:*}/pose")
    then = described_as(moved, first)
    assert then.startswith("Samples of bot.2/${id:*}/pose. ")
    assert described_as(moved, then) == then  # for as long as its rows are there
    assert OTHER_KEYS in described_as(POSES, described_as(moved))
    assert keys_behind({"poses": then}, [moved]) == ("**",)
    assert shown_tables({"poses": then}, [moved], allowing("bot.2/**")) == set()
    assert keys_behind({"poses": described_as(moved)}, [moved]) == ("bot.2/*/pose",)


def test_a_table_that_nobody_knows_the_keys_of_is_for_who_may_read_all() -> None:
    assert table_keys("foreign", "somebody made it", SPECS) is None


def test_the_question_behind_a_view_is_not_shown_to_who_may_not_read_every_key() -> None:
    assert shown_definition(VIEW, allowing("robot/**")) is None
    shown = shown_definition(VIEW, allowing("view/busy/**"))
    assert shown is not None
    assert shown["keys"] == "view/busy/**"
    assert "secret" not in str(shown)
