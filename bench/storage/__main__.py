"""What storages cost beside what they are made of, in ratios of one run.

PYTHONPATH=build/compiled python -m bench.storage               # all of it, some minutes
PYTHONPATH=build/compiled python -m bench.storage speed         # one part: speed, million, volumes
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zenlake

ROUNDS = 5
PAYLOAD = b"x" * 64
MEMORY = {"memory": {"key_expr": "stored/**", "volume": "memory"}}


class Router:
    """A router in a process of its own."""

    def __init__(self, folder: Path, storages: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.storage.router", str(folder), json.dumps(storages)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        hello = self._answer()
        self.where: str = hello["where"]
        self.started: float = hello["started"]

    def ask(self, line: str) -> Any:
        """What it answers to a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)


@contextmanager
def router(folder: Path, storages: dict[str, Any]) -> Iterator[Router]:
    made = Router(folder, storages)
    try:
        yield made
    finally:
        made.end()


def client(where: str) -> zenlake.Session:
    config = zenlake.Config()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config.insert_json5("mode", '"client"')
        config.insert_json5("scouting/multicast/enabled", "false")
        config.insert_json5("connect/endpoints", json.dumps([where]))
    return zenlake.open(config)


def ratio(name: str, value: float, target: str, more: str = "") -> tuple[str, float]:
    print(f"{name:<58} {value:6.2f}   target {target:<8} {more}", flush=True)
    return name, value


# --------------------------------------------------------------------------------------- speed


#: Seconds of CPU that the router took for each put, by kind, round by round.
CPU: dict[str, list[float]] = {}


def cpu(kind: str) -> float:
    """Microseconds of CPU that the router takes for a put, which other programs change less."""
    return statistics.median(CPU.pop(kind)) * 1e6


def puts(made: Router, session: zenlake.Session, kind: str, count: int) -> float:
    """Puts that arrive a second, from the first one sent to the last one heard."""
    keys = [session.declare_publisher(f"{kind}/{n}/1/c") for n in range(100)]
    before = made.ask("counts")
    begin = time.perf_counter()
    for n in range(count):
        keys[n % 100].put(PAYLOAD)
    while (now := made.ask("counts"))[kind] < before[kind] + count:
        time.sleep(0.001)
    took = time.perf_counter() - begin
    CPU.setdefault(kind, []).append((now["cpu"] - before["cpu"]) / count)
    for key in keys:
        key.undeclare()
    return count / took


def gets(session: zenlake.Session, selector: str, rounds: int, replies: int) -> float:
    """Median seconds until all replies to a query are there."""
    took = []
    for _ in range(rounds):
        begin = time.perf_counter()
        found = sum(1 for reply in session.get(selector) if reply.ok is not None)
        took.append(time.perf_counter() - begin)
        assert found == replies, (selector, found)
    return statistics.median(took)


def alternating(a: Callable[[], float], b: Callable[[], float]) -> tuple[float, float]:
    """Medians of two measurements that take turns, so that both meet the same machine."""
    pairs = [(a(), b()) for _ in range(ROUNDS)]
    return statistics.median(x for x, _ in pairs), statistics.median(y for _, y in pairs)


