"""zenlake beside Eclipse Zenoh: the same programs, in turns, medians and ratios.

    python -m bench.macro                      all cases, three rounds
    python -m bench.macro thr-64 ping --rounds 5 --json build/macro.json

Every program runs in processes of its own over loopback TCP, with the same kind of handler on
both sides; Eclipse's shared memory is off, so that TCP is compared with TCP. CPU is what the
kernel charged to the process. Machines are noisy: trust the ratios, not the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.macro.certificate import settings as certificate_settings

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("worker.py")
ECLIPSE, ZENLAKE = "zenoh", "zenlake"
#: A program that opens a session and ends.
STARTING = """\
import {package} as z
config = z.Config()
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5("scouting/gossip/enabled", "false")
config.insert_json5("listen/endpoints", "[]")
z.open(config).close()
"""
#: Compare TCP with TCP.
PLAIN = {"transport/shared_memory/enabled": False}

Figures = dict[str, float]


class Worker:
    """A process that plays a role."""

    def __init__(self, path: str, role: str, package: str, **orders: object) -> None:
        """Start it, and wait until it is ready."""
        environment = os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
        given = {"role": role, "package": package, **orders}
        self.role = role
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._kept = b""
        self._read(30)

    def do(self, what: str, timeout: float = 60, **values: object) -> dict[str, Any]:
        """Give an order, and wait for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": what, **values}).encode() + b"\n")
        self.process.stdin.flush()
        return self._read(timeout)

    def _read(self, timeout: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._kept:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError(f"{self.role}: no answer in {timeout:g} s")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f"{self.role} ended with {self.process.wait()}")
            self._kept += data
        line, self._kept = self._kept.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def cpu(self) -> float:
        """The seconds of CPU that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End it, politely first."""
        if self.process.poll() is None:
            try:
                assert self.process.stdin is not None
                self.process.stdin.write(b'{"do": "exit"}\n')
                self.process.stdin.flush()
                self.process.wait(3)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()


