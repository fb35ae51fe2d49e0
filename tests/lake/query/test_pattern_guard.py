"""Patterns of strangers: those that Java could match for ever are known before it begins."""

from __future__ import annotations

import pytest

from tests.steps import steps
from zenlake.lake.query.pattern_guard import demand_like, demand_pattern, why_not

ENDLESS = [
    *(r"(a+)+b", r"(a*)*b", r"(.*)*x", r"([a-z]+)*1", r"(?:a+){2,}b", r"(x+x+)+y"),
    *(r"(a|a)*b", r"(a|aa)+$", r"(a|b|ab)*c", r"(a|a?)+b", r"(?i)(a|A)+b", r"(a|[^b])*c"),
    *(r"(\d+\s*)+x", r"^(\w+\s?)*$", r"((a?)(a?))*b", r"(a{1,9}){1,9}b", r"(aa|a){30}b"),
    *(r"([a-z]|\p{L})*1", r"(a+)?+b(a+)+", r"(?=(a+)+b)", r"a?" * 30 + "a" * 30),
]
SLOW = [".*a.*a.*a.*b", "(.*)(.*)(.*)(.*)x", r"\w+\w+\w+!", "a*a*a*b"]
UNREAD = [r"^(a+)+\1$", r"(?<x>a)\k<x>", r"\Q((\E", "[", "(", "a)", "*a", "a{", r"\X", "(?x)a b"]
PLAIN = [
    *("robot/.*", "^robot/[^/]+/pose$", "[^/]*$", r"robot/(\d+)/.*/(\w+)$", "^([a-z]+/)*[a-z]+$"),
    *(
        r"(\d+,)*\d+",
        r"\d+(\.\d+)*",
        r"(\d{1,3}\.){3}\d{1,3}",
        r"^\s+|\s+$",
        "(ab|cd)*e",
        "^(a|b)*$",
    ),
    *("error.*timeout", "error|warn(ing)?|fatal", "(?i)foo|bar", "^(?:foo|bar)+$", "[aeiou]", ""),
    *(
        ",",
        r"\|",
        r"\s+",
        "key=([^&]*)",
        "[^a-zA-Z0-9]+",
        r"[[a-z]&&[^b]]+",
        r"(\w+)\.(\w+)\.(\w+)",
    ),
    *(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z?", r'"temp":\s*(-?\d+(\.\d+)?)'),
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
]


@pytest.mark.parametrize("pattern", [*ENDLESS, *SLOW, *UNREAD])
def test_one_that_may_take_for_ever_or_is_not_understood_is_refused(pattern: str) -> None:
    assert why_not(pattern)


@pytest.mark.parametrize("pattern", PLAIN)
def test_one_that_people_write_is_let_through(pattern: str) -> None:
    assert why_not(pattern) == ""


def test_a_refusal_shows_the_pattern_and_says_what_to_write_instead() -> None:
    refusal = demand_pattern("(a+)+b")
    assert refusal.startswith("the pattern '(a+)+b' has a repetition inside another one; write ")
    assert "LIKE" in refusal


def test_like_may_have_three_runs_before_its_last_text() -> None:
    assert demand_like("%a%b%c%") == ""
    assert demand_like("a%b%c%d") == ""
    assert demand_like("%%%a") == ""
    assert "has 4 % before its last text" in demand_like("%a%b%c%d")


@pytest.mark.parametrize(
    "pattern",
    [
        "(" + "|".join("abcdefgh" * 30) + ")*",
        "(" * 60 + ")" * 60,
        "a*" * 5_000,
        "(a?){9}" * 5_000,
        "[a-z]" * 10_000,
        "[" * 3_000,
    ],
)
def test_reading_a_pattern_takes_no_long_time_itself(pattern: str) -> None:
    # The dearest of these takes 94,000.
    assert steps(why_not, pattern) < 1_000_000
    assert why_not(pattern)
