"""Measures the hot paths on both builds in one run, turn by turn.

    python -m bench.micro                     every case
    python -m bench.micro keys                cases whose name contains `keys`
    python -m bench.micro --json build/bench.json --rounds 15

The two builds take turns on each case, so that a busy machine slows both alike, and the best
round counts: noise only ever adds time. `make bench` builds the compiled tree first.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILDS = {"interpreted": ROOT / "src", "compiled": ROOT / "build" / "compiled"}
TURN_NS = 40_000_000
"""How long one turn should last: long against the clock's grain, short against a noisy minute."""


@dataclass(frozen=True, slots=True)
class Result:
    """The best turn of one case on both builds, in nanoseconds an operation."""

    case: str
    interpreted: float
    compiled: float

    @property
    def ratio(self) -> float:
        """How many times faster the compiled build is."""
        return self.interpreted / self.compiled


class Worker:
    """A process on one build, which runs the cases it is asked to."""

    def __init__(self, build: str) -> None:
        path = os.pathsep.join((str(BUILDS[build]), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.micro.worker"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        listed = self._ask(list=True)
        self.cases: list[str] = listed["cases"]
        self._n = 1
        if listed["compiled"] is not (build == "compiled"):
            sys.exit(f"{BUILDS[build]} is not the {build} build; run `make bench`")

    def prepare(self, case: str) -> None:
        """Build the case, and find how many operations fill a turn."""
        self._ask(prepare=case)
        self._n = 1
        while True:
            ns: int = self._ask(run=self._n)["ns"]
            if ns > TURN_NS // 4:
                self._n = max(1, self._n * TURN_NS // ns)
                return
            self._n *= 4 if ns > TURN_NS // 64 else 16

    def turn(self) -> float:
        """Nanoseconds an operation takes, over one turn."""
        ns: int = self._ask(run=self._n)["ns"]
        return ns / self._n

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, **question: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"the worker ended with status {self._process.wait()} after {question}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def measure(case: str, interpreted: Worker, compiled: Worker, rounds: int) -> Result:
    """Run one case on both builds, turn by turn."""
    interpreted.prepare(case)
    compiled.prepare(case)
    turns = [(interpreted.turn(), compiled.turn()) for _ in range(rounds)]
    return Result(case, min(slow for slow, _ in turns), min(fast for _, fast in turns))


def about() -> dict[str, object]:
    """The machine and the commit that the numbers belong to."""
    return {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Measure, print a table, and write the JSON if asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.micro")
    parser.add_argument("filter", nargs="?", default="", help="part of a case's name")
    parser.add_argument("--json", type=Path, help="where to write the results")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each build (default 9)")
    asked = parser.parse_args()

    facts = about()
    interpreted, compiled = Worker("interpreted"), Worker("compiled")
    names = [case for case in interpreted.cases if asked.filter in case]
    if not names:
        sys.exit(f"no case contains {asked.filter!r}; there are: {', '.join(interpreted.cases)}")

    width = max(map(len, names))
    print(f"{'ns per operation':<{width}}  interpreted  compiled  ratio")
    results = []
    for name in names:
        result = measure(name, interpreted, compiled, asked.rounds)
        results.append(asdict(result) | {"ratio": round(result.ratio, 2)})
        print(
            f"{name:<{width}}  {result.interpreted:>11,.0f}  {result.compiled:>8,.0f}"
            f"  {result.ratio:>5.1f}",
            flush=True,
        )
    interpreted.close()
    compiled.close()
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(facts | {"results": results}, indent=2) + "\n")
        print(f"written to {asked.json}")


if __name__ == "__main__":
    main()
