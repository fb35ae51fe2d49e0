"""The date of a machine is set while its router stores and records: nothing is lost or put back.

A library is loaded into the router that moves its clock by what a file says. Clients say no time:
that of the router is the one that counts.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

from tests.api.sessions import config, connecting_to
from tests.cli.programs import COMMAND, Program, endpoint
from tests.waiting import until
from zenlake.api.session import Session, open
from zenlake.journal import Journal

pytestmark = [pytest.mark.slow, pytest.mark.once]

HOUR = 3600
YEAR = 365 * 24 * HOUR


@pytest.fixture(scope="module")
def shifted_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that moves the clock of the process that it is loaded into."""
    built = tmp_path_factory.mktemp("clock") / "shifted_clock.so"
    source = Path(__file__).with_name("shifted_clock.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", built, source, "-ldl"], check=True, timeout=60
    )
    return built


def newest(session: Session) -> list[str]:
    replies = [reply.ok for reply in session.get("clock/a")]
    return sorted({one.payload.to_string() for one in replies if one is not None})


def clock_ahead(session: Session) -> float:
    """How far the journal says that the clock is ahead of what was recorded before."""
    found = [reply.ok for reply in session.get("@journal/j/stats")]
    return max(float(json.loads(one.payload.to_bytes())["clock_ahead"]) for one in found if one)


def sealed(folder: Path) -> int:
    journal = Journal.open(folder / "j")
    pieces = [one for n in range(journal.partitions) for one in journal.segments(n)]
    return sum(one.sealed for one in pieces)


@pytest.mark.parametrize("stores", [True, False], ids=["a storage", "a recorder alone"])
def test_a_date_that_is_set_back_and_forth_loses_nothing_and_newer_values_stay_newest(
    tmp_path: Path, shifted_clock: Path, stores: bool
) -> None:
    place = endpoint()
    shift = tmp_path / "shift"
    shift.write_bytes(struct.pack("q", 0))
    journal = {"name": "j", "dir": str(tmp_path / "j"), "key_exprs": ["clock/**"], "fsync": "5ms"}
    # Each value is in a segment that is sealed at once, and an hour old after the first jump ahead.
    kept = {"segment_bytes": 1, "retain_age": HOUR - 1}
    storage = {"key_expr": "clock/**", "volume": {"id": "fs", "dir": str(tmp_path / "fs")}}
    file = tmp_path / "router.json5"
    storages = {"s": storage} if stores else {}
    settings = {
        "journals": [journal | kept],
        "plugins": {"storage_manager": {"volumes": {"fs": {}}, "storages": storages}},
    }
    file.write_text(json.dumps(settings))
    words = ["-c", COMMAND, "router", "-c", str(file), "-l", place, "--no-multicast-scouting"]
    moved = {"LD_PRELOAD": str(shifted_clock), "SHIFTED_CLOCK": str(shift)}
    with Program(*words, environment=os.environ | moved) as router:
        router.says("listens on")
        with open(config(mode='"client"', **connecting_to(place))) as session:
            sessions = session.info.routers_zid()
            # The last one is a year behind what the router has told already.
            for number, seconds in enumerate((0, -HOUR, YEAR, 0, -YEAR)):
                # In place: the library has the file mapped, which must never be shorter.
                with shift.open("r+b") as written:
                    written.write(struct.pack("q", seconds))
                session.put("clock/a", str(number))
                until(
                    lambda number=number: newest(session) == [str(number)],  # type: ignore[misc]
                    f"the value of a date moved by {seconds} s is the newest",
                )
                until(lambda number=number: sealed(tmp_path) == number + 1, "each is sealed")  # type: ignore[misc]
                if seconds == YEAR:
                    until(lambda: clock_ahead(session) > YEAR - HOUR, "nothing is deleted for it")
            assert session.info.routers_zid() == sessions, "the session is the same all the time"
        assert router.interrupt() == 130
    rows = [
        (row["value"], row["hlc"])
        for batch in Journal.open(tmp_path / "j").scan(columns=["value", "hlc"])
        for row in batch.to_pylist()
    ]
    assert [value for value, _ in rows] == [b"0", b"1", b"2", b"3", b"4"]
    times = [hlc for _, hlc in rows]
    assert times == sorted(set(times)), "each has a later time than the one before"
    assert times[2] - times[1] > YEAR << 32
