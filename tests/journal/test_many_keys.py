"""Many distinct keys: what a router and a recorder spend for each of them.

A router remembers routes of the keys that a neighbour used last; a recorder the latest value of
each key, up to `zenlake.newest.newest_values.MOST_KEYS`. Both run in processes of their own, whose
memory is measured as it is for the system.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

import zenlake
from tests.api.sessions import config, connecting_to
from tests.cli.programs import command, endpoint
from tests.waiting import SECONDS, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROUTER_BYTES = 1000
"""What a router may spend for each key beyond those whose routes it remembers."""
RECORDER_BYTES = 6000
"""What a recorder may spend for a key, its latest value included."""
STEPS = 6
PATIENT = "transport/link/tx/lease:60000"
"""On a busy machine a process may not be heard for longer than the usual ten seconds."""


def resident(program: Any) -> int:
    return int(psutil.Process(program.process.pid).memory_info().rss)


@pytest.mark.parametrize(
    "count",
    [42_000, pytest.param(1_000_000, marks=pytest.mark.nightly(day="journal/test_many_keys.py"))],
)
def test_a_router_and_a_recorder_stay_within_bounds_whatever_keys_come(
    tmp_path: Path, count: int, record_property: Any
) -> None:
    place = endpoint()
    journal = str(tmp_path / "j")
    with ExitStack() as opened:
        router = opened.enter_context(command("router", "-l", place, "--cfg", PATIENT))
        router.says("listens on")
        words = ["-k", "many/**", "--to", journal, "--name", "j", "-e", place, "-m", "client"]
        words += ["--cfg", PATIENT]
        recorder = opened.enter_context(command("record", *words))
        session = opened.enter_context(
            zenlake.open(config(mode='"client"', **connecting_to(place)))
        )

        def rows() -> int:
            for reply in session.get("@journal/j/watermark", timeout=SECONDS):
                if reply.ok is not None:
                    return int(sum(json.loads(reply.ok.payload.to_bytes())["offsets"]))
            return 0

        def recorded(wanted: int) -> Callable[[], bool]:
            return lambda: rows() >= wanted

        def value(number: int) -> list[bytes]:
            replies = session.get(f"many/{number % 1000}/{number}/x", timeout=SECONDS)
            return [one.ok.payload.to_bytes() for one in replies if one.ok is not None]

        until(lambda: list(session.get("@journal/j/watermark", timeout=SECONDS)), "no recorder")
        step = count // STEPS
        sizes = [(resident(router), resident(recorder))]
        for number in range(count):
            session.put(
                f"many/{number % 1000}/{number}/x", b"%d" % number,
                congestion_control=zenlake.CongestionControl.BLOCK,
            )  # fmt: skip
            if (number + 1) % step == 0:
                until(recorded(number + 1), "not recorded", 600.0)
                sizes.append((resident(router), resident(recorder)))
        # It answers for the newest value of each, and for its past.
        assert value(0) == [b"0"]
        last = count - 1
        assert value(last) == [b"%d" % last]
        past = list(session.get(f"many/{last % 1000}/{last}/x?_time=[now(-1h)..]", timeout=120))
        assert [one.ok.payload.to_bytes() for one in past if one.ok is not None] == [b"%d" % last]
    grown = [
        tuple((after - before) / step for before, after in zip(one, two, strict=True))
        for one, two in itertools.pairwise(sizes)
    ]
    record_property("bytes for each key (router, recorder), by step", grown)
    print(f"\n{count} keys; bytes a key (router, recorder): {grown}; resident: {sizes}")
    router_bytes, recorder_bytes = (
        (sizes[-1][which] - sizes[1][which]) / (count - step) for which in (0, 1)
    )
    assert router_bytes < ROUTER_BYTES
    assert recorder_bytes < RECORDER_BYTES
