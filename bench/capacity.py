"""What `zenlake capacity` foretells, beside what `zenlake up` spends, where a machine can run it.

    PYTHONPATH=build/compiled python -m bench.capacity
    PYTHONPATH=build/compiled python -m bench.capacity --points 10x10x200,100x50x200 --seconds 30

A point is robots x rate x payload, and x subscribers if there are any. Samples come at that rate,
evenly, for some seconds; the cores are what the kernel charged the processes of `zenlake up`
meanwhile, and until all rows were in the table.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.up.__main__ import until
from bench.up.systems import HERE, Program, Up
from zenlake.supervise.capacity import FleetLoad, needs


def measured(system: Up, fleet: FleetLoad, seconds: int) -> dict[str, Any]:
    """Publish evenly; the cores that each part took, and the bytes of the journal."""
    words = ["zenlake", system.endpoint, str(fleet.payload), str(min(fleet.robots, 1000))]
    publisher = Program([str(HERE / "publisher.py"), *words], system.folder / "publisher.log")
    journal = system.folder / "data" / "journal"
    others = [
        Program([str(HERE / "subscriber.py"), system.endpoint], system.folder / "subscriber.log")
        for _ in range(fleet.subscribers)
    ]
    try:
        rate = round(fleet.samples)
        done = system.rows()
        warm = rate * 3
        publisher.ask(f"{warm} {rate}")
        publisher.told()
        until(system, done + warm)
        before, size = system.cpu(), _size(journal)
        began = time.time()
        publisher.ask(f"{rate * seconds} {rate}")
        publisher.told()
        until(system, done + warm + rate * seconds)
        spent = max(time.time() - began, seconds)
        after = system.cpu()
    finally:
        for program in (publisher, *others):
            program.stop()
    cores = {part: (after[part] - before.get(part, 0.0)) / seconds for part in after}
    return {
        "router": cores.get("router", 0.0),
        "spark": cores.get("lake", 0.0) + cores.get("java", 0.0),
        "journal": (_size(journal) - size) / (rate * seconds),
        "late": spent - seconds,
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--points", default="10x10x200,20x50x200,100x50x200,200x100x200,100x50x1000"
    )
    arguments.add_argument("--seconds", type=int, default=15)
    arguments.add_argument("--no-lake", action="store_true", help="only as far as the journal")
    arguments.add_argument("--json", type=Path)
    asked = arguments.parse_args()
    found: list[dict[str, Any]] = []
    print(
        f"{'robots x rate x payload':26}{'samples/s':>10}{'router: foretold':>18}{'found':>8}",
        end="",
    )
    print(
        f"{'lake: foretold':>16}{'found':>8}{'journal B/row: foretold':>25}{'found':>8}{'late':>7}"
    )
    for point in asked.points.split(","):
        robots, rate, payload, subscribers = (*(float(part) for part in point.split("x")), 0)[:4]
        fleet = FleetLoad(int(robots), rate, int(payload), int(subscribers))
        with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as folder:
            system = Up(Path(folder), not asked.no_lake)
            try:
                figures = measured(system, fleet, asked.seconds)
            finally:
                system.stop()
        told = needs(fleet)
        found.append({"point": point, **figures})
        print(
            f"{point:26}{fleet.samples:10.0f}{told.router_cores:18.3f}{figures['router']:8.3f}"
            f"{told.spark_cores:16.3f}{figures['spark']:8.3f}{told.journal_row:25.0f}"
            f"{figures['journal']:8.0f}{figures['late']:6.1f}s",
            flush=True,
        )
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
