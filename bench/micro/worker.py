"""The half of a benchmark that runs inside one build: builds a case, runs it, reports the time.

One line of JSON in, one line of JSON out, so that two workers on two builds can take turns:

    {"list": true}                    → {"cases": ["keys.intersects", …], "compiled": false}
    {"prepare": "keys.intersects"}    → {"ready": true}
    {"run": 1000}                     → {"ns": 123456}

A case module is a file of this folder with `CASES`: name → a function that builds what the case
needs and returns `run(n)`, which does the thing n times.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import zenlake

Run = Callable[[int], None]
NOT_CASES = {"__init__", "__main__", "worker"}


def cases() -> dict[str, Callable[[], Run]]:
    """Every case of this folder, by `module.name`."""
    found: dict[str, Callable[[], Run]] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in NOT_CASES:
            module = importlib.import_module(f"bench.micro.{path.stem}")
            found |= {f"{path.stem}.{name}": case for name, case in module.CASES.items()}
    return found


def timed(run: Run, n: int) -> int:
    """Nanoseconds that `run(n)` takes, with the garbage collector out of the way."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter_ns()
        run(n)
        return time.perf_counter_ns() - start
    finally:
        gc.enable()


def serve() -> None:
    """Answer the lines on stdin until they end."""
    known = cases()
    run: Run | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "list" in asked:
            answer: dict[str, object] = {"cases": list(known), "compiled": zenlake.compiled}
        elif "prepare" in asked:
            run = None  # let go of the last fixture before building the next
            run = known[asked["prepare"]]()
            answer = {"ready": True}
        else:
            assert run is not None, "prepare a case before running it"
            answer = {"ns": timed(run, asked["run"])}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
