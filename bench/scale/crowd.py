"""Many clients of a few routers: what each client costs its router, and all others.

Every client is a real client until it has opened its session and subscribed; then only its router
remembers it, so that a hundred thousand of them fit where routers are measured, and no simulated
time passes in which they would have to say that they are alive.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from random import Random
from typing import Any

from bench.scale.mesh import resident
from zenlake.errors import LinkError
from zenlake.node.node import Node
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.node.settings import MODES, NodeSettings
from zenlake.testing.network import Conditions, Host, Network, SampleRecorder

ROUTERS = 4
#: Clients that come before their routers speak with each other.
WAVE = 50


@dataclass(slots=True)
class Crowd:
    """So many clients, and what the last of them cost."""

    clients: int
    memory: float
    """Bytes in one router for each client of all routers."""
    opening: float
    """Seconds of the processor of a router for a client that opens a session and subscribes."""
    elsewhere: float
    """Seconds of the processor of a router to which another one has told of a client."""
    leaving: float
    """Seconds of the processor of a router for a client that hangs up."""


class Clients:
    """A network of routers whose clients become more and more."""

    def __init__(self, random: Random) -> None:
        """Routers in a ring, without clients."""
        self.random = random
        self.network = Network(random, Conditions(latency=0.0001))
        settings: dict[str, Any] = {"max_sessions": 1 << 20, "accept_pending": 1 << 20}
        self.routers = [
            self.network.node(f"r{number}", "router", **settings) for number in range(ROUTERS)
        ]
        for number, router in enumerate(self.routers):
            self.network.connect(router, self.routers[(number + 1) % ROUTERS])
        self.network.settle()
        gc.collect()
        self.before = resident()
        self.count = 0
        self.last: list[tuple[Host, Neighbour]] = []

    def grow(self, count: int) -> Crowd:
        """Have so many clients in all."""
        opening: list[float] = []
        elsewhere: list[float] = []
        while self.count < count:
            for _ in range(min(WAVE, count - self.count)):
                opening.append(self._come())
            elsewhere.append(self._spread())
        gc.collect()
        memory = (resident() - self.before) / ROUTERS / self.count
        tail = opening[-len(opening) // 2 :]
        far = elsewhere[-len(elsewhere) // 2 :]
        leaving = self._leave()
        # Each router hears of the clients of all others.
        share = WAVE * (ROUTERS - 1)
        return Crowd(count, memory, sum(tail) / len(tail), sum(far) / len(far) / share, leaving)

    def _come(self) -> float:
        """A client opens a session and subscribes; what its router spent."""
        network, now = self.network, self.network.now
        router = self.routers[self.count % ROUTERS]
        name = f"10.{self.count >> 16}.{self.count >> 8 & 255}.{self.count & 255}:7000"
        zid = self.random.randbytes(15) + b"\x01"
        client = Node(
            NodeSettings(mode=MODES["client"], zid=zid, connect=(router.endpoint,)),
            lambda: self.random.randbytes(8),
            self.random.random,
        )
        client.start(now)
        (attempt,) = client.attempts(now)
        mine = client.connected(attempt, name, router.endpoint, True, 65535, now)
        began = time.thread_time()
        assert router.node.sessions.admission.may_accept(name), f"no client {self.count}"
        theirs = router.node.accepted(router.endpoint, name, True, 65535, now)
        spent = time.thread_time() - began
        spent += self._speak(client, mine, router.node, theirs)
        client.local.subscribe(f"robot/{self.count}/command", SampleRecorder(), 2)
        spent += self._speak(client, mine, router.node, theirs)
        assert zid in router.node.by_zid, "the client is not there"
        self.count += 1
        self.last = [*self.last[-99:], (router, theirs)]
        assert network.now == now
        return spent

    def _speak(self, client: Node, mine: Neighbour, router: Node, theirs: Neighbour) -> float:
        """Carry bytes until both are silent; what the router spent."""
        spent = 0.0
        now = self.network.now
        assert mine.unicast is not None
        assert theirs.unicast is not None
        while True:
            there, back = _all(mine), b""
            began = time.thread_time()
            if there:
                router.receive(theirs, there, now)
            back = _all(theirs)
            spent += time.thread_time() - began
            if back:
                client.receive(mine, back, now)
            elif not there:
                return spent

    def _spread(self) -> float:
        """Let the routers tell each other; what they spent, each."""
        began = time.thread_time()
        for router in self.routers:
            router.flush()
        network = self.network
        until = network.now + 0.01
        while network._events and network._events[0][0] <= until:
            network.step()
        return (time.thread_time() - began) / ROUTERS

    def _leave(self) -> float:
        """The last clients hang up; what their routers spent for each."""
        began = time.thread_time()
        for router, neighbour in self.last:
            router.node.lost(neighbour, LinkError("gone"), self.network.now)
        spent = (time.thread_time() - began) / len(self.last)
        self.count -= len(self.last)
        self.last = []
        self._spread()
        return spent


def grow_to(sizes: list[int], told: Connection) -> None:
    """Measure more and more clients, and send what was found of each size."""
    clients = Clients(Random(1))
    for size in sizes:
        told.send(clients.grow(size))


def _all(neighbour: Neighbour) -> bytes:
    """All that a side has to say."""
    assert neighbour.unicast is not None
    parts: list[bytes] = []
    while batch := neighbour.unicast.outbox.take():
        parts.append(batch)
    return b"".join(parts)
