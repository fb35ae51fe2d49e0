"""`async for` of zenlake beside iteration over Eclipse Zenoh's FIFO: messages per second.

    PYTHONPATH=build/compiled python -m bench.macro.aio_sub --rounds 3 --seconds 2

Each round runs every contender once, in turn, against a publisher that waits where there is no
room, each in a process of its own over loopback TCP. What is timed is the subscriber alone, from
its first sample on. Eclipse's FIFO is fed once by Eclipse's own publisher, which is what its users
have, and once by zenlake's, which is faster. Machines are noisy: trust the ratios, not the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

#: How many samples pass between two looks at the clock.
GLANCE = 1000
KEY = "bench/aio"
#: What is subscribed to: that very key, or more. Eclipse Zenoh takes three times as long for more.
EXPR = os.environ.get("AIO_SUB_EXPR", KEY)


def configure(config: Any, **keys: object) -> Any:
    """Explicit endpoints, no scouting, and TCP even where memory could be shared."""
    keys = {
        "scouting/multicast/enabled": False,
        "listen/endpoints": [],
        "transport/shared_memory/enabled": False,
        **keys,
    }
    for name, value in keys.items():
        config.insert_json5(name, json.dumps(value))
    return config


class Clock:
    """Counts samples from the first one on, for a while."""

    def __init__(self, seconds: float) -> None:
        """Not started."""
        self.seconds = seconds
        self.start = self.cpu = 0.0
        self.n = 0

    def over(self) -> bool:
        """Whether it has been long enough; called once for `GLANCE` samples."""
        now = time.perf_counter()
        if not self.start:
            self.start, self.cpu = now, time.process_time()
            return False
        self.n += GLANCE
        return now - self.start >= self.seconds

    def say(self) -> None:
        """The result, as a line of JSON."""
        took = time.perf_counter() - self.start
        cpu = time.process_time() - self.cpu
        print(json.dumps({"rate": self.n / took, "cpu_us": cpu / self.n * 1e6}), flush=True)


async def iterate_async(endpoint: str, seconds: float) -> None:
    """A task that iterates over a subscriber of zenlake."""
    import zenlake.aio

    clock = Clock(seconds)
    config = configure(zenlake.Config(), **{"listen/endpoints": [endpoint]})
    async with (
        zenlake.aio.open(config) as session,
        session.declare_subscriber(EXPR) as subscriber,
    ):
        print("ready", flush=True)
        left = GLANCE
        async for _ in subscriber:
            left -= 1
            if not left:
                left = GLANCE
                if clock.over():
                    break
        clock.say()


def iterate_fifo(package: str, endpoint: str, seconds: float) -> None:
    """A thread that iterates over a FIFO, of either package."""
    z: Any = __import__(package)
    clock = Clock(seconds)
    with z.open(configure(z.Config(), **{"listen/endpoints": [endpoint]})) as session:
        subscriber = session.declare_subscriber(EXPR, z.handlers.FifoChannel(4096))
        print("ready", flush=True)
        left = GLANCE
        for _ in subscriber:
            left -= 1
            if not left:
                left = GLANCE
                if clock.over():
                    break
        clock.say()
        sys.stdout.flush()
        os._exit(0)


def publish(package: str, endpoint: str, size: int) -> None:
    """Put as fast as the subscriber takes, until this process is ended."""
    z: Any = __import__(package)
    payload = bytes(size)
    with z.open(configure(z.Config(), **{"connect/endpoints": [endpoint]})) as session:
        publisher = session.declare_publisher(KEY, congestion_control=z.CongestionControl.BLOCK)
        put = publisher.put
        while True:
            for _ in range(GLANCE):
                put(payload)


def role(name: str, endpoint: str, seconds: float, size: int) -> None:
    """Play one role."""
    match name:
        case "zenlake" | "zenoh":
            publish(name, endpoint, size)
        case "zenlake async for":
            asyncio.run(iterate_async(endpoint, seconds))
        case "zenlake async for, uvloop":
            import uvloop

            uvloop.run(iterate_async(endpoint, seconds))
        case "zenlake FIFO":
            iterate_fifo("zenlake", endpoint, seconds)
        case _:
            iterate_fifo("zenoh", endpoint, seconds)


ECLIPSE = "eclipse FIFO"
#: Every contender, and whose publisher feeds it.
CONTENDERS = (
    (ECLIPSE, "zenoh"),
    (ECLIPSE, "zenlake"),
    ("zenlake FIFO", "zenlake"),
    ("zenlake async for", "zenlake"),
    ("zenlake async for, uvloop", "zenlake"),
)


def measure(name: str, publisher: str, seconds: float, size: int) -> dict[str, float]:
    """One run of one contender."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"tcp/127.0.0.1:{free.getsockname()[1]}"
    order = [endpoint, str(seconds), str(size)]
    command = [sys.executable, "-W", "ignore", __file__, "--role"]
    with subprocess.Popen([*command, name, *order], stdout=subprocess.PIPE, text=True) as taking:
        assert taking.stdout is not None
        if not taking.stdout.readline():
            raise RuntimeError(f"'{name}' did not start")
        giving = subprocess.Popen([*command, publisher, *order], stderr=subprocess.DEVNULL)
        try:
            found: dict[str, float] = json.loads(taking.stdout.readline())
        finally:
            giving.kill()
            giving.wait()
    return found


def compare(rounds: int, seconds: float, size: int) -> dict[tuple[str, str], dict[str, float]]:
    """The medians of every contender, and their ratio to Eclipse's FIFO fed by its own kind."""
    runs: dict[tuple[str, str], list[dict[str, float]]] = {each: [] for each in CONTENDERS}
    for _ in range(rounds):
        for each in CONTENDERS:
            runs[each].append(measure(*each, seconds, size))
    medians = {
        each: {key: statistics.median(run[key] for run in many) for key in many[0]}
        for each, many in runs.items()
    }
    for figures in medians.values():
        figures["ratio"] = figures["rate"] / medians[CONTENDERS[0]]["rate"]
    return medians


def main() -> None:
    """Compare, and print a table."""
    if sys.argv[1:2] == ["--role"]:
        role(sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--expr", default=KEY, help=f"what is subscribed to ({KEY})")
    given = parser.parse_args()
    os.environ["AIO_SUB_EXPR"] = given.expr
    print(f"{'subscriber':28} {'publisher':10} {'messages/s':>12} {'CPU µs each':>12} {'×':>6}")
    for (name, publisher), figures in compare(given.rounds, given.seconds, given.size).items():
        rate, cpu, ratio = figures["rate"], figures["cpu_us"], figures["ratio"]
        print(f"{name:28} {publisher:10} {rate:12,.0f} {cpu:12.2f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
