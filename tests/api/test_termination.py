"""Programs that are left in every careless way still end, and soon."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.api.sessions import connecting_to, listening, where
from tests.waiting import SECONDS
from zenlake import SampleKind

BEGIN = """
import os, sys, threading, time, zenlake
from tests.api.sessions import config, joined, listening, connected, until_matched
"""


def run(program: str) -> str:
    """What a program says before it ends by itself."""
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + program],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "Traceback" not in told.stderr
    return told.stdout


@pytest.mark.parametrize(
    "program",
    [
        "session = zenlake.open(config())",
        "session = zenlake.open(config()); session.declare_subscriber('a', print)",
        "session = zenlake.open(config())\n"
        "sub = session.declare_subscriber('a', lambda sample: time.sleep(3600))\n"
        "session.put('a', 'x')",
        "session = zenlake.open(config())\n"
        "q = session.declare_queryable('a')\n"
        "session.get('a', print, timeout=3600)",
        "here = listening(); there = connected(here); p = there.declare_publisher('a')\n"
        "here.declare_subscriber('a', lambda s: here.close()); until_matched(p); p.put('x')",
        "session = zenlake.open(config())\n"
        "waiting = iter(session.declare_subscriber('a'))\n"
        "threading.Thread(target=lambda: list(waiting), daemon=True).start()\n"
        "session.declare_subscriber('b', print)",
        "session = zenlake.open(config()); cycle = [session]; cycle.append(cycle); del session",
    ],
    ids=[
        "an open session",
        "a callback",
        "a callback that sleeps",
        "an open question",
        "closed by a callback",
        "a thread that waits",
        "garbage",
    ],
)
def test_a_careless_program_ends_by_itself(program: str) -> None:
    assert run(program + "\nprint('the end')").endswith("the end\n")


def test_neighbours_hear_a_goodbye_from_a_program_that_just_ends() -> None:
    with listening() as here:
        events = here.info.declare_transport_events_listener()
        run(f"s = zenlake.open(config(**{connecting_to(where(here))}))")
        assert [events.recv().kind for _ in range(2)] == [SampleKind.PUT, SampleKind.DELETE]


def test_a_child_process_does_not_use_its_parents_sessions_and_does_not_hang() -> None:
    program = """
session = zenlake.open(config())
subscriber = session.declare_subscriber("a")
publisher = session.declare_publisher("a")
session.put("a", "before")
child = os.fork()
if child == 0:
    refused = 0
    for use in (lambda: session.put("a", "x"), lambda: publisher.put("x"),
                lambda: session.declare_subscriber("b"), lambda: session.get("a")):
        try:
            use()
        except zenlake.ZError:
            refused += 1
    assert refused == 4, refused
    assert subscriber.recv().payload == b"before"
    try:
        subscriber.recv()
    except zenlake.ZError:
        with zenlake.open(config()) as mine:
            own = mine.declare_subscriber("c")
            mine.put("c", "fresh")
            assert own.recv().payload == b"fresh"
        session.close()
        sys.exit(0)
    sys.exit(7)
_, status = os.waitpid(child, 0)
session.put("a", "after")
subscriber.recv()
print(os.waitstatus_to_exitcode(status), subscriber.recv().payload.to_string())
"""
    assert run(program) == "0 after\n"
