"""HTTP under load, beside a starlette that does nothing and beside Eclipse's client.

    python -m bench.http [--seconds 60] [--others 15] [--rate 2000] [--streams 500] [--sockets 200]

Requests: one stored value is asked for, at a pace and then as fast as it goes; the same of a bare
starlette; the same question by Eclipse's own client over tcp. Readers: streams of events and
WebSockets, a tenth of each never reads, while samples are published; what the others receive, what
the router's memory does, and how long a put takes to reach an ordinary subscriber meanwhile.

It takes some three minutes, and ends with a verdict: whether the pace was kept, readers that read
got everything, others were slowed, and anything was left behind when all had gone.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from typing import Any

import psutil

import zenlake

CONNECTIONS = 32
PUBLISHED = 10
"""Samples a second while there are readers."""
GONE = 20.0
"""Seconds in which the router must have noticed that readers are gone."""
LEAKED = 50e6
"""Bytes that memory may have grown by between the first requests and the end, when all are gone."""
SLOWED = 3.0
"""How many times longer a put may take in the middle while a router serves readers."""


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def load(*arguments: object) -> dict[str, Any]:
    words = [str(one) for one in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "bench.http.load", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def shown(name: str, found: dict[str, Any]) -> None:
    numbers = ", ".join(
        f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}"
        for key, value in found.items()
    )
    print(f"{name:34} {numbers}", flush=True)


def until_open(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nothing listens on {port}")


def eclipse(bus: str, seconds: float) -> dict[str, Any]:
    """The same question by Eclipse's client, one after the other."""
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([bus]))
    config.insert_json5("scouting/multicast/enabled", "false")
    took: list[float] = []
    with zenoh.open(config) as session:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter()
            assert len(list(session.get("demo/a"))) == 1
            took.append(time.perf_counter() - began)
    took.sort()
    return {
        "requests": len(took),
        "per_second": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[int(len(took) * 0.99)] * 1e3,
    }


