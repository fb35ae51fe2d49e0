"""`zenlake replay` at a terminal: its keyboard, its loop, its progress."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path

from tests.api.sessions import listening, where
from tests.cli.programs import COMMAND
from tests.lake.journals import write
from tests.lake.rowsof import Row
from tests.waiting import SECONDS, until


def test_keys_step_go_on_round_and_round_and_end_a_replay(tmp_path: Path) -> None:
    values = [b"%d" % n for n in range(5)]
    write(tmp_path / "journal", [Row("r/a", value, at=n / 100) for n, value in enumerate(values)])
    heard: list[bytes] = []
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with (
        listening(mode='"router"') as node,
        node.declare_subscriber("g/**", lambda sample: heard.append(sample.payload.to_bytes())),
        subprocess.Popen(
            [sys.executable, "-c", COMMAND, "replay", "r/**", "--journal",
             str(tmp_path / "journal"), "--prefix", "g", "--paused", "--loop", "-m", "client",
             "-e", where(node), "--no-multicast-scouting"],
            stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
        ) as program,
    ):  # fmt: skip
        told = bytearray()

        def listen() -> None:
            # Nobody has the other end any more: that is told as an error.
            with suppress(OSError):
                while data := os.read(ours, 4096):
                    told.extend(data)

        listening_in = threading.Thread(target=listen, daemon=True)
        listening_in.start()
        until(lambda: b"paused" in told and b"0 samples" in told)
        os.write(ours, b"ss")
        until(lambda: len(heard) == 2)
        os.write(ours, b" ")
        until(lambda: len(heard) > 12)
        os.write(ours, b"q")
        assert program.wait(SECONDS) == 0
        assert program.stdout is not None
        counted = re.match(rb"(\d+) samples, ", program.stdout.read())
    assert counted is not None
    until(lambda: len(heard) == int(counted[1]))
    assert heard == (values * len(heard))[: len(heard)]
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    listening_in.join(SECONDS)
    os.close(ours)
