"""The main path, end to end: publishers → `zenlake up` → rows in the Delta table.

    PYTHONPATH=build/compiled python -m bench.up
    PYTHONPATH=build/compiled python -m bench.up --systems up --sizes 64 --rows 1000000 --no-lake

Beside it the same with `zenlake record` as a client of a router, and Eclipse's client that writes
Parquet by hand. For each: rows a second from the first put until all rows are in the table, CPU of
each process for a row, and how old rows are when they can be read (p50 and p99), at a rate that
nobody finds hard. CPU is what the kernel charged: it says more than rates on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.up.systems import HERE, SYSTEMS, Program, System

PATIENCE = 300.0


def until(system: System, rows: int) -> float:
    """Wait for so many rows; when the last of them was there."""
    deadline = time.monotonic() + PATIENCE
    while (found := system.rows()) < rows:
        if time.monotonic() > deadline:
            raise SystemExit(f"{found} of {rows} rows came in {PATIENCE:.0f} s")
        time.sleep(0.1)
    return time.time()


def measure(system: System, package: str, size: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Warm it up, flood it, and then be gentle."""
    places = [package, system.endpoint, str(size), str(asked.keys)]
    publisher = Program([str(HERE / "publisher.py"), *places], system.folder / "publisher.log")
    others = [
        Program([str(HERE / "subscriber.py"), system.endpoint], system.folder / "subscriber.log")
        for _ in range(asked.subscribers if system.name != "by hand" else 0)
    ]
    try:
        done = system.rows() + asked.warm
        publisher.ask(f"{asked.warm} 0")
        publisher.told()
        until(system, done)
        before = system.cpu()
        publisher.ask(f"{asked.rows} 0")
        told = publisher.told()
        ended = until(system, done + asked.rows)
        after = system.cpu()
        row = asked.rows / 1e6
        cpu = {part: (after[part] - before.get(part, 0.0)) / row for part in sorted(after)}
        figures: dict[str, Any] = {
            "rows/s put": round(asked.rows / (told["ended"] - told["began"])),
            "rows/s in the table": round(asked.rows / (ended - told["began"])),
            "µs of CPU a row": {part: round(value, 2) for part, value in cpu.items()},
        }
        figures["µs of CPU a row"]["publisher"] = round(told["cpu"] / row, 2)
        if system.lake:
            paced = asked.rate * asked.seconds
            publisher.ask(f"{paced} {asked.rate}")
            since = publisher.told()["began"]
            until(system, done + asked.rows + paced)
            ages = sorted(system.seen(since))
            figures["seconds old, p50"] = round(statistics.median(ages), 2)
            figures["seconds old, p99"] = round(ages[int(len(ages) * 0.99)], 2)
        return figures
    finally:
        for program in (publisher, *others):
            program.stop()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--systems", default=",".join(SYSTEMS))
    arguments.add_argument("--publishers", default="zenoh,zenlake", help="Eclipse's and ours")
    arguments.add_argument("--sizes", default="64,1024")
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--warm", type=int, default=100_000)
    arguments.add_argument("--keys", type=int, default=8)
    arguments.add_argument("--rate", type=int, default=1000)
    arguments.add_argument("--seconds", type=int, default=10)
    arguments.add_argument("--subscribers", type=int, default=0, help="Eclipse's, beside it")
    arguments.add_argument("--no-lake", action="store_true", help="only as far as the journal")
    arguments.add_argument("--json", type=Path)
    asked = arguments.parse_args()
    told: list[dict[str, Any]] = []
    for name in asked.systems.split(","):
        for size in asked.sizes.split(","):
            with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as folder:
                system = SYSTEMS[name](Path(folder), not asked.no_lake)
                try:
                    for package in asked.publishers.split(","):
                        figures = measure(system, package, int(size), asked)
                        about = {"system": name, "publisher": package, "bytes": int(size)}
                        told.append(about | figures)
                        print(json.dumps(told[-1], ensure_ascii=False), flush=True)
                finally:
                    system.stop()
    if asked.json is not None:
        asked.json.write_text(json.dumps(told, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
