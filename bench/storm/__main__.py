"""One bad neighbour against a router: what the others feel, ours beside Eclipse.

    python -m bench.storm                       every attack, both routers
    python -m bench.storm tokens pings --only zenlake --size 0.3 --json build/storm.json

Each attack runs in a process of its own against a fresh router, while two honest clients exchange
a sample every 5 ms. Told are their median delay before and during the attack, the longest time
without a sample, the samples they lost, the most memory that the router held, and whether its log
names the address of the attacker, in how many lines. Machines are
noisy: compare figures of one run. A router that takes more than 5 GB or a minute is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench.macro.__main__ import free_port
from bench.macro.certificate import settings as certificate_settings
from bench.storm.attacks import ATTACKS
from bench.storm.hostile import ATTACKER

ROOT = Path(__file__).resolve().parents[2]
#: The build under test; another one may be named by the environment.
BUILD = Path(os.environ.get("STORM_BUILD", ROOT / "build" / "compiled"))
MOST_MEMORY = 5 << 30
MOST_SECONDS = 60.0
#: How long the honest clients are watched without an attack.
CALM = 2.0
#: Attacks that are too large for a small machine at full size.
SMALLER = {"subscribers": 0.5, "chunks": 0.3, "fragments": 0.4, "queries": 0.5}


class Process:
    """A program of the measurement that speaks in lines of JSON."""

    def __init__(self, module: str, *arguments: str, log: Path | None = None) -> None:
        """Start it."""
        self.errors = open(log or os.devnull, "ab")  # noqa: SIM115 - closed in `end`
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"bench.storm.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{BUILD}:{ROOT}", "RUST_LOG": "warn"},
        )

    def hear(self, seconds: float) -> dict[str, Any]:
        """The next line; empty if there is none in time."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return {}
        line = self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {}
        return found

    def ask(self, what: str, seconds: float = 15) -> dict[str, Any]:
        """Say a line and hear the next."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{what}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return {}
        return self.hear(seconds)

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream is not None:
                stream.close()


class Memory:
    """Watches how much memory a process holds, and ends it when that is too much."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Watch from now on."""
        self.most = self.first = resident(process.pid)
        self._process = process
        self.ended = False
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while self._process.poll() is None:
            self.most = max(self.most, resident(self._process.pid))
            if self.most > MOST_MEMORY:
                self.ended = True
                self._process.kill()
                return
            time.sleep(0.02)


def resident(pid: int) -> int:
    """The memory that a process holds, in bytes."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(attack: str, package: str, size: float, folder: Path) -> dict[str, Any]:
    """One attack on one router."""
    ports = {"tcp": free_port(), "ws": free_port(), "tls": free_port()}
    log = folder / f"{attack}-{package}.log"
    log.unlink(missing_ok=True)
    orders = {
        "listen": [f"{protocol}/127.0.0.1:{port}" for protocol, port in ports.items()],
        "config": certificate_settings(folder),
    }
    running: list[Process] = []
    try:
        target = Process("target", package, json.dumps(orders), log=log)
        running.append(target)
        if not target.hear(20):
            return {"said": "the router did not start"}
        ends = [f"tcp/127.0.0.1:{ports['tcp']}"] * 2
        places: dict[str, Any] = {**ports, "size": size * SMALLER.get(attack, 1.0)}
        if attack == "named":
            ends[1] = f"tcp/127.0.0.1:{free_port()}"
            second = {"listen": [ends[1]], "connect": [ends[0]]}
            other = Process("target", package, json.dumps(second))
            running.append(other)
            places["router"] = other.hear(20)["zid"]
            time.sleep(1)
        honest = Process("honest", "zenlake", *ends)
        running.append(honest)
        honest.hear(20)
        honest.ask("mark")
        time.sleep(CALM)
        before = honest.ask("mark")
        memory = Memory(target.process)
        attacker = Process("attacks", attack, json.dumps(places))
        running.append(attacker)
        said = attacker.hear(MOST_SECONDS) or {"said": "it was stopped after a minute"}
        during = honest.ask("mark")
        time.sleep(0.5)
        count = honest.ask("end")
        after = honest.ask("mark")
        alive = target.process.poll() is None
        told = log.read_text(errors="replace") if log.exists() else ""
        return {
            "before": before.get("p50"),
            "during": during.get("p50"),
            "p99": during.get("p99"),
            "frozen": max(during.get("frozen", 60.0), after.get("frozen", 0.0) - 0.5),
            "lost": count.get("lost"),
            "memory": memory.most - memory.first,
            "said": said["said"] if alive else "the router died",
            "lines": sum(ATTACKER in line for line in told.splitlines()),
            "ended": memory.ended,
        }
    finally:
        for one in reversed(running):
            one.end()


def shown(attack: str, package: str, found: dict[str, Any]) -> str:
    """A line of the table."""
    if found.get("before") is None:
        return f"{attack:14} {package:8} {found['said']}"
    during = found["during"]
    delay = f"{during * 1e3:8.2f}" if during is not None else "    dead"
    named = f"yes, {found['lines']}" if found["lines"] else "no"
    return (
        f"{attack:14} {package:8} {found['before'] * 1e3:7.2f} {delay} {found['frozen']:7.2f} "
        f"{found['lost']!s:>6} {found['memory'] >> 20:6} {named:>7}  {found['said']}"
    )


def main() -> None:
    """Run the attacks that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.storm")
    parser.add_argument("attacks", nargs="*", choices=[*ATTACKS, []], help="default: all")
    parser.add_argument("--only", choices=("zenlake", "zenoh"), help="one router alone")
    parser.add_argument("--size", type=float, default=1.0, help="scales the attacks")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    asked = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}
    print(
        f"{'attack':14} {'router':8} {'p50 ms':>7} {'during':>8} {'frozen':>7} {'lost':>6} "
        f"{'MiB':>6} {'named':>7}  what became of the attacker"
    )
    with tempfile.TemporaryDirectory() as folder:
        for attack in asked.attacks or ATTACKS:
            for package in (asked.only,) if asked.only else ("zenlake", "zenoh"):
                found = measure(attack, package, asked.size, Path(folder))
                figures.setdefault(attack, {})[package] = found
                print(shown(attack, package, found), flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