def heard(bus: str, seconds: float) -> dict[str, Any]:
    """How long a put of one client takes to reach another, through the router."""
    config = zenlake.Config.from_json5(
        json.dumps(
            {
                "mode": "client",
                "connect": {"endpoints": [bus]},
                "scouting": {"multicast": {"enabled": False}},
            }
        )
    )
    took: list[float] = []
    with zenlake.open(config) as there, zenlake.open(config) as here:
        arrived = threading.Event()
        with here.declare_subscriber("other/key", lambda _: arrived.set()):
            while not arrived.wait(0.05):  # until the other client knows of the subscriber
                there.put("other/key", b"x")
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                arrived.clear()
                began = time.perf_counter()
                there.put("other/key", b"x")
                if arrived.wait(5):
                    took.append(time.perf_counter() - began)
                time.sleep(0.01)
    took.sort()
    return {"p50_ms": took[len(took) // 2] * 1e3, "p99_ms": took[int(len(took) * 0.99)] * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.http")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--others", type=float, default=15.0, help="of all but the paced load")
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--sockets", type=int, default=200)
    chosen = parser.parse_args()
    paced: float = chosen.seconds
    seconds: float = chosen.others
    http, remote, bare = free(), free(), free()
    bus = f"tcp/127.0.0.1:{free()}"
    build = "compiled" if zenlake.compiled else "interpreted"
    print(f"zenlake {build}, {paced:g} s paced, {seconds:g} s each")
    with ExitStack() as stack:
        places = [f"127.0.0.1:{port}" for port in (http, remote)]
        router = stack.enter_context(running("bench.http.router", bus, *places))
        stack.enter_context(running("bench.http.bare", str(bare)))
        assert router.stdout is not None
        router.stdout.readline()
        until_open(bare)
        process = psutil.Process(router.pid)
        nothing = f"127.0.0.1:{bare}"
        asked = ("requests", places[0], "/demo/a")
        load(*asked, 0, min(3.0, seconds), CONNECTIONS)
        before = process.memory_info().rss
        pace = load(*asked, chosen.rate, paced, CONNECTIONS)
        shown(f"paced at {chosen.rate:g}/s", pace)
        fast = load(*asked, 0, seconds, CONNECTIONS)
        shown("as fast as it goes", fast)
        empty = load("requests", nothing, "/demo/a", 0, seconds, CONNECTIONS)
        shown("a starlette that does nothing", empty)
        print(f"{'ratio to it':34} {fast['per_second'] / empty['per_second']:.2f}")
        single = load(*asked, 0, seconds / 2, 1)
        shown("one after the other, HTTP", single)
        other = eclipse(bus, seconds / 2)
        shown("one after the other, Eclipse's get", other)
        print(f"{'ratio to it':34} {single['per_second'] / other['per_second']:.2f}")
        grown = process.memory_info().rss - before
        print(f"{'memory grew by':34} {grown / 1e6:.1f} MB")
        found = readers(places, bus, process, seconds, chosen.streams, chosen.sockets)
        left = left_behind(places[0])
        grown = process.memory_info().rss - before
        print(f"{'memory grew by':34} {grown / 1e6:.1f} MB when all have gone")
        print("verdict:")
        for good, words in (
            (pace["per_second"] > 0.98 * chosen.rate and not pace["wrong"], "the pace was kept"),
            (found["share"] > 0.999, "who read got every sample"),
            (found["slowed"] < SLOWED, f"a put took {found['slowed']:.1f} times as long"),
            (not left, f"left behind: {left or 'nothing'}"),
            (grown < LEAKED, "no leak"),
        ):
            print(f"  {'yes' if good else 'NO '} {words}")


def left_behind(place: str) -> dict[str, int]:
    """Streams and clients that the router still has, when it had time to see them go."""
    deadline = time.monotonic() + GONE
    while True:
        web = HTTPConnection(place, timeout=10)
        web.request("GET", "/status")
        services: dict[str, Any] = json.load(web.getresponse())["services"]
        web.close()
        streams = sum(v["open"] for k, v in services.items() if k.endswith("rest/streams"))
        clients = sum("/clients/" in key for key in services)
        left = {"streams": streams, "clients": clients}
        if not any(left.values()):
            return {}
        if time.monotonic() > deadline:
            return left
        time.sleep(0.5)


def readers(
    places: list[str],
    bus: str,
    process: psutil.Process,
    seconds: float,
    streams: int,
    sockets: int,
) -> dict[str, float]:
    """Streams and WebSockets with slow ones among them; what share came, how puts were slowed."""
    alone = heard(bus, min(5.0, seconds))
    shown("a put to a subscriber, alone", alone)
    config = zenlake.Config.from_json5(
        json.dumps(
            {
                "mode": "client",
                "connect": {"endpoints": [bus]},
                "scouting": {"multicast": {"enabled": False}},
            }
        )
    )
    before = process.memory_info().rss
    shares: list[float] = []
    with ExitStack() as stack:
        open_for = seconds + 15
        loads = [
            stack.enter_context(
                running("bench.http.load", kind, place, "load/key", many, slow, str(open_for))
            )
            for kind, place, many, slow in (
                ("streams", places[0], str(streams), str(streams // 10)),
                ("sockets", places[1], str(sockets), str(sockets // 10)),
            )
        ]
        for one in loads:
            assert one.stdout is not None
            one.stdout.readline()
        session = stack.enter_context(zenlake.open(config))
        ended = threading.Event()
        published = 0

        def publish() -> None:
            nonlocal published
            while not ended.wait(1 / PUBLISHED):
                session.put("load/key", bytes(200))
                published += 1

        thread = threading.Thread(target=publish)
        thread.start()
        busy = heard(bus, seconds)
        shown("a put to a subscriber, under load", busy)
        ended.set()
        thread.join()
        for one, name, many in zip(
            loads, ("streams", "WebSockets"), (streams, sockets), strict=True
        ):
            assert one.stdout is not None
            found = json.loads(one.stdout.readline())
            share = found["received"] / (published * found["readers"])
            shares.append(share)
            print(f"{many} {name}, {many // 10} never read: {found['received']} of "
                  f"{published * found['readers']} samples ({share:.3f})")  # fmt: skip
    grown = process.memory_info().rss - before
    print(f"{'memory grew by':34} {grown / 1e6:.1f} MB while they were open")
    return {"share": min(shares), "slowed": busy["p50_ms"] / alone["p50_ms"]}


if __name__ == "__main__":
    main()
