"""Devices of the 2018 protocol in a simulated network, and the broker by which they are in it.

    >>> from zenlake.testing.devices import BrokerHost
    >>> from zenlake.testing.network import Network
    >>> network = Network()
    >>> router = network.node("router", mode="router")
    >>> program = network.node("program", mode="client", connect=["router"])
    >>> sensor = BrokerHost(network, router).device("sensor")
    >>> heard = program.subscribe("house/**")
    >>> network.settle()
    >>> sensor.write("/house/light", b"on")
    True
    >>> network.settle()
    >>> heard.values()
    [('house/light', b'on')]

The packets of devices take the network's links, in whatever weather; time is the network's.
"""

from __future__ import annotations

from zenlake.node.entities import SampleSink
from zenlake.node.sample import Sample
from zenlake.testing.network import Host, Network
from zenlake.testing.wires import Conditions, WireEnd, WireLink
from zenlake.xrce.broker import Broker, Port
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.client import PUSH, Client, Read, Written
from zenlake.xrce.framing import Deframer, frame
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.outside import Outside
from zenlake.xrce_io.translate import key_exprs

__all__ = ["BrokerHost", "Device"]

#: Datagrams between a device and its broker, unless a test wants other weather.
DATAGRAMS = Conditions(stream=False)


class BrokerHost:
    """A broker beside a node of the network: what its devices publish, the node publishes."""

    def __init__(self, network: Network, host: Host, mtu: int = 1400, lease: int = 100) -> None:
        """Nobody has come to it yet: see `device`. `lease`: tenths of a second, 0 for ever."""
        self.network = network
        self.host = host
        self.name = f"{host.name}'s broker"
        self.broker = Broker(BrokerOptions(b"broker", lease, mtu), _Node(self))
        self._ports: dict[WireEnd, Port] = {}
        self._ends: dict[Port, WireEnd] = {}
        self._scheduled = float("inf")

    def device(
        self, name: str, conditions: Conditions = DATAGRAMS, lease: int = 100, mtu: int = 1400
    ) -> Device:
        """A device with a link to this broker; its session opens as the network runs."""
        made = Device(self.network, name, conditions, lease, mtu)
        link = WireLink(self.network, made, self, conditions)
        made.end = link.ends[0]
        port = self.broker.connected(
            link.ends[1], conditions.stream, 0 if conditions.stream else mtu
        )
        self._ports[link.ends[1]] = port
        self._ends[port] = link.ends[1]
        made.client.session.open(self.network.now)
        made.flush()
        return made

    def arrived(self, end: WireEnd, data: bytes) -> None:
        """Bytes came from a device."""
        self.broker.received(self._ports[end], data, self.network.now)

    def ended(self, end: WireEnd) -> None:
        """The link of a device is gone."""
        self.broker.lost(self._ports[end])

    def flush(self) -> None:
        """Send what the broker says, and have its deadline kept."""
        network = self.network
        for port in self.broker.flush(network.now):
            out, port.out = port.out, []
            for data in out:
                _carry(network, self._ends[port], data)
        at = max(self.broker.deadline, network.now)
        if at < self._scheduled:
            self._scheduled = at
            network.at(at, self._tick)
        self.host.flush()

    def _tick(self) -> None:
        self._scheduled = float("inf")
        self.broker.tick(self.network.now)
        self.flush()


class _Node(Outside):
    """The outside of the broker: the node that it stands beside."""

    def __init__(self, owner: BrokerHost) -> None:
        self._owner = owner
        self._subscribers: dict[str, list[object]] = {}

    def published(
        self, path: str, payload: bytes, reliable: bool, conduit: int, durability: int,
        source: bytes, sn: int,
    ) -> None:  # fmt: skip
        self._owner.host.put(path, payload, qos=13 if reliable else 5)

    def wanted(self, path: str, wanted: bool) -> None:
        local = self._owner.host.node.local
        if wanted:
            sink = _Heard(self._owner)
            self._subscribers[path] = [local.subscribe(expr, sink, 1) for expr in key_exprs(path)]
        else:
            for subscriber in self._subscribers.pop(path, ()):
                local.unsubscribe(subscriber)  # type: ignore[arg-type]

    def publishing(self, path: str, publishing: bool) -> bool:
        return publishing  # a device of a test is always listened to


class _Heard(SampleSink):
    def __init__(self, owner: BrokerHost) -> None:
        self._owner = owner

    def push(self, sample: Sample) -> None:
        owner = self._owner
        now = owner.network.now
        payload = bytes(sample.payload)
        owner.broker.routing.inject(str(sample.key_expr), payload, True, 0, now)
        owner.network.at(now, owner.flush)


class Device:
    """A device: a client whose packets take a link of the network."""

    end: WireEnd

    def __init__(
        self, network: Network, name: str, conditions: Conditions, lease: int, mtu: int
    ) -> None:
        """Made by `BrokerHost.device`."""
        self.network = network
        self.name = name
        stream = conditions.stream
        self.client = Client.make(
            SessionOptions(
                name.encode()[:16], lease=lease, mtu=1 << 20 if stream else mtu, lossless=stream
            )
        )
        self.heard: list[tuple[str, bytes]] = []
        self._deframer = Deframer() if stream else None
        self._scheduled = float("inf")

    def publisher(self, uri: str) -> Written:
        """Declare a publisher; it is in force when the network has run."""
        rid, declarations = self.client.resource(uri)
        made, more = self.client.publisher(rid)
        self.client.commit([*declarations, *more])
        self.flush()
        return made

    def subscribe(self, uri: str, mode: int = PUSH) -> Read:
        """Declare a subscriber, whose samples are in `heard`."""
        rid, declarations = self.client.resource(uri)
        made, more = self.client.subscriber(rid, self._took, mode)
        self.client.commit([*declarations, *more])
        self.flush()
        return made

    def put(self, publisher: Written, payload: bytes) -> bool:
        """Publish a sample, if there is a subscriber."""
        sent = self.client.put(publisher, payload)
        self.flush()
        return sent

    def write(self, name: str, payload: bytes) -> bool:
        """Write a sample by name."""
        sent = self.client.write(name, payload)
        self.flush()
        return sent

    def _took(self, name: str, payload: bytes) -> None:
        self.heard.append((name, payload))

    def arrived(self, end: WireEnd, data: bytes) -> None:
        """Bytes came from the broker."""
        for packet in self._deframer.feed(data) if self._deframer is not None else (data,):
            self.client.receive(packet, self.network.now)

    def ended(self, end: WireEnd) -> None:
        """The link is gone."""
        self.client.session.fail(0, "the link was lost")

    def flush(self) -> None:
        """Send what the device says, and have its deadline kept."""
        network = self.network
        for packet in self.client.session.packets(network.now):
            _carry(network, self.end, packet if self._deframer is None else frame(packet))
        at = max(self.client.session.deadline, network.now)
        if at < self._scheduled:
            self._scheduled = at
            network.at(at, self._tick)

    def _tick(self) -> None:
        self._scheduled = float("inf")
        if self.client.session.deadline <= self.network.now:
            self.client.session.tick(self.network.now)
        self.flush()


def _carry(network: Network, end: WireEnd, data: bytes) -> None:
    if data[0] & 0x1F != 16:  # what is not worth calling traffic: keep-alives
        network.last_traffic = network.now
    network.carry(end, data)
