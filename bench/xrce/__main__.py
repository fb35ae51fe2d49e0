"""The paper's claims, each beside what is measured here.

python -m bench.xrce            # all of it, some 30 seconds
python -m bench.xrce wire       # one part: wire, mtu, lines, speed, loss, memory
"""

from __future__ import annotations

import json
import socket
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import zenlake
from tests.xrce.world import World
from tests.xrce_io.lossy import Relay
from zenlake import xrce
from zenlake.config import Config
from zenlake.engine.loop import shared_loop
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce_io.brokering import RunningBroker

#: What the C program of 2018 that the paper counts consists of: zhe.c, zhe-pack.c, zhe-unpack.c.
CORE = (
    "batches", "channel", "conduit", "fragments", "packing", "options", "outgoing", "session",
    "tables", "stores", "member", "routing", "broker", "client", "names", "selections", "framing",
    "markers", "properties", "outside", "group",
)  # fmt: skip


def wire() -> dict[str, Any]:
    sample = xrce.StreamData(sn=5, id=10, payload=b"A")
    print(f"overhead of a sample      claim 4 bytes      {len(xrce.write(sample)) - 1} bytes")
    print("   n   claim (3+n)/n   with the count byte (4+n)/n   measured")
    found = {}
    for n in (1, 2, 4, 8, 16, 32, 64, 127):
        batch = xrce.BatchedData(sn=5, id=10, payloads=(b"x" * 8,) * n)
        each = (len(xrce.write(batch)) - 8 * n) / n
        found[n] = each
        print(f"{n:4}   {(3 + n) / n:13.3f}   {(4 + n) / n:27.3f}   {each:8.3f}")
    return {"stream": len(xrce.write(sample)) - 1, "batched": found}


def mtu() -> dict[str, Any]:
    """The smallest packet with which a device opens, declares, publishes, hears and lives."""
    for size in range(8, 30):
        world = World(mtu=size, lease=10)
        tiny: dict[str, Any] = {"mtu": size, "conduits": 1, "lease": 10, "bits": 7}
        try:
            a, b = world.device("a", **tiny), world.device("b", **tiny)
            publisher = a.publisher("", rid=2)
            b.subscriber("", rid=2)
            assert a.put(publisher, b"x")
            assert b.taken() == [("", b"x")]
            world.run(3)
            assert a.open
            assert max(a.largest, b.largest) <= size
        except (AssertionError, zenlake.ZError):
            continue
        print(f"smallest MTU              claim 20 bytes     {size} bytes (pids of 1 and 8 bytes)")
        return {"mtu": size}
    return {}


def lines() -> dict[str, Any]:
    """Lines of the protocol core that are neither blank nor comment nor docstring."""
    folder = Path(xrce.__file__).parent
    count = 0
    for name in CORE:
        inside = False
        for line in (folder / f"{name}.py").read_text("utf-8").splitlines():
            text = line.strip()
            if inside:
                inside = not text.endswith('"""')
            elif text.startswith('"""'):
                inside = not (text.endswith('"""') and len(text) > 3)
            elif text and not text.startswith("#"):
                count += 1
    print(f"lines of the core         claim 2500 of C    {count} of Python, without the codec")
    return {"lines": count}


@dataclass(frozen=True)
class Way:
    """One way from a program to another, and what is done to send and to hear on it."""

    name: str
    put: Callable[[bytes], object]
    take: Callable[[], object]

    def timed(self, count: int) -> tuple[float, float]:
        """Messages in a second, and microseconds of this process for each."""
        put, take, payload = self.put, self.take, b"x" * 8
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            put(payload)
        for _ in range(count):
            take()
        return count / (time.perf_counter() - began), (time.process_time() - cpu) / count * 1e6


@contextmanager
def _of_2018(place: str, alone: bool) -> Iterator[Way]:
    """Publisher, broker and subscriber; `alone`: each sample a StreamData, as peers of 2018 do."""
    with xrce.open(place) as one, xrce.open(place) as other:
        samples = other.subscriber("/x")
        publisher = one.publisher("/x")
        publisher.wait()
        if alone:
            one._inner.client.session.habits.complete = False
        name = f"2018 {place[:3]}, {'StreamData' if alone else 'batched'}"
        yield Way(name, publisher.put, partial(samples.recv, 60))


