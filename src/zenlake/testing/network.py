"""A network in a box: many nodes, one clock that jumps, and every kind of bad weather.

    >>> from zenlake.testing.network import Network
    >>> network = Network()
    >>> sun = network.node("sun")
    >>> earth = network.node("earth", connect=["sun"])
    >>> network.settle()
    >>> light = earth.subscribe("light/**")
    >>> network.settle()
    >>> sun.put("light/visible", b"warm")
    True
    >>> network.settle()
    >>> light.values()
    [('light/visible', b'warm')]

No socket is opened and no time passes: `run_until` plays what is due, in order, and jumps to the
next event. A run is the same every time for the same seed. Links delay, cut streams in pieces at
random, lose, repeat and reorder datagrams; they can be cut or fall silent, and the network can be
partitioned and healed. A `Stranger` is a link whose far end is the test itself, byte by byte.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from zenlake.node.node import Node
from zenlake.node.settings import MODES, NodeSettings
from zenlake.testing.host import Host
from zenlake.testing.recorders import Replier, ReplyRecorder, SampleRecorder, Statuses
from zenlake.testing.wires import Conditions, Stranger, WireEnd, WireLink

__all__ = [
    "Conditions",
    "Host",
    "Network",
    "Replier",
    "ReplyRecorder",
    "SampleRecorder",
    "Statuses",
    "Stranger",
    "WireLink",
]

#: What is not worth calling traffic: keep-alives on a stream and in a datagram.
_KEEP_ALIVES = (b"\x01\x00\x04", b"\x04")


class Network:
    """Nodes, the links between them, and their time.

    Args:
        random: where chance comes from; the same seed gives the same run.
        conditions: how links are, unless `weather` says otherwise for two nodes.
        refusals_take: how long it takes to learn that nobody answers at an endpoint.
    """

    def __init__(
        self,
        random: Random | None = None,
        conditions: Conditions | None = None,
        refusals_take: float = 0.001,
    ) -> None:
        self.now = 0.0
        self.random = random or Random(0)
        self.conditions = conditions or Conditions()
        self.refusals_take = refusals_take
        self.hosts: dict[str, Host] = {}
        self.links: list[WireLink] = []
        #: Told every batch that leaves a node: (from, to, batch).
        self.tap: Callable[[str, str, bytes], None] | None = None
        self.last_traffic = 0.0
        self._weather: dict[frozenset[str], Conditions] = {}
        self._groups: list[frozenset[str]] = []
        self._severed: set[frozenset[str]] = set()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._strangers = 0

    # ---------------------------------------------------------------------------- who is there

    def node(
        self,
        name: str,
        mode: str = "peer",
        *,
        connect: Sequence[str] = (),
        listen: bool | None = None,
        **settings: Any,
    ) -> Host:
        """Start a node.

        Args:
            name: what tests call it; it listens at `sim/<name>`.
            mode: `client`, `peer` or `router`.
            connect: the names of nodes to keep connected to; metadata (`b?prio=1-3`) may follow.
            listen: whether others may connect to it (not to a client, unless said).
            settings: anything of `NodeSettings`; without a `zid` it gets a random one.
        """
        if listen is None:
            listen = mode != "client"
        role = MODES[mode]
        settings.setdefault("zid", self.random.randbytes(15) + b"\x01")
        if role == MODES["router"]:
            settings.setdefault("autoconnect", 0)
        node = Node(
            NodeSettings(
                mode=role,
                connect=tuple(f"sim/{other}" for other in connect),
                # As others are told: an address of the network, for no other is dialled.
                locators=(f"tcp/{name}:1",) if listen else (),
                **settings,
            ),
            lambda: self.random.randbytes(8),
            self.random.random,
        )
        host = Host(self, name, node)
        self.hosts[name] = host
        node.start(self.now)
        host.flush()
        return host

    def stranger(self, to: Host, *, address: str = "", **conditions: Any) -> Stranger:
        """Connect the test itself to a node, from an address of its own if none is given."""
        self._strangers += 1
        stranger = Stranger(self, address or f"stranger-{self._strangers}")
        link = WireLink(self, stranger, to, replace(self.conditions, **conditions))
        self.links.append(link)
        stranger.link = link
        stranger.end, there = link.ends
        self._accept(to, there)
        return stranger

    def connect(self, near: Host, far: Host) -> None:
        """Have one node keep a connection to another, beside those it was started with."""
        near.node.now = self.now
        near.node.connect(far.endpoint, self.now)
        near.flush()

    def between(self, one: Host, other: Host) -> list[WireLink]:
        """The links between two nodes that are up."""
        names = {one.name, other.name}
        return [link for link in self.links if link.is_up and set(link.names) == names]

    # --------------------------------------------------------------------------------- weather

    def weather(self, one: str, other: str, conditions: Conditions) -> None:
        """Say how links between two nodes are, from their next connection on."""
        self._weather[frozenset((one, other))] = conditions

    def partition(self, *groups: Iterable[Host]) -> None:
        """Let nothing pass between groups; nodes in no group are a group of their own.

        Streams wait for the partition to heal, datagrams are lost, connections fail.
        """
        self._groups = [frozenset(host.name for host in group) for group in groups]

    def heal(self) -> None:
        """End the partition: what was held back arrives."""
        self._groups = []
        for link in self.links:
            for end in link.ends:
                while end.held:
                    self._arrive(end, end.held.popleft())

    def sever(self, one: Host, other: Host) -> None:
        """Cut the links between two nodes, and let no new ones come up before `mend`."""
        self._severed.add(frozenset((one.name, other.name)))
        for link in self.between(one, other):
            link.cut()

    def mend(self, one: Host, other: Host) -> None:
        """Let two nodes meet again that were severed, when one of them tries."""
        self._severed.discard(frozenset((one.name, other.name)))

    def crash(self, host: Host, silent: bool = False) -> None:
        """Let a node die without a word; `silent`: its links do not end, either."""
        host.alive = False
        self.hosts.pop(host.name, None)
        for end in list(host.ends):
            if silent:
                end.link.silence()
            else:
                self.close_end(end)
        host.ends.clear()

    def leave(self, host: Host) -> None:
        """Close a node in good order."""
        host.node.close(self.now)
        host.flush()
        host.alive = False
        self.hosts.pop(host.name, None)

    # ------------------------------------------------------------------------------------ time

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Have something called at a time."""
        self._count += 1
        heapq.heappush(self._events, (when, self._count, call))

    def flush(self) -> None:
        """Carry out what the nodes want now; the clock stands."""
        for host in list(self.hosts.values()):
            host.node.now = self.now
            host.flush()

    def step(self) -> bool:
        """Play the next event; False if there is none."""
        if not self._events:
            return False
        when, _, call = heapq.heappop(self._events)
        self.now = max(self.now, when)
        call()
        return True

    def run_until(self, when: float) -> None:
        """Play everything that happens up to a time."""
        self.flush()
        while self._events and self._events[0][0] <= when:
            self.step()
        self.now = max(self.now, when)
        for host in self.hosts.values():
            host.node.now = self.now

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.run_until(self.now + seconds)

    def settle(self, quiet: float = 0.5, within: float = 120.0, alone: bool = False) -> None:
        """Run until nothing but keep-alives has been said for `quiet` seconds.

        With `alone` no program acts meanwhile (by `at`), so only nodes that heard something are
        looked at: that is for networks of many nodes. Raises `TimeoutError` if the nodes are still
        talking after `within` seconds.
        """
        self.flush()
        limit = self.now + within
        self.last_traffic = max(self.last_traffic, self.now)
        while self.now < self.last_traffic + quiet:
            if self.now > limit:
                raise TimeoutError(f"the nodes are still talking after {within:g} s")
            if alone and self._events and self._events[0][0] < self.last_traffic + quiet:
                self.step()
                continue
            self.run_until(
                min(
                    self._events[0][0] if self._events else float("inf"),
                    self.last_traffic + quiet,
                )
            )

    # --------------------------------------------------------------------------- moving bytes

    def _apart(self, one: str, other: str) -> bool:
        if not self._groups:
            return False
        return self._group(one) != self._group(other)

    def _group(self, name: str) -> frozenset[str]:
        for group in self._groups:
            if name in group:
                return group
        return frozenset()

    def dial(self, host: Host, endpoint: str, attempt: Any) -> None:
        """Make the connection that a node wants, or tell it why not."""
        name = endpoint.removeprefix("sim/").partition("?")[0]
        name = name.removeprefix("tcp/").removesuffix(":1")

        def connect() -> None:
            target = self.hosts.get(name)
            if not host.alive:
                return
            if target is None or not target.node.settings.locators:
                host.node.failed(attempt, f"{endpoint}: connection refused", self.now)
            elif self._apart(host.name, name) or frozenset((host.name, name)) in self._severed:
                host.node.failed(attempt, f"{endpoint}: no route", self.now)
            else:
                self._join(host, target, attempt)
            host.flush()

        self.last_traffic = max(self.last_traffic, self.now)
        self.at(self.now + self.refusals_take, connect)

    def _join(self, host: Host, target: Host, attempt: Any) -> None:
        how = self._weather.get(frozenset((host.name, target.name)), self.conditions)
        link = WireLink(self, host, target, how)
        self.links.append(link)
        near, far = link.ends
        host.ends.append(near)
        near.neighbour = host.node.connected(
            attempt, host.name, target.endpoint, how.stream, how.mtu, self.now
        )
        self._accept(target, far)

    def _accept(self, host: Host, end: WireEnd) -> None:
        how = end.link.conditions
        if not host.node.sessions.admission.may_accept(end.other.owner.name):
            self.close_end(end)
            return
        host.ends.append(end)
        end.neighbour = host.node.accepted(
            host.endpoint, end.other.owner.name, how.stream, how.mtu, self.now
        )
        host.flush()

    def drain(self, end: WireEnd, take: Callable[[], bytes]) -> None:
        """Send what an outbox has, as much as the link takes."""
        how = end.link.conditions
        packets: list[bytes] = []
        while not how.window or end.other.under_way < how.window:
            batch = take()
            if not batch:
                break
            if self.tap is not None:
                self.tap(end.owner.name, end.other.owner.name, batch)
            if batch not in _KEEP_ALIVES:
                self.last_traffic = self.now
            if how.stream:
                packets.append(batch)
                end.other.under_way += len(batch)
            else:
                self.carry(end, batch)
        if packets:
            self.carry(end, b"".join(packets))

    def carry(self, end: WireEnd, data: bytes) -> None:
        """Bytes leave one end of a link."""
        how = end.link.conditions
        if end.closed or end.link.silent:
            return
        other = end.other
        if how.stream:
            for piece in self._pieces(data) if how.chunks else (data,):
                # A stream does not overtake itself.
                when = max(other.last_arrival, self.now + self._delay(how))
                other.last_arrival = when
                self._deliver(other, piece, when)
            return
        if self.random.random() < how.loss:
            return
        self._deliver(other, data, self.now + self._delay(how))
        if self.random.random() < how.repeat:
            self._deliver(other, data, self.now + self._delay(how))

    def _delay(self, how: Conditions) -> float:
        return how.latency + (self.random.random() * how.jitter if how.jitter else 0.0)

    def _pieces(self, data: bytes) -> list[bytes]:
        cuts = sorted(self.random.randrange(len(data) + 1) for _ in range(3))
        bounds = [0, *cuts, len(data)]
        pairs = itertools.pairwise(bounds)
        return [data[start:stop] for start, stop in pairs if stop > start]

    def _deliver(self, end: WireEnd, data: bytes | None, when: float) -> None:
        def arrive() -> None:
            if end.link.silent:
                return
            if end.held or self._apart(*end.link.names):
                if end.link.conditions.stream:
                    end.held.append(data)
                return
            self._arrive(end, data)

        self.at(when, arrive)

    def _arrive(self, end: WireEnd, data: bytes | None) -> None:
        if data is None:
            self.lose(end)
            return
        end.under_way = max(0, end.under_way - len(data))
        if end.closed:
            return
        end.owner.arrived(end, data)
        end.owner.flush()
        if end.link.conditions.window:
            end.other.owner.flush()

    def close_end(self, end: WireEnd) -> None:
        """One side closes its end: the other learns of it after what is under way."""
        if end.closed:
            return
        end.closed = True
        other = end.other
        if end.link.silent:
            return
        when = max(other.last_arrival, self.now + end.link.conditions.latency)
        other.last_arrival = when
        self._deliver(other, None, when)

    def lose(self, end: WireEnd) -> None:
        """An end learns that its link is gone."""
        if end.closed:
            return
        end.closed = True
        end.owner.ended(end)
        end.owner.flush()
