"""A mesh of real routers in a simulated network: how it hears of a cut, and what that costs.

The network grows as networks do: two become four, four become eight, and all links between two
parts come up at once. Then a link is severed, and mended again. Told are the words and bytes of
link state on all links, the simulated time until the last router has computed its trees anew, and
what routers far away from the cut spent of the processor, from hearing to new trees.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from bench.scale.topologies import TOPOLOGIES, Edge
from zenlake.testing.network import Conditions, Host, Network
from zenlake.testing.wires import WireEnd
from zenlake.wire import Frame, Oam, read_batch
from zenlake.wire.link_state import LINK_STATE

#: So many routers have something declared, at most: all tables are in the memory of one machine.
SPEAKERS = 100


def resident() -> int:
    """The memory that this process holds, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Watch:
    """Notes what one router spends, and when it last computed its trees."""

    def __init__(self, host: Host) -> None:
        """Stand between the network and the router."""
        self.spent = 0.0
        self.when = 0.0
        self._host = host
        assert host.node.mesh is not None
        self._mesh = host.node.mesh
        self._trees = self._mesh.trees
        self._arrived, self._tick, self._ended = host.arrived, host._tick, host.ended
        host.arrived = self.arrived  # type: ignore[method-assign]
        host.ended = self.ended  # type: ignore[method-assign]
        host._tick = self.tick  # type: ignore[method-assign]

    def arrived(self, end: WireEnd, data: bytes) -> None:
        """Bytes came."""
        began = time.thread_time()
        self._arrived(end, data)
        self.spent += time.thread_time() - began

    def ended(self, end: WireEnd) -> None:
        """A link is gone."""
        began = time.thread_time()
        self._ended(end)
        self.spent += time.thread_time() - began

    def tick(self) -> None:
        """Time has passed."""
        began = time.thread_time()
        self._tick()
        self.spent += time.thread_time() - began
        if self._mesh.trees is not self._trees:
            self._trees = self._mesh.trees
            self.when = self._host.network.now


@dataclass(slots=True)
class News:
    """What a change made of the network."""

    messages: int
    """Words of link state, on all links."""
    octets: int
    """Their bytes, with all that was said beside them."""
    seconds: float
    """Until the last router had its new trees; simulated."""
    spent: float
    """Seconds of the processor, of a router far away: the median."""
    most: float
    """The most that a router far away spent."""


@dataclass(slots=True)
class Grown:
    """A mesh that was measured."""

    topology: str
    routers: int
    links: int
    memory: int
    """Bytes for each router, its sessions and what it knows of all others."""
    growing: float
    """Seconds of the processor until the whole network stood."""
    cut: News
    mended: News
    delivered: int
    """Of ten samples between routers chosen by chance: those that arrived, once each."""


