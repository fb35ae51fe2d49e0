"""One process of a benchmark: it plays one role and takes orders as JSON lines.

Started as `python worker.py '{"role": …, "package": "zenlake" | "zenoh", …}'`. Both packages have
the same names, so every role is written once.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

ORDERS: dict[str, Any] = json.loads(sys.argv[1])


def say(**values: object) -> None:
    """Answer with one line."""
    print(json.dumps(values), flush=True)


def orders() -> Iterator[dict[str, Any]]:
    """What the other side of the pipe wants, line by line."""
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        if order["do"] == "exit":
            break
        yield order
    sys.stdout.flush()
    os._exit(0)


def resident() -> int:
    """The memory in use, in KiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def package() -> Any:
    """The contender."""
    return importlib.import_module(ORDERS["package"])


def session(z: Any) -> Any:
    """A session as ordered: explicit endpoints, no scouting."""
    config = z.Config()
    config.insert_json5("mode", json.dumps(ORDERS.get("mode", "peer")))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/gossip/enabled", "false")
    config.insert_json5("connect/endpoints", json.dumps(ORDERS.get("connect", [])))
    config.insert_json5("listen/endpoints", json.dumps(ORDERS.get("listen", [])))
    for key, value in ORDERS.get("config", {}).items():
        config.insert_json5(key, json.dumps(value))
    return z.open(config)


class Count:
    """How many came."""

    def __init__(self) -> None:
        """None so far."""
        self.n = 0

    def callback(self, _sample: object) -> None:
        """One more."""
        self.n += 1


def serve(count: Callable[[], int], heard: Callable[[], int] | None = None) -> None:
    """Answer how many there are, until the end; and how many came, if that is not the same."""
    for _ in orders():
        came = 0 if heard is None else heard()
        n, now = count(), time.perf_counter()
        say(n=n, heard=came or n, time=now, cpu=time.process_time(), memory=resident())


def router() -> None:
    """A node in the middle."""
    opened = session(package())
    say(ready=True)
    serve(lambda: 0)
    opened.close()


def subscriber() -> None:
    """Counts samples: by callback, or by iterating over a FIFO."""
    z = package()
    opened = session(z)
    counts: list[Count] = []
    kept: list[Any] = []
    sessions = [opened] + [session(z) for _ in range(ORDERS.get("subscribers", 1) - 1)]
    for each in sessions:
        count = Count()
        counts.append(count)
        if ORDERS.get("handler") == "fifo":
            fifo = each.declare_subscriber("bench/**", z.handlers.FifoChannel(4096))

            def iterate(fifo: Any = fifo, count: Count = count) -> None:
                for _ in fifo:
                    count.n += 1

            threading.Thread(target=iterate, daemon=True).start()
            kept.append(fifo)
        else:
            kept.append(each.declare_subscriber("bench/**", count.callback))
    say(ready=True)
    serve(lambda: sum(count.n for count in counts))


def publisher() -> None:
    """Puts as fast as it can, waiting where there is no room."""
    z = package()
    opened = session(z)
    size = int(ORDERS["size"])
    payload = bytes(size)
    declared = opened.declare_publisher("bench/data", congestion_control=z.CongestionControl.BLOCK)
    stop = threading.Event()
    sent = 0

    def run() -> None:
        nonlocal sent
        put = declared.put
        chunk = 100 if size < 65536 else 1
        while not stop.is_set():
            for _ in range(chunk):
                put(payload)
            sent += chunk

    thread = threading.Thread(target=run, daemon=True)
    say(ready=True)
    for order in orders():
        match order["do"]:
            case "matching":
                say(matching=bool(declared.matching_status))
            case "go":
                thread.start()
                say(going=True)
            case "stop":
                stop.set()
                thread.join(20)
                say(n=sent)
            case _:
                say(n=sent, time=time.perf_counter(), cpu=time.process_time(), memory=resident())


