"""Signals stop a command whatever it was doing, and however many come."""

from __future__ import annotations

import subprocess
import sys
import threading

from tests.waiting import SECONDS, until
from zenlake.cli.stop_signal import StopSignal

#: Waits and is interrupted; a second signal comes at the first step of that, then at the second, …
PROGRAM = """
import signal, sys, threading
from zenlake.cli.stop_signal import StopSignal, stopping

def traced(at):
    left = [at]
    def trace(frame, event, argument):
        if frame.f_code.co_filename.endswith(("threading.py", "stop_signal.py")):
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGTERM)
        return trace
    return trace

for at in range(1, 60):
    stop = StopSignal()
    try:
        with stopping(stop):
            sys.settrace(traced(at))
            signal.raise_signal(signal.SIGINT)
            while not stop.is_set():
                stop.wait(0.001)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
print("ended")
"""


def test_a_second_signal_at_any_step_of_the_first_blocks_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stdout == "ended\n", done.stderr


def test_whoever_waits_is_woken() -> None:
    stop = StopSignal()
    woken: list[bool] = []
    waiting = [threading.Thread(target=lambda: woken.append(stop.wait(SECONDS))) for _ in range(3)]
    for one in waiting:
        one.start()
    assert not stop.wait(0.001)
    stop.set()
    until(lambda: len(woken) == 3, "all that wait are woken")
    assert woken == [True] * 3
    assert stop.wait()
