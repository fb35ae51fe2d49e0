"""Compiles in the background, at the lowest priority, while `zenlake` runs on its sources.

It goes on when the command that started it has ended, so that the next start is compiled. Only one
process compiles at a time (tools/compiled_tree.py has the lock), and `kill` of the process that
build/compiling.lock names ends it with all that it started; what was compiled until then is kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.compiled_tree import BUILD, PROGRESS, ROOT, compiled_tree, compiling_process

LOG = BUILD / "compiling.log"
"""What the last compilation in the background has printed (tools/launch.py)."""
LOWEST = 19
"""The niceness of a process that runs when no other wants the CPU."""


def start() -> None:
    """Start compiling in the background unless a process does already, and say so."""
    os.environ["ZENLAKE_COMPILING"] = str(BUILD)
    shown = PROGRESS.relative_to(ROOT) if PROGRESS.is_relative_to(ROOT) else PROGRESS
    if compiling_process():
        _say(
            f"interpreted for now: compiling goes on in the background; {shown} says how far it is"
        )
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    PROGRESS.write_text("starting the compiler")
    with LOG.open("w") as log:
        subprocess.run(
            # Not a child of the command, which may run for months and would not collect it.
            ["/bin/sh", "-c", '"$@" &', "sh", sys.executable, __file__],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )
    _say(
        "interpreted for now: compiling in the background, for some minutes at the lowest "
        f"priority; the next start is compiled. {shown} says how far it is"
    )


def _say(text: str) -> None:
    print(f"zenlake: {text}", file=sys.stderr, flush=True)


def lower_priority() -> None:
    """Let all other programs have the CPU and the disk first."""
    os.nice(LOWEST)
    # Where Linux schedules each session as a group, niceness counts within the session alone. A
    # session that is not our own is left as it is: other programs run in it.
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(LOWEST))
    if ionice := shutil.which("ionice"):
        subprocess.run([ionice, "-c", "3", "-p", str(os.getpid())], check=False)


def end(number: int, frame: object) -> None:
    """End this process and all that it started: they are its process group."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    if os.getpgrp() != os.getpid():
        os.setsid()  # a Ctrl-C at the terminal is for the command alone
    signal.signal(signal.SIGTERM, end)
    lower_priority()
    compiled_tree(wait=False)