class Lists:
    """Rows as a program gathers them by callback: lists, and an Arrow batch every 10 000 rows.

    Three columns of the journal's nineteen, and nothing is written: the least that a recorder does.
    """

    def __init__(self, size: int) -> None:
        """For payloads of `size` bytes."""
        import pyarrow as pa

        self.pa: Any = pa
        self.every = max(1, min(10_000, (64 << 20) // size))
        self.keys: list[str] = []
        self.values: list[bytes] = []
        self.times: list[int] = []
        self.n = 0

    def callback(self, sample: Any) -> None:
        """One more row."""
        self.keys.append(str(sample.key_expr))
        self.values.append(sample.payload.to_bytes())
        self.times.append(time.time_ns())
        if len(self.keys) >= self.every:
            self.flush()

    def flush(self) -> None:
        """Make the batch."""
        pa = self.pa
        arrays = [
            pa.array(self.keys, pa.string()),
            pa.array(self.values, pa.binary()),
            pa.array(self.times, pa.int64()),
        ]
        self.n += pa.RecordBatch.from_arrays(arrays, names=["key", "value", "time"]).num_rows
        self.keys, self.values, self.times = [], [], []

    def count(self) -> int:
        """How many rows came."""
        return self.n + len(self.keys)


def recorder() -> None:
    """Makes Arrow batches of all it hears; zenlake also writes them to a durable journal."""
    z = package()
    opened = session(z)
    if ORDERS["package"] != "zenlake":
        lists = Lists(int(ORDERS["size"]))
        kept = opened.declare_subscriber("bench/**", lists.callback)
        say(ready=True)
        serve(lambda: 0 if kept is None else lists.count())
        return
    recording = importlib.import_module("zenlake.journal.recorder")
    # As `zenlake record` runs it: with the ledger, the latest values and all answers.
    importlib.import_module("zenlake.journal.disk.memory").keep_memory()
    recorded = recording.Recorder(
        opened,
        recording.Options(
            ("bench/**",),
            ORDERS["to"],
            fsync=ORDERS.get("fsync", "50ms"),
            retain_bytes=1 << 30,
        ),
    )
    say(ready=True)
    # Counted is what is durable: no row is told of before its fsync.
    serve(
        lambda: sum(recorded.watermark().offsets),
        lambda: sum(sink.received for sink in recorded._sinks),
    )


def pong() -> None:
    """Sends every payload back."""
    z = package()
    opened = session(z)
    back = opened.declare_publisher("bench/pong", congestion_control=z.CongestionControl.BLOCK)
    kept = opened.declare_subscriber("bench/ping", lambda sample: back.put(sample.payload))
    say(ready=True)
    serve(lambda: 0 if kept is None else 1)


def ping() -> None:
    """Measures round trips."""
    z = package()
    opened = session(z)
    answers = opened.declare_subscriber("bench/pong")
    out = opened.declare_publisher("bench/ping", congestion_control=z.CongestionControl.BLOCK)
    payload = bytes(int(ORDERS["size"]))
    clock = time.perf_counter
    say(ready=True)
    for order in orders():
        times: list[float] = []
        for _ in range(int(order["count"])):
            start = clock()
            out.put(payload)
            answers.recv()
            times.append(clock() - start)
        times.sort()
        middle = times[len(times) // 2]
        say(p50=middle * 1e6, p99=times[int(len(times) * 0.99)] * 1e6, least=times[0] * 1e6)


def queryable() -> None:
    """Answers every question with some values."""
    opened = session(package())
    payload = bytes(64)
    replies = int(ORDERS["replies"])
    names = ["bench/q/one"] if replies == 1 else [f"bench/q/{i}" for i in range(replies)]

    def answer(query: Any) -> None:
        with query:
            for name in names:
                query.reply(name, payload)

    kept = opened.declare_queryable("bench/q/*", answer)
    say(ready=True)
    serve(lambda: 0 if kept is None else 1)


def asker() -> None:
    """Asks for a while, one question after the other."""
    opened = session(package())
    replies = int(ORDERS["replies"])
    selector = "bench/q/one" if replies == 1 else "bench/q/*"
    say(ready=True)
    for order in orders():
        gets = answers = 0
        start = time.perf_counter()
        end = start + float(order["seconds"])
        while time.perf_counter() < end:
            answers += sum(1 for reply in opened.get(selector) if reply.ok is not None)
            gets += 1
        took = time.perf_counter() - start
        say(gets=gets / took, replies=answers / took, complete=answers == gets * replies)


def opener() -> None:
    """Opens sessions one after the other, and keeps them."""
    start = time.perf_counter()
    z = package()
    imported = time.perf_counter() - start
    empty = resident()
    say(ready=True)
    held: list[Any] = []
    for order in orders():
        start = time.perf_counter()
        held.extend(session(z) for _ in range(int(order["count"])))
        took = time.perf_counter() - start
        say(
            rate=int(order["count"]) / took,
            imported=imported * 1e3,
            memory_empty=empty,
            memory=resident(),
        )


ROLES = {
    "router": router, "subscriber": subscriber, "publisher": publisher, "ping": ping,
    "pong": pong, "queryable": queryable, "asker": asker, "opener": opener, "recorder": recorder,
}  # fmt: skip

if __name__ == "__main__":
    ROLES[ORDERS["role"]]()
