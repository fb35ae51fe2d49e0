"""What `zenlake top` draws, without a network."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.cli.natural import natural
from zenlake.cli.show import elided
from zenlake.cli.top import Look, SortOrder, TopRow, drawn, names, rates

HOME = "aa" * 16
ROBOTS = {number: f"{number:02x}" * 16 for number in range(1, 13)}


def looks() -> tuple[Look, Look]:
    before, after = Look(0.0), Look(2.0)
    before.names = after.names = {HOME: "attic"}
    for number, zid in ROBOTS.items():
        key = f"robot/{number}/pose"
        before.keys[key, zid] = TopRow(100, 1000)
        after.keys[key, zid] = TopRow(110 + (4 if number == 7 else 0), 1000 + 100 * number)
        after.sessions[HOME, zid] = ("client", TopRow(5, 50), TopRow(7, 70 * number))
        after.nearest[HOME, zid] = ("declarations", number / 100)
    return before, after


def test_equal_rates_are_in_the_order_of_their_keys() -> None:
    keys = [key for key, _, _ in rates(*looks())]
    assert keys[:4] == ["robot/7/pose", "robot/1/pose", "robot/2/pose", "robot/3/pose"]
    assert keys[-1] == "robot/12/pose"


def test_each_order_has_its_own_first() -> None:
    first = {order: rates(*looks(), order)[0][0] for order in SortOrder}
    assert first == {
        SortOrder.RATE: "robot/7/pose",
        SortOrder.BYTES: "robot/12/pose",
        SortOrder.TOTAL: "robot/7/pose",
        SortOrder.KEY: "robot/1/pose",
    }


def test_a_session_near_a_limit_comes_first_and_says_which() -> None:
    before, after = looks()
    after.nearest[HOME, ROBOTS[3]] = ("declarations", 0.83)
    after.nearest[HOME, ROBOTS[12]] = ("memory", 0.04)
    for width, words in ((80, "83%"), (100, "83% of declarations")):
        lines = drawn(before, after, SortOrder.RATE, width=width, rows=3)
        sessions = lines[lines.index("") + 2 :]
        assert sessions[0] == (
            f"attic       030303      client        2.5       25 B        3.5      105 B  {words}"
        )
        # The others as ever, by what they moved; a small part of a limit is nobody's business.
        assert sessions[1].endswith("420 B")


def test_what_is_dropped_is_shown_by_key_and_reason_and_only_then() -> None:
    before, after = looks()
    plain = drawn(before, after, SortOrder.RATE, width=90, rows=3)
    assert not any("DROPPED" in line for line in plain)
    before.dropped[HOME, "congestion", "robot/7/camera"] = 10
    after.dropped[HOME, "congestion", "robot/7/camera"] = 130
    after.dropped[HOME, "access-control", "secret/**"] = 7
    lines = drawn(before, after, SortOrder.RATE, width=90, rows=3)
    assert lines[: len(plain)] == plain
    assert [line.split() for line in lines[len(plain) + 1 :]] == [
        ["DROPPED", "AT", "WHY", "DROPS/S", "DROPS"],
        ["robot/7/camera", "attic", "congestion", "60.0", "130"],
        ["secret/**", "attic", "access-control", "3.5", "7"],
    ]


@given(st.integers(60, 200), st.integers(8, 60))
def test_what_is_drawn_fits_the_screen(width: int, height: int) -> None:
    before, after = looks()
    for number in range(8):
        after.dropped[HOME, "access-control", f"robot/{number}/a/long/key/of/a/camera"] = 10**6
    lines = drawn(before, after, SortOrder.RATE, width=max(width, 78), rows=None, height=height)
    assert len(lines) <= height
    assert max(len(line) for line in lines) <= max(width, 78)
    assert lines[-1].endswith("q quits")


def test_a_terminal_of_80_by_24_shows_names_numbers_and_what_is_left_out() -> None:
    lines = drawn(*looks(), SortOrder.RATE, width=80, rows=None, height=24)
    assert lines[0] == (
        "KEY                                  FROM        SAMPLES/S    BYTES/S    SAMPLES"
    )
    assert lines[1] == (
        "robot/7/pose                         070707            7.0      350 B        114"
    )
    assert (
        "attic       0c0c0c      client        2.5       25 B        3.5      420 B  12%" in lines
    )
    assert "and 6 more sessions" in lines
    assert 22 <= len(lines) <= 24


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    seen = Look(0.0)
    seen.sessions["ab12cd34ef", "ab12cd34aa"] = ("client", None, None)
    assert names(seen) == {"ab12cd34ef": "ab12cd34e", "ab12cd34aa": "ab12cd34a"}


def test_a_long_key_loses_its_middle() -> None:
    assert elided("factory/hall/robot/7/pose", 15) == "factory…/7/pose"


@given(st.lists(st.integers(0, 300), unique=True))
def test_numbers_are_in_the_order_of_their_values(numbers: list[int]) -> None:
    keys = [f"robot/{number}/pose" for number in numbers]
    assert sorted(keys, key=natural) == [f"robot/{number}/pose" for number in sorted(numbers)]


@given(st.text("ab019/é²", max_size=12), st.text("ab019/é²", max_size=12))
def test_any_two_keys_can_be_compared_and_are_alike_only_if_they_are_one(
    one: str, other: str
) -> None:
    assert (natural(one) < natural(other)) is (natural(other) > natural(one))
    assert (natural(one) == natural(other)) is (one == other)


def test_numbers_come_before_letters_and_chunks_before_longer_keys() -> None:
    told = ["a/b", "a", "a/10", "a/9", "a/x2", "a/x10", "10", "9/z", "a/07", "a/7"]
    assert sorted(told, key=natural) == [
        *("9/z", "10", "a", "a/07", "a/7", "a/9", "a/10", "a/b", "a/x2", "a/x10"),
    ]
