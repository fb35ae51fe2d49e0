from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zenlake
from zenlake.api.log import LEVELS, LIBRARIES, levels_of


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    logs = [logging.getLogger(name) for name in ("zenlake", *LIBRARIES)]
    before = [(log.level, list(log.handlers)) for log in logs]
    yield
    for log, (level, handlers) in zip(logs, before, strict=True):
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


@pytest.mark.parametrize("name", ["asyncio", "uvicorn.error"])
def test_what_libraries_say_of_strangers_is_one_line_too(name: str) -> None:
    program = (
        "import logging, zenlake; zenlake.init_log_from_env_or('error');"
        f"logging.getLogger({name!r}).error('from %s', 'evil\\n\\x1b[2J')"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stderr
    assert told.count("\n") == 1
    assert told.endswith(f" ERROR {name}: from evil\\n\\x1b[2J\n")
