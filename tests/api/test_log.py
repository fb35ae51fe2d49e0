from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zenlake
from zenlake.api.log import LEVELS, levels_of


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    log = logging.getLogger("zenlake")
    level, handlers = log.level, list(log.handlers)
    yield
    log.setLevel(level)
    log.handlers[:] = handlers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("debug", {"zenlake": logging.DEBUG}),
        ("INFO", {"zenlake": logging.INFO}),
        ("zenoh=warn", {"zenlake": logging.WARNING}),
        ("zenoh_transport::unicast=error", {"zenlake": logging.ERROR}),
        ("zenlake.engine=debug,info", {"zenlake.engine": logging.DEBUG, "zenlake": logging.INFO}),
        ("zenoh", {"zenlake": 5}),
        ("other::thing=info", {"other.thing": logging.INFO}),
        ("zenoh=loud,,=", {}),
        ("off", {"zenlake": LEVELS["off"]}),
    ],
)
def test_the_variable_is_read_as_zenoh_reads_it(text: str, expected: dict[str, int]) -> None:
    assert levels_of(text) == expected


@given(st.text(alphabet="zenoh=,:infodebug. ", max_size=40))
def test_no_text_is_too_odd(text: str) -> None:
    assert set(levels_of(text).values()) <= set(LEVELS.values())


def test_without_the_variable_the_given_level_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUST_LOG", raising=False)
    logging.getLogger("zenlake").setLevel(logging.NOTSET)
    zenlake.try_init_log_from_env()
    assert logging.getLogger("zenlake").level == logging.NOTSET
    zenlake.init_log_from_env_or("error")
    assert logging.getLogger("zenlake").level == logging.ERROR
    monkeypatch.setenv("RUST_LOG", "debug")
    zenlake.init_log_from_env_or("error")
    assert logging.getLogger("zenlake").level == logging.DEBUG
    monkeypatch.setenv("RUST_LOG", "warn")
    zenlake.try_init_log_from_env()
    assert logging.getLogger("zenlake").level == logging.WARNING