def grow(count: int, edges: list[Edge], random: Random) -> tuple[Network, list[Host]]:
    """A network with all links up and everything said."""
    network = Network(random, Conditions(latency=0.005))
    settings: dict[str, Any] = {"max_sessions": 4096, "accept_pending": 4096}
    hosts = [network.node(f"r{number}", "router", **settings) for number in range(count)]
    for number, host in enumerate(hosts):
        if number % max(1, count // SPEAKERS) == 0:
            host.subscribe(f"site/{number}/**")
    level = 1
    waiting = list(edges)
    while waiting:
        now = [edge for edge in waiting if edge[0] >> level == edge[1] >> level]
        waiting = [edge for edge in waiting if edge[0] >> level != edge[1] >> level]
        for one, other in now:
            network.connect(hosts[one], hosts[other])
        if now:
            network.settle(quiet=0.3, within=600, alone=True)
        level += 1
    return network, hosts


def known(hosts: list[Host], edges: set[Edge]) -> bool:
    """Whether every router has exactly these links on its map."""
    names = {host.node.zid: number for number, host in enumerate(hosts)}
    for host in hosts:
        assert host.node.mesh is not None
        there = host.node.mesh.state.graph()
        found = {
            (min(names[one], names[other]), max(names[one], names[other]))
            for one, others in there.items()
            for other in others
            if one in there.get(other, ())
        }
        mine = names[host.node.zid]
        reach = _reached(mine, edges, len(hosts))
        if found != {edge for edge in edges if edge[0] in reach}:
            return False
    return True


def _reached(start: int, edges: set[Edge], count: int) -> set[int]:
    if len(edges) >= count:
        return set(range(count))  # no measured cut divides a network with a way around it
    near: dict[int, list[int]] = {}
    for one, other in edges:
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    seen, stack = {start}, [start]
    while stack:
        for other in near.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


def far_from(edge: Edge, edges: list[Edge], count: int) -> list[int]:
    """The half of the routers that are farthest from a link."""
    near: dict[int, list[int]] = {number: [] for number in range(count)}
    for one, other in edges:
        near[one].append(other)
        near[other].append(one)
    order, seen = list(edge), set(edge)
    for one in order:
        for other in near[one]:
            if other not in seen:
                seen.add(other)
                order.append(other)
    return order[len(order) // 2 :]


class Change:
    """What happens in a network from one moment until it is quiet again."""

    def __init__(self, network: Network, watches: list[Watch]) -> None:
        """From now on."""
        self.network = network
        self.watches = watches
        self.began = network.now
        self.batches: list[bytes] = []
        network.tap = lambda near, far, batch: self.batches.append(batch)
        for watch in watches:
            watch.spent, watch.when = 0.0, network.now

    def over(self, far: list[int]) -> News:
        """What came of it."""
        self.network.tap = None
        messages = octets = 0
        for batch in self.batches:
            size = int.from_bytes(batch[:2], "little")
            for message in read_batch(batch[2 : 2 + size]):
                if isinstance(message, Frame):
                    words = [
                        each
                        for each in message.messages
                        if isinstance(each, Oam) and each.id == LINK_STATE
                    ]
                    messages += len(words)
                    octets += len(batch) if words else 0
        spent = [self.watches[number].spent for number in far]
        ended = max(watch.when for watch in self.watches)
        seconds = ended - self.began
        return News(messages, octets, seconds, statistics.median(spent), max(spent))


def measure(topology: str, count: int, seed: int = 1) -> Grown:
    """Grow a mesh, sever a link of it, mend it."""
    random = Random(seed)
    edges = TOPOLOGIES[topology](count, random)
    gc.collect()
    before, began = resident(), time.process_time()
    network, hosts = grow(count, edges, random)
    growing = time.process_time() - began
    gc.collect()
    memory = (resident() - before) // count
    # A collection goes through the memory of all routers, and would be charged to one of them.
    gc.freeze()
    assert known(hosts, set(edges)), "the maps differ from the network"
    # The link that divides the numbers in two, as far as there is one.
    edge = min(edges, key=lambda edge: abs(edge[0] + edge[1] - count))
    far = far_from(edge, edges, count)
    watches = [Watch(host) for host in hosts]
    one, other = hosts[edge[0]], hosts[edge[1]]
    change = Change(network, watches)
    network.sever(one, other)
    network.settle(quiet=0.9, within=600, alone=True)
    cut = change.over(far)
    assert known(hosts, set(edges) - {edge}), "the maps differ from the network after the cut"
    change = Change(network, watches)
    network.mend(one, other)
    while not network.between(one, other):
        network.step()
    change.began = network.now
    network.settle(quiet=0.9, within=600, alone=True)
    mended = change.over(far)
    assert known(hosts, set(edges)), "the maps differ from the network after mending"
    return Grown(
        topology, count, len(edges), memory, growing, cut, mended, _deliver(network, hosts, random)
    )


def tell(topology: str, count: int, told: Connection) -> None:
    """Measure a mesh, and send what was found."""
    told.send(measure(topology, count))


def _deliver(network: Network, hosts: list[Host], random: Random) -> int:
    arrived = 0
    for number in range(10):
        near, far = random.choice(hosts), random.choice(hosts)
        heard = far.subscribe(f"probe/{number}")
        network.settle(quiet=0.3, alone=True)
        near.put(f"probe/{number}", b"here")
        network.settle(quiet=0.3, alone=True)
        arrived += heard.values() == [(f"probe/{number}", b"here")]
    return arrived
