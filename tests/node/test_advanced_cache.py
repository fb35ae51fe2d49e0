"""Which part of a publisher's past a question is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.advanced_cache import Cache
from zenlake.node.advanced_keys import SERIALS
from zenlake.wire.codec_zenoh import Del, Put, SourceInfo, Timestamp


def cache(numbers: list[int], size: int = 100) -> Cache:
    made = Cache(size)
    for number in numbers:
        made.add(
            Put(
                payload=str(number).encode(),
                source_info=SourceInfo(zid=b"\x01", eid=1, sn=number),
                timestamp=Timestamp(seconds=1000 + number, fraction=0, id=b"\x01"),
            )
        )
    return made


def found(made: Cache, parameters: str, now: int = 1020) -> list[int]:
    return [
        int(body.payload)
        for body in made.select(parameters, now * 1_000_000_000)
        if isinstance(body, Put)
    ]


@pytest.mark.parametrize(
    ("parameters", "numbers"),
    [
        ("", list(range(10))),
        ("_anyke", list(range(10))),
        ("_sn=3..5", [3, 4, 5]),
        ("_sn=7..", [7, 8, 9]),
        ("_sn=..2", [0, 1, 2]),
        ("_sn=4", [4]),
        ("_sn=..", list(range(10))),
        ("_sn=nonsense", list(range(10))),
        ("_sn=99999999999999999999..", list(range(10))),
        ("_sn=20..", []),
        ("_max=3", [7, 8, 9]),
        ("_max=0", []),
        ("_max=99", list(range(10))),
        ("_max=-1", list(range(10))),
        ("_max=2;_sn=1..5;_anyke", [4, 5]),
        ("_time=[now(-13s)..]", [7, 8, 9]),
        ("_time=[now(-13s)..];_max=1", [9]),
        ("_time=nonsense", list(range(10))),
    ],
)
def test_a_question_selects(parameters: str, numbers: list[int]) -> None:
    assert found(cache(list(range(10))), parameters) == numbers


def test_the_oldest_is_forgotten_first() -> None:
    assert found(cache([1, 2, 3, 4], 2), "") == [3, 4]


def test_at_least_one_sample_is_remembered() -> None:
    made = cache([1, 2], 0)
    assert len(made) == 1
    assert found(made, "") == [2]


def test_removals_are_remembered_too() -> None:
    made = Cache(3)
    made.add(Del())
    assert made.select("", 0) == [Del()]
    assert made.select("_sn=0..", 0) == []
    assert made.select("_time=[now(-1s)..]", 0) == [Del()]


def test_numbers_that_went_round_are_found() -> None:
    made = cache([SERIALS - 2, SERIALS - 1, 0, 1])
    assert found(made, f"_sn={SERIALS - 1}..0") == [SERIALS - 1, 0]
    assert found(made, "_sn=0..") == [0, 1]


@given(st.lists(st.integers(0, 50), max_size=20), st.text(max_size=20), st.integers(0, 30))
def test_an_answer_is_the_newest_of_what_is_remembered(
    numbers: list[int], text: str, most: int
) -> None:
    made = cache(numbers)
    everything = found(made, "")
    assert everything == numbers
    assert found(made, f"_max={most}") == everything[len(everything) - min(most, len(everything)) :]
    assert all(number in everything for number in found(made, text))