class Bench:
    """Starts programs of one contender, and ends them."""

    def __init__(self, package: str, path: str, router: str | None = None) -> None:
        """`router`: the package of the node in the middle, if not the same."""
        self.package = package
        self.path = path
        self.router_package = router or package
        self.workers: list[Worker] = []

    def start(self, role: str, package: str | None = None, **orders: object) -> Worker:
        """Start one program."""
        chosen = package or self.package
        config = orders.pop("config", {})
        assert isinstance(config, dict)
        if chosen == ECLIPSE:
            config = {**PLAIN, **config}
        worker = Worker(self.path, role, chosen, config=config, **orders)
        self.workers.append(worker)
        return worker

    def pair(self, through_router: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """How two programs reach each other: directly, or through a router."""
        endpoint = f"tcp/127.0.0.1:{free_port()}"
        if not through_router:
            return {"mode": "peer", "listen": [endpoint]}, {"mode": "peer", "connect": [endpoint]}
        self.start("router", self.router_package, mode="router", listen=[endpoint])
        client: dict[str, Any] = {"mode": "client", "connect": [endpoint]}
        return client, client

    def end(self) -> None:
        """End all programs."""
        for worker in reversed(self.workers):
            worker.end()


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def bench(package: str, path: str, router: str | None = None) -> Iterator[Bench]:
    """The programs of one measurement."""
    running = Bench(package, path, router)
    try:
        yield running
    finally:
        running.end()


def secured(running: Bench, size: int) -> Figures:
    """The same throughput over TLS."""
    with TemporaryDirectory() as folder:
        listening, connecting = running.pair(False)
        for side in (listening, connecting):
            for where in ("listen", "connect"):
                if where in side:
                    port = side[where][0].rpartition(":")[2]
                    side[where] = [f"tls/localhost:{port}"]
            side["config"] = certificate_settings(Path(folder))
        return throughput(running, size, ends=(listening, connecting))


def compressed(running: Bench, size: int) -> Figures:
    """The same throughput in batches that LZ4 has packed."""
    ends = running.pair(False)
    for side in ends:
        side["config"] = {"transport/unicast/compression/enabled": True}
    return throughput(running, size, ends=ends)


def throughput(
    running: Bench,
    size: int,
    routed: bool = False,
    subscribers: int = 1,
    handler: str = "callback",
    ends: tuple[dict[str, Any], dict[str, Any]] | None = None,
) -> Figures:
    """Messages a second from put to handler, and the CPU that each costs."""
    listening, connecting = ends or running.pair(routed)
    subscriber = running.start("subscriber", subscribers=subscribers, handler=handler, **listening)
    publisher = running.start("publisher", size=size, **connecting)
    deadline = time.monotonic() + 10
    while not publisher.do("matching")["matching"] and time.monotonic() < deadline:
        time.sleep(0.02)
    publisher.do("go")
    time.sleep(0.7)
    before = {worker.role: worker.cpu() for worker in running.workers}
    first = subscriber.do("count")
    sent_first = publisher.do("count")
    time.sleep(2.0)
    last = subscriber.do("count")
    sent_last = publisher.do("count")
    spent = {worker.role: worker.cpu() - before[worker.role] for worker in running.workers}
    sent = publisher.do("stop")["n"]
    deadline = time.monotonic() + 10
    while (total := subscriber.do("count")["n"]) < sent * subscribers:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    received = last["n"] - first["n"]
    seconds = last["time"] - first["time"]
    figures = {
        "messages/s": received / seconds,
        "MB/s": received * size / seconds / 1e6,
        "subscriber µs": spent["subscriber"] / max(received, 1) * 1e6,
        "publisher µs": spent["publisher"] / max(sent_last["n"] - sent_first["n"], 1) * 1e6,
        "lost": float(sent * subscribers - total),
    }
    if "router" in spent:
        figures["router µs"] = spent["router"] / max(received, 1) * 1e6
    return figures


def record(running: Bench, size: int, seconds: float = 3.0) -> Figures:
    """What recording a row costs; the publisher is Eclipse's for all."""
    listening, connecting = running.pair(False)
    with tempfile.TemporaryDirectory(prefix="zenlake-bench-") as folder:
        recorder = running.start("recorder", size=size, to=f"{folder}/journal", **listening)
        publisher = running.start("publisher", ECLIPSE, size=size, **connecting)
        deadline = time.monotonic() + 10
        while not publisher.do("matching")["matching"] and time.monotonic() < deadline:
            time.sleep(0.02)
        publisher.do("go")
        time.sleep(1.0)
        before, first = recorder.cpu(), recorder.do("count")
        time.sleep(seconds)
        sent = publisher.do("stop")["n"]
        # The time that it takes until all is recorded counts, and the CPU too.
        deadline = time.monotonic() + 30
        while (last := recorder.do("count"))["n"] < sent and time.monotonic() < deadline:
            time.sleep(0.01)
        spent, rows = recorder.cpu() - before, last["n"] - first["heard"]
        took = last["time"] - first["time"]
        running.end()
        return {
            "rows/s": rows / took,
            "MB/s": rows * size / took / 1e6,
            "recorder µs": spent / max(rows, 1) * 1e6,
            "lost": float(sent - last["n"]),
        }


def latency(running: Bench, size: int, routed: bool = False) -> Figures:
    """The round trip of a payload."""
    listening, connecting = running.pair(routed)
    running.start("pong", **listening)
    ping = running.start("ping", size=size, **connecting)
    time.sleep(0.3)
    ping.do("run", count=500)
    found = ping.do("run", count=4000)
    return {"p50 µs": found["p50"], "p99 µs": found["p99"]}


def questions(running: Bench, replies: int, routed: bool = False) -> Figures:
    """Questions a second, one after the other."""
    listening, connecting = running.pair(routed)
    running.start("queryable", replies=replies, **listening)
    asker = running.start("asker", replies=replies, **connecting)
    time.sleep(0.3)
    asker.do("run", seconds=0.5)
    found = asker.do("run", seconds=2.0)
    assert found["complete"], "an answer was lost"
    return {"gets/s": found["gets"], "replies/s": found["replies"]}


def sessions(running: Bench) -> Figures:
    """What a session costs: time to import and to open, memory."""
    endpoint = f"tcp/127.0.0.1:{free_port()}"
    running.start("router", running.router_package, mode="router", listen=[endpoint])
    opener = running.start("opener", mode="client", connect=[endpoint])
    one = opener.do("open", count=1)
    many = opener.do("open", count=50)
    return {
        "import ms": one["imported"],
        "opened/s": many["rate"],
        "KiB with one": float(one["memory"]),
        "KiB a session": (many["memory"] - one["memory"]) / 50,
    }


def starting(running: Bench, times: int = 7) -> Figures:
    """The CPU of a program that opens a session and ends, the interpreter's start included."""
    program = STARTING.format(package=running.package)
    return {
        "CPU ms": statistics.median(cpu_of(program, running.path) for _ in range(times)) * 1000,
        "of it python": statistics.median(cpu_of("pass", running.path) for _ in range(times))
        * 1000,
    }


def cpu_of(program: str, path: str) -> float:
    """The seconds of CPU, the system's included, that a program takes in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


Case = Callable[[Bench], Figures]
CASES: dict[str, Case] = {
    "thr-64": lambda b: throughput(b, 64),
    "thr-1024": lambda b: throughput(b, 1024),
    "thr-fifo-64": lambda b: throughput(b, 64, handler="fifo"),
    "thr-64k": lambda b: throughput(b, 65536),
    "thr-1m": lambda b: throughput(b, 1 << 20),
    "tls-1024": lambda b: secured(b, 1024),
    "tls-64k": lambda b: secured(b, 65536),
    "lz4-1024": lambda b: compressed(b, 1024),
    "lz4-64k": lambda b: compressed(b, 65536),
    "ping": lambda b: latency(b, 8),
    "get-1": lambda b: questions(b, 1),
    "get-1000": lambda b: questions(b, 1000),
    "sessions": sessions,
    "start": starting,
    "record-64": lambda b: record(b, 64),
    "record-1024": lambda b: record(b, 1024),
    "record-64k": lambda b: record(b, 65536),
}
ROUTED: dict[str, Case] = {
    "routed-64": lambda b: throughput(b, 64, routed=True),
    "routed-1024": lambda b: throughput(b, 1024, routed=True),
    "routed-ping": lambda b: latency(b, 8, routed=True),
    "fan-10": lambda b: throughput(b, 64, routed=True, subscribers=10),
    "fan-50": lambda b: throughput(b, 64, routed=True, subscribers=50),
}


def contenders(name: str) -> list[tuple[str, str, str | None]]:
    """Who is measured in a case: (label, package of the programs, package of the router)."""
    if name in CASES:
        return [("eclipse", ECLIPSE, None), ("zenlake", ZENLAKE, None)]
    return [
        ("eclipse", ECLIPSE, ECLIPSE),
        ("our router", ECLIPSE, ZENLAKE),
        ("zenlake", ZENLAKE, ZENLAKE),
    ]


def main() -> int:
    """Run the cases and print what came out."""
    parser = argparse.ArgumentParser(prog="python -m bench.macro", description=__doc__)
    every = {**CASES, **ROUTED}
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(every)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="append every figure to this file")
    parser.add_argument("--path", default=str(ROOT / "build" / "compiled"), help="where zenlake is")
    options = parser.parse_args()
    chosen = options.cases or list(every)
    unknown = [name for name in chosen if name not in every]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(every)}")
    for name in chosen:
        results: dict[str, list[Figures]] = {}
        for _ in range(options.rounds):
            for label, package, router in contenders(name):
                with bench(package, options.path, router) as running:
                    results.setdefault(label, []).append(every[name](running))
        show(name, results)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps({"case": name, "results": results}) + "\n")
    return 0


def show(name: str, results: dict[str, list[Figures]]) -> None:
    """Print the medians of a case, and each contender's ratio to the first."""
    labels = list(results)
    medians = {
        label: {key: statistics.median(f[key] for f in rounds) for key in rounds[0]}
        for label, rounds in results.items()
    }
    for key, base in medians[labels[0]].items():
        cells = [f"{label} {medians[label][key]:,.2f}" for label in labels]
        ratios = [f"{label} {medians[label][key] / base:.2f}x" for label in labels[1:] if base]
        print(f"{name:12} {key:14} {'  '.join(cells):60} {'  '.join(ratios)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