def speed() -> dict[str, float]:
    found: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        router(Path(folder), MEMORY) as made,
        client(made.where) as session,
    ):
        puts(made, session, "stored", 5000)
        stored, plain = alternating(
            lambda: puts(made, session, "stored", 20_000),
            lambda: puts(made, session, "plain", 20_000),
        )
        used, plainly = cpu("stored"), cpu("plain")
        name = "CPU of puts: a plain subscriber / a memory storage"
        more = f"{plainly:.1f} µs, {used:.1f} µs of the router"
        found.update([ratio(name, plainly / used, "", more)])
        found.update(
            [
                ratio(
                    "puts into a memory storage / a plain subscriber",
                    stored / plain,
                    ">= 0.8",
                    f"{stored:,.0f}/s, {plain:,.0f}/s",
                )
            ]
        )
        stored, plain = alternating(
            lambda: puts(made, session, "stored", 20_000),
            lambda: puts(made, session, "kept", 20_000),
        )
        name = "puts into a memory storage / a subscriber with a dict"
        more = f"{stored:,.0f}/s, {plain:,.0f}/s"
        found.update([ratio(name, stored / plain, "", more)])
        session.put("stored/k", PAYLOAD)
        while not list(session.get("stored/k")):
            pass
        gets(session, "stored/k", 50, 1)
        a, b = alternating(
            lambda: gets(session, "stored/k", 300, 1), lambda: gets(session, "one/k", 300, 1)
        )
        more = f"{a * 1e6:.0f} µs, {b * 1e6:.0f} µs"
        found.update([ratio("get of one key / a plain queryable", a / b, "<= 1.3", more)])
        made.ask("fill memory stored/many 10000")
        a, b = alternating(
            lambda: gets(session, "stored/many/**", 2, 10_000),
            lambda: gets(session, "many/**", 2, 10_000),
        )
        more = f"{10_000 / a:,.0f}/s, {10_000 / b:,.0f}/s"
        found.update(
            [ratio("replies of a get of 10 000 keys / a plain queryable", b / a, ">= 0.7", more)]
        )
    found.update([sqlite_beside_raw()])
    return found


def sqlite_beside_raw(count: int = 50_000) -> tuple[str, float]:
    rows = [
        (f"stored/{n % 1000}/{n}/c", n, b"\x01", n, b"\x01", 0, 0, None, None, PAYLOAD)
        for n in range(count)
    ]

    def raw() -> float:
        with tempfile.TemporaryDirectory() as folder:
            connection = sqlite3.connect(Path(folder) / "raw.sqlite")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(
                "CREATE TABLE entries (key TEXT PRIMARY KEY, time INTEGER NOT NULL, id BLOB,"
                " base_time INTEGER, base_id BLOB, deleted INTEGER, encoding INTEGER,"
                " schema BLOB, attachment BLOB, payload BLOB)"
            )
            begin = time.perf_counter()
            for first in range(0, count, 1000):
                with connection:
                    connection.executemany(
                        f"INSERT OR REPLACE INTO entries VALUES ({', '.join('?' * 10)})",
                        rows[first : first + 1000],
                    )
            took = time.perf_counter() - begin
            connection.close()
            return count / took

    def storage() -> float:
        with tempfile.TemporaryDirectory() as folder:
            volume = {"id": "sqlite", "dir": folder}
            storages = {"s": {"key_expr": "stored/**", "volume": volume}}
            with router(Path(folder), storages) as made:
                return count / float(made.ask(f"fill s stored {count}"))

    a, b = alternating(storage, raw)
    more = f"{a:,.0f}/s, {b:,.0f}/s (batches of 1000)"
    return ratio("rows into a sqlite storage / raw sqlite3", a / b, ">= 0.5", more)


# ------------------------------------------------------------------------------------- million


def million(keys: int = 1_000_000) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("memory", "sqlite"):
            volume: Any = kind if kind == "memory" else {"id": kind, "dir": folder, "fsync": False}
            storages = {kind: {"key_expr": "stored/**", "volume": volume}}
            with router(Path(folder), storages) as made, client(made.where) as session:
                empty = made.ask("memory")["rss"]
                made.ask(f"fill {kind} stored 1000")
                gets(session, "stored/1/1/c", 50, 1)
                few = gets(session, "stored/1/1/c", 300, 1)
                took = made.ask(f"fill {kind} stored {keys}")
                full = made.ask("memory")["rss"]
                many = gets(session, "stored/1/1/c", 300, 1)
                found |= dict(
                    [
                        ratio(
                            f"{kind}: get of one of 10⁶ keys / of 10³",
                            many / few,
                            "~ 1",
                            f"{few * 1e6:.0f} µs, {many * 1e6:.0f} µs",
                        )
                    ]
                )
                each = (full - empty) / keys
                print(f"{kind}: {took:.1f} s for {keys:,} keys, {each:.0f} bytes a key")
                found[f"{kind} bytes a key"] = each
                some = keys // 1000
                begin = time.perf_counter()
                gets(session, "stored/7/*/c", 1, some)
                print(f"{kind}: a/*/c, {some} keys: {time.perf_counter() - begin:.3f} s")
                found |= everything(made, session, kind, keys)
            if kind == "sqlite":
                with router(Path(folder), storages) as made:
                    print(f"sqlite: start with {keys:,} keys: {made.started:.1f} s")
                    found["sqlite start, s"] = made.started
    return found


