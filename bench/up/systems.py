"""What is measured: three ways from publishers to a table, each as the processes that it is."""

from __future__ import annotations

import json
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from zenlake.journal import Journal

HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Program:
    """A process that says in JSON that it is ready, and maybe more; all of it is read."""

    def __init__(self, arguments: Sequence[str], log: Path, ready: str = "") -> None:
        """`ready`: what it calls ready; without, the first thing that it says will do."""
        self.log = log
        self._said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
            )  # fmt: skip
        threading.Thread(target=self._hear, daemon=True).start()
        while self.told().get("ready") != ready and ready:
            pass

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line)
        self._said.put(None)

    def told(self) -> dict[str, Any]:
        """The next thing that it says."""
        while (line := self._said.get(timeout=600)) is not None:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise SystemExit(f"a program ended before its time; see {self.log}\n{self.log.read_text()}")

    def ask(self, line: str) -> None:
        """Say a line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        """Interrupt it, as a person would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()


def cpu_of(process: psutil.Process) -> float:
    """Seconds that the kernel charged to a process, and to children of it that have ended."""
    times = process.cpu_times()
    own = times.user + times.system
    return float(own + times.children_user + times.children_system)


def spent(process: psutil.Process) -> dict[str, float]:
    """CPU by what the processes below one are: the router, the lake, its Java."""
    found: dict[str, float] = {}
    for each in [process, *process.children(recursive=True)]:
        try:
            line = each.cmdline()
            name = each.name()
            seconds = cpu_of(each)
        except psutil.Error:
            continue
        part = "lake"
        if name == "java":
            part = "java"
        elif "router" in line or "by_hand" in line[-3:][0]:
            part = "router" if "router" in line else "by hand"
        elif "record" in line:
            part = "recorder"
        elif "up" in line:
            part = "up"
        found[part] = found.get(part, 0.0) + seconds
    return found


class System:
    """A way from publishers to a table, started in a folder."""

    name = ""

    def __init__(self, folder: Path, lake: bool) -> None:
        self.folder = folder
        self.lake = lake
        self.endpoint = f"tcp/127.0.0.1:{free_port()}"
        self.programs: list[Program] = []

    def start(self, arguments: Sequence[str], ready: str = "") -> None:
        """Run one more program of it, and wait until it is ready."""
        log = self.folder / f"{len(self.programs)}.log"
        self.programs.append(Program(arguments, log, ready))

    def stop(self) -> None:
        """Stop all of it, the last first."""
        for program in reversed(self.programs):
            program.stop()

    def cpu(self) -> dict[str, float]:
        """Seconds by part, so far."""
        found: dict[str, float] = {}
        for program in self.programs:
            for part, seconds in spent(psutil.Process(program.process.pid)).items():
                found[part] = found.get(part, 0.0) + seconds
        return found

    def files(self) -> list[tuple[float, Path, int]]:
        """The files of the table: when each was there to be read, and its rows."""
        table = self.folder / "data" / "lake" / "samples"
        found: list[tuple[float, Path, int]] = []
        for commit in sorted((table / "_delta_log").glob("*.json")):
            if len(commit.stem) != 20:
                continue
            for line in commit.read_text().splitlines():
                added = json.loads(line).get("add")
                if added is not None and added["dataChange"]:
                    rows = json.loads(added["stats"])["numRecords"]
                    found.append((commit.stat().st_mtime, table / added["path"], rows))
        return found

    def rows(self) -> int:
        """How many rows are there, durable."""
        if self.lake:
            return sum(rows for _, _, rows in self.files())
        return sum(Journal.open(self.folder / "data" / "journal").watermark().offsets)

    def seen(self, since: float) -> list[float]:
        """Of each row put after a time: seconds until it could be read."""
        found: list[float] = []
        for when, path, _ in self.files() if self.lake else ():
            if when > since and path.exists():
                times = pq.read_table(path, columns=["time"]).column("time").cast("int64")
                found += [when - t / 1e6 for t in times.to_pylist() if t / 1e6 >= since]
        return found


class Up(System):
    """`zenlake up`."""

    name = "up"

    def __init__(self, folder: Path, lake: bool) -> None:
        super().__init__(folder, lake)
        given = ["--data", str(folder / "data"), "-l", self.endpoint, "--no-multicast-scouting"]
        given += ["--json", "--lake" if lake else "--no-lake"]
        self.start(["-m", "zenlake", "up", *given], "all")


class Record(System):
    """A router that records nothing, `zenlake record` as its client, and `zenlake lake run`."""

    name = "record"

    def __init__(self, folder: Path, lake: bool) -> None:
        super().__init__(folder, lake)
        alone = ["--no-multicast-scouting"]
        self.start(["-m", "zenlake", "router", "--json", "-l", self.endpoint, *alone])
        journal = folder / "data" / "journal"
        journal.mkdir(parents=True)
        given = ["-e", self.endpoint, "-m", "client", "--to", str(journal), "-k", "**", "--json"]
        self.start(["-m", "zenlake", "record", *given, *alone])
        if lake:
            given = ["--json", "--journal", str(journal), "--lake", str(folder / "data" / "lake")]
            self.start(["-m", "zenlake", "lake", "run", *given])


class ByHand(System):
    """Eclipse's client, writing Parquet."""

    name = "by hand"

    def __init__(self, folder: Path, lake: bool) -> None:
        super().__init__(folder, True)
        self.table = folder / "table"
        self.table.mkdir()
        self.start([str(HERE / "by_hand.py"), self.endpoint, str(self.table)])

    def files(self) -> list[tuple[float, Path, int]]:
        """Those that it has renamed."""
        found: list[tuple[float, Path, int]] = []
        for path in self.table.glob("*.parquet"):
            found.append((path.stat().st_mtime, path, pq.read_metadata(path).num_rows))
        return found


SYSTEMS = {system.name.replace(" ", "-"): system for system in (Up, Record, ByHand)}