@contextmanager
def _of_1x(count: int) -> Iterator[Way]:
    """Publisher, router and subscriber of Zenoh 1.x over TCP."""
    config = Config()
    for key, value in (
        ("mode", '"router"'),
        ("listen/endpoints", '["tcp/127.0.0.1:0"]'),
        ("scouting/multicast/enabled", "false"),
    ):
        config.insert_json5(key, value)
    with zenlake.open(config) as router:
        near = Config()
        near.insert_json5("mode", '"client"')
        place = next(iter(router.runtime.node.settings.locators))
        near.insert_json5("connect/endpoints", json.dumps([place]))
        near.insert_json5("scouting/multicast/enabled", "false")
        with zenlake.open(near) as a, zenlake.open(near) as b:
            subscriber = b.declare_subscriber("x", zenlake.handlers.FifoChannel(count))
            publisher = a.declare_publisher("x", congestion_control=zenlake.CongestionControl.BLOCK)
            while not publisher.matching_status.matching:
                time.sleep(0.01)
            yield Way("1.x tcp", publisher.put, subscriber.recv)


def _floor(count: int) -> float:
    """Microseconds of this process for a sample where packets only pass through bare sockets."""
    packet = bytes(1400)
    packets = count * 9 // len(packet)
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
    cpu = time.process_time()
    for _ in range(packets):
        for near, far in pairs:  # to the broker, and from it
            near.send(packet)
            far.recv(2048)
    used = time.process_time() - cpu
    for near, far in pairs:
        near.close()
        far.close()
    return used / count * 1e6


def speed(count: int = 60_000, rounds: int = 3) -> dict[str, Any]:
    """Samples of 8 bytes from one program to another, and the same on 1.x in the same run.

    Publisher, broker (or router) and subscriber are three ends of real sockets in one process, so
    its CPU is what all of them take; the medians of some rounds, which take turns.
    """
    taken: dict[str, list[tuple[float, float]]] = {}
    # On the loop thread that all nodes of 1.x share, too: as many threads on both sides.
    broker = RunningBroker(BrokerOptions(b"brokerid"), thread=shared_loop())
    broker.start(["udp/127.0.0.1:0", "tcp/127.0.0.1:0"])
    udp, tcp = broker.locators()
    for _ in range(rounds):
        for opened in (
            _of_2018(udp, False), _of_2018(tcp, False), _of_2018(udp, True), _of_2018(tcp, True),
            _of_1x(count),
        ):  # fmt: skip
            with opened as way:
                taken.setdefault(way.name, []).append(way.timed(count))
    broker.close()
    found = {
        name: (median(rate for rate, _ in times), median(cpu for _, cpu in times))
        for name, times in taken.items()
    }
    base = found["1.x tcp"]
    print(f"bare sockets for the same packets {_floor(count):27.2f} µs of CPU for a sample")
    for name, (rate, cpu) in found.items():
        print(
            f"{name:22} {rate:9.0f} msg/s = {rate / base[0]:5.2f} × 1.x   "
            f"{cpu:6.2f} µs of CPU for each = 1.x / {cpu / base[1]:.2f}"
        )
    return {name: {"rate": rate, "cpu_us": cpu} for name, (rate, cpu) in found.items()}


def loss(count: int = 2_000) -> dict[str, Any]:
    """Goodput of the reliable channel through a relay that loses datagrams each way."""
    found = {}
    broker = RunningBroker(BrokerOptions(b"brokerid"))
    broker.start(["udp/127.0.0.1:0", "tcp/127.0.0.1:0"])
    udp, tcp = broker.locators()
    for share in (0.0, 0.05, 0.2):
        with (
            Relay(udp, share) as relay,
            xrce.open(tcp) as other,
            xrce.open(relay.place, timeout=20) as one,
        ):
            samples = other.subscriber("/x")
            publisher = one.publisher("/x")
            publisher.wait(30)
            began = time.perf_counter()
            for _ in range(count):
                publisher.put(b"x" * 64)
            for _ in range(count):
                samples.recv(60)
            rate = count / (time.perf_counter() - began)
        found[f"{share:.0%}"] = rate
        print(f"goodput at {share:4.0%} loss each way   {rate:8.0f} msg/s of 64 bytes, none lost")
    broker.close()
    return found


def memory(count: int = 1000) -> dict[str, Any]:
    world = World()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for i in range(count):
        port = world.broker.connected(i, False)
        told = xrce.Open(version=1, pid=b"%d" % i, lease=0, locators=())
        world.broker.received(port, xrce.write(told), world.now)
        declared = (
            xrce.Resource(rid=2, uri=f"/sensor/{i}"), xrce.Publisher(rid=2),
            xrce.Commit(commit_id=0),
        )  # fmt: skip
        world.broker.received(
            port, xrce.write(xrce.Declare(sn=0, declarations=declared)), world.now
        )
        world.broker.flush(world.now)
        port.out.clear()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    each = (after - before) / count / 1024
    print(f"memory of a session       claim a few kB     {each:.1f} kB at the broker")
    return {"kb": each}


PARTS = {
    "wire": wire, "mtu": mtu, "lines": lines, "speed": speed, "loss": loss, "memory": memory,
}  # fmt: skip


if __name__ == "__main__":
    print("compiled" if zenlake.compiled else "interpreted")
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