def everything(made: Router, session: zenlake.Session, kind: str, keys: int) -> dict[str, float]:
    """All keys at once: what that takes of memory, and what a reader that stops does to others."""
    before = made.ask("memory")["rss"]
    begin = time.perf_counter()
    replies = session.get(
        "stored/**",
        consolidation=zenlake.ConsolidationMode.NONE,
        timeout=600.0,
    )
    got, most = 0, before
    for _ in replies:
        got += 1
        if got % 100_000 == 0:
            most = max(most, made.ask("memory")["rss"])
    took = time.perf_counter() - begin
    grown = (most - before) / 1e6
    print(f"{kind}: **, {got:,} keys: {took:.1f} s, {grown:.0f} MB more in the router meanwhile")
    alone = gets(session, "stored/1/1/c", 200, 1)
    # A reader that asks for everything and reads nothing.
    code = STOPPED.replace("WHERE", made.where)
    reader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    reader.stdout.readline()
    time.sleep(2)
    beside = gets(session, "stored/1/1/c", 200, 1)
    held = (made.ask("memory")["rss"] - before) / 1e6
    reader.kill()
    reader.wait()
    more = f"{alone * 1e6:.0f} µs, {beside * 1e6:.0f} µs, {held:.0f} MB held for it"
    name, value = ratio(
        f"{kind}: get beside a reader that stopped / alone", beside / alone, "~ 1", more
    )
    return {
        name: value,
        f"{kind} ** seconds": took,
        f"{kind} ** MB": grown,
        f"{kind} held MB": held,
    }


STOPPED = """
import os, signal, zenlake
config = zenlake.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5("connect/endpoints", '["WHERE"]')
session = zenlake.open(config)
replies = session.get("stored/**", consolidation=zenlake.ConsolidationMode.NONE, timeout=600.0)
print("asked", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


# ------------------------------------------------------------------------------------- volumes


def volumes(count: int = 20_000) -> dict[str, float]:
    """Values a second into each volume of this machine, and the time to read one."""
    from tests.volumes.opened import OPTIONS, opened
    from zenlake.newest import Batch, Entry, Value

    found: dict[str, float] = {}
    print("volume      values/s written   µs to read one   s to open")
    for kind in OPTIONS:
        with tempfile.TemporaryDirectory() as folder:
            volume = opened(kind, Path(folder))
            entries = [
                Entry(f"s/{n % 100}/{n}", n + 1, b"\x01", n + 1, b"\x01", Value(PAYLOAD))
                for n in range(count)
            ]
            begin = time.perf_counter()
            for first in range(0, count, 1000):
                volume.write(Batch(entries[first : first + 1000], [], [], [], []))
            rate = count / (time.perf_counter() - begin)
            took = []
            for n in range(0, count, count // 100):
                begin = time.perf_counter()
                assert volume.read([f"s/{n % 100}/{n}"])[0] is not None
                took.append(time.perf_counter() - begin)
            volume.close()
            begin = time.perf_counter()
            volume = opened(kind, Path(folder))
            assert sum(1 for _ in volume.entries()) == count
            start = time.perf_counter() - begin
            volume.close()
            read = statistics.median(took) * 1e6
            print(f"{kind:<12}{rate:>15,.0f}   {read:>13,.0f}   {start:>10.2f}", flush=True)
            found[kind] = rate
    return found


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "speed": speed,
    "million": million,
    "volumes": volumes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them if none")
    parser.add_argument("--json", type=Path, help="write the numbers to a file")
    arguments = parser.parse_args()
    print(f"compiled: {zenlake.compiled}, load {os.getloadavg()[0]:.1f}")
    found = {part: PARTS[part]() for part in arguments.parts or PARTS}
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
