"""Parameters that nobody knows, and parameters of other services."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import SelectorError
from zenlake.ext.parameter_check import demand_understood
from zenlake.keys import Parameters
from zenlake.keys.query_parameters import KNOWN, LENIENT, SERVICES, TABLE

STRICT = [name for name in SERVICES if name not in LENIENT]


def refusal(parameters: str, service: str) -> str:
    with pytest.raises(SelectorError) as caught:
        demand_understood(Parameters(parameters), service)
    return str(caught.value)


@pytest.mark.parametrize("service", STRICT)
@pytest.mark.parametrize(
    ("written", "meant"),
    [("_tim", "_time"), ("_limt", "_limit"), ("_as_of", "_asof"), ("_Filter", "_filter")],
)
def test_a_misspelt_parameter_is_refused_with_the_one_that_was_meant(
    service: str, written: str, meant: str
) -> None:
    words = refusal(f"own=1;{written}=2", service)
    assert f"'{written}'" in words
    assert f"'{meant}'" in words


def test_a_name_like_no_other_is_refused_and_cut() -> None:
    words = refusal("_" + "x" * 5000, "storage")
    assert "did you mean" not in words
    assert len(words) < 200


@pytest.mark.parametrize("service", STRICT)
def test_what_zenoh_programs_send_to_everybody_is_never_refused(service: str) -> None:
    demand_understood(Parameters("_anyke;_max=2;_sn=1..3;_stats=true;_raw"), service)


@pytest.mark.parametrize(
    ("service", "parameters", "words"),
    [
        ("storage", "_filter=a<1", "'_filter' is answered by a lake"),
        ("recorder", "_time=[now(-1h)..];_agg=count()", "'_agg' is answered by a lake"),
        ("@lake/sql", "_time=[..]", "say it in the SELECT"),
        ("lake", "_sql=SELECT 1", "ask @lake/sql"),
        ("@journal", "_limit=3", "'_limit' means nothing here"),
        ("storage", "_limit=3;_limit=4", "'_limit' occurs 2 times"),
    ],
)
def test_a_parameter_of_another_service_is_refused(
    service: str, parameters: str, words: str
) -> None:
    assert words in refusal(parameters, service)


def test_a_query_may_say_several_times_what_may_be_read() -> None:
    demand_understood(Parameters("_readable=a;_readable=b"), "lake")


@given(st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), st.just("1")))
def test_names_of_applications_always_pass(parameters: dict[str, str]) -> None:
    for service in STRICT:
        demand_understood(Parameters(parameters), service)


def test_the_table_names_each_parameter_once_and_only_services_that_there_are() -> None:
    assert len(KNOWN) == len(TABLE)
    for one in TABLE:
        assert one.name.startswith("_")
        assert one.example.startswith(one.name)
        assert {*one.obeyed_by, *one.passed_over_by} <= set(SERVICES)
