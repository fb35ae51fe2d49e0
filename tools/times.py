"""Measures where the time of a test run goes, and writes the table in CONTRIBUTING.md.

    python tools/times.py stage compile make build/compiled   # run a command, record its time
    python tools/times.py stage --held compile make …         # print its output when it has ended
    python -m pytest -p tools.times                           # in a stage: record the tests
    python tools/times.py summary                             # print the stages of the last run
    python tools/times.py table                               # write the table anew

Everything is recorded under `build/times`. A Java is found by looking at the processes of this
machine once a second; the test that started it stands in its environment.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
import uuid
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "times"
STAGES = FOLDER / "stages.jsonl"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- times: written by `make times` -->", "<!-- end of times -->"
FIRST_STAGE = "environment"
SLOWEST = 12
STAGE = "ZENLAKE_STAGE"
"""Names the stage that runs: a run of pytest outside of `make test` leaves the record as it is."""
CPU = "cpu seconds"
BEGAN: list[float] = []
"""The CPU seconds of this process when its current test began."""


# ------------------------------------------------------------------------------------- stages


def run_stage(name: str, command: list[str], held: bool = False) -> int:
    """Run a command, append its wall and CPU seconds to the record, return its exit code.

    The output of a stage that runs beside another is held until it has ended.
    """
    began = time.time()
    ran = subprocess.run(
        command,
        check=False,
        env=os.environ | {STAGE: name},
        stdout=subprocess.PIPE if held else None,
        stderr=subprocess.STDOUT if held else None,
        # A make in a stage shares the jobs of the make around it, by files that are open here.
        close_fds=False,
    )
    if held:
        sys.stdout.buffer.write(ran.stdout)
        sys.stdout.flush()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if name == FIRST_STAGE:
        STAGES.unlink(missing_ok=True)
    record = {
        "stage": name,
        "began": round(began, 1),
        "seconds": round(time.time() - began, 1),
        "cpu": round(used.ru_utime + used.ru_stime, 1),
    }
    with STAGES.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    return ran.returncode


def stages() -> list[dict[str, Any]]:
    """Return the stages of the last run, in the order in which they ended."""
    return [json.loads(line) for line in STAGES.read_text("utf-8").splitlines()]


def summary() -> str:
    """Return one line: the wall time of each stage of the last run, and from first to last."""
    recorded = sorted(stages(), key=lambda one: one["began"])
    told = [f"{one['stage']} {clock(one['seconds'])}" for one in recorded]
    ended = max(one["began"] + one["seconds"] for one in recorded)
    return f"{', '.join(told)}; {clock(ended - recorded[0]['began'])} in all"


def clock(seconds: float) -> str:
    """Return a number of seconds as minutes and seconds."""
    return f"{int(seconds + 0.5) // 60}:{int(seconds + 0.5) % 60:02d}"


# -------------------------------------------------------------------------------------- tests


class Recorder:
    """The pytest plugin: adds up the phases of each test and watches for Javas."""

    def __init__(self, build: str, run: str) -> None:
        """`run` is the number that xdist has given to this test run and to its workers."""
        self.build = build
        self.run = run
        self.tests: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = {}
        self.javas: dict[tuple[int, float], dict[str, Any]] = {}
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def pytest_sessionstart(self) -> None:
        """Begin to watch."""
        self._watch.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase to its test."""
        self.tests[report.nodeid] += report.duration
        for name, value in report.user_properties:
            if name == CPU:
                self.cpu[report.nodeid] = float(str(value))

    def pytest_sessionfinish(self) -> None:
        """Write what was recorded."""
        self._ended.set()
        self._watch.join()
        FOLDER.mkdir(parents=True, exist_ok=True)
        record = {"tests": self.tests, "cpu": self.cpu, "javas": list(self.javas.values())}
        (FOLDER / f"{self.build}.json").write_text(json.dumps(record), encoding="utf-8")

    def _look(self) -> None:
        import psutil

        while not self._ended.wait(1.0):
            for process in psutil.process_iter(["name", "create_time"]):
                if process.info["name"] != "java":
                    continue
                key = (process.pid, process.info["create_time"])
                try:
                    if key not in self.javas:
                        settings = process.environ()
                        if settings.get("PYTEST_XDIST_TESTRUNUID") != self.run:
                            continue
                        test = settings.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
                        self.javas[key] = {"test": test}
                    times = process.cpu_times()
                    self.javas[key]["cpu"] = round(times.user + times.system, 1)
                except psutil.Error:
                    continue


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def pytest_runtest_logstart(nodeid: str) -> None:
    """Begin to measure a test, in the process that runs it."""
    BEGAN[:] = [cpu_seconds()]


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Add to the last report of a test how much CPU the test took."""
    if call.when == "teardown" and BEGAN:
        item.user_properties.append((CPU, round(cpu_seconds() - BEGAN[0], 3)))


def pytest_configure(config: pytest.Config) -> None:
    """Record the run of a stage, in the process that hands out the tests."""
    measured = STAGE in os.environ and hasattr(config.option, "testrunuid")
    if measured and not hasattr(config, "workerinput"):
        run = config.option.testrunuid = config.option.testrunuid or uuid.uuid4().hex
        build = os.environ.get("ZENLAKE_EXPECT", "unknown")
        config.pluginmanager.register(Recorder(build, run), "zenlake-times")


# -------------------------------------------------------------------------------------- table


def table() -> str:
    """Return the table of the last run as Markdown."""
    lines = ["| stage | wall | CPU |", "|---|---:|---:|"]
    lines += [
        f"| {one['stage']} | {clock(one['seconds'])} | {clock(one['cpu'])} |" for one in stages()
    ]
    for build in ("compiled", "interpreted"):
        file = FOLDER / f"{build}.json"
        if file.is_file():
            lines += ["", *_rooms(build, json.loads(file.read_text("utf-8")))]
    return "\n".join(lines)


def _rooms(build: str, record: dict[str, Any]) -> list[str]:
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, int] = defaultdict(int)
    javas: dict[str, int] = defaultdict(int)
    java_cpu: dict[str, float] = defaultdict(float)
    cpu: dict[str, float] = defaultdict(float)
    for test, spent in record["tests"].items():
        seconds[_room(test)] += spent
        cpu[_room(test)] += record["cpu"].get(test, 0.0)
        tests[_room(test)] += 1
    for java in record["javas"]:
        javas[_room(java["test"])] += 1
        java_cpu[_room(java["test"])] += java["cpu"]
    rows = sorted(seconds, key=lambda room: -seconds[room])
    whole = f"{len(record['tests'])} tests, {sum(seconds.values()):.0f} s of all workers"
    lines = [
        f"The {build} suite, {whole}:",
        "",
        "| room | tests | seconds | CPU seconds | Javas started | their CPU seconds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for room in rows:
        if seconds[room] < 1:
            continue
        java = f"{javas[room]} | {java_cpu[room]:.0f}" if javas[room] else "|"
        lines.append(f"| {room} | {tests[room]} | {seconds[room]:.0f} | {cpu[room]:.0f} | {java} |")
    if build == "compiled":
        slow = sorted(record["tests"].items(), key=lambda each: -each[1])[:SLOWEST]
        lines += ["", "Its slowest tests:", "", "| test | seconds |", "|---|---:|"]
        lines += [f"| `{name.removeprefix('tests/')}` | {spent:.0f} |" for name, spent in slow]
    return lines


def _room(test: str) -> str:
    parts = test.split("::")[0].split("/")
    return parts[1] if len(parts) > 2 else parts[-1]


def write_table() -> None:
    """Put the table of the last run into CONTRIBUTING.md, in place of the one before."""
    text = PAGE.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{PAGE.name} has no place for the table: {BEGIN} … {END}")
    PAGE.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    match arguments:
        case ["stage", "--held", name, *command] if command:
            return run_stage(name, command, held=True)
        case ["stage", name, *command] if command:
            return run_stage(name, command)
        case ["summary"]:
            print(f"zenlake: {summary()}")
        case ["table"]:
            write_table()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
