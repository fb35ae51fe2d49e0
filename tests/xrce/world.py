"""A broker and clients without sockets: packets go at once, and time is what a test says."""

from __future__ import annotations

from typing import Any

from zenlake import xrce
from zenlake.xrce.broker import Broker, Port
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.client import PUSH, Client, Read, Written
from zenlake.xrce.framing import Deframer, frame
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.outside import Outside, Values
from zenlake.xrce.session import OPEN


class Device:
    """A client with its link to the broker."""

    def __init__(self, world: World, name: str, stream: bool, options: dict[str, Any]) -> None:
        self.world = world
        mtu = options.get("mtu", 1400)
        self.client = Client.make(SessionOptions(name.encode(), lossless=stream, **options))
        self.port = world.broker.connected(name, stream, 0 if stream else mtu)
        self.deframer = Deframer()
        self.asleep = False
        self.packets: list[bytes] = []
        self.got: list[tuple[str, bytes]] = []
        self.client.session.open(world.now)

    @property
    def largest(self) -> int:
        return max(map(len, self.packets))

    def _took(self, name: str, payload: bytes) -> None:
        self.got.append((name, payload))

    def publisher(self, uri: str, rid: int = 0, reliable: bool = True) -> Written:
        id, told = self.client.resource(uri, rid) if uri else (rid, [])
        made, more = self.client.publisher(id, reliable)
        self.commit([*told, *more])
        return made

    def subscriber(
        self, uri: str, mode: int = PUSH, rid: int = 0, window: tuple[int, int, int] = (0, 0, 0)
    ) -> Read:
        id, told = self.client.resource(uri, rid) if uri else (rid, [])
        made, more = self.client.subscriber(id, self._took, mode, window=window)
        self.commit([*told, *more])
        return made

    def selection(self, query: str, mode: int = PUSH, parameters: tuple[str, ...] = ()) -> Read:
        sid, told = self.client.selection(query, parameters)
        made, more = self.client.subscriber(sid, self._took, mode)
        self.commit([*told, *more])
        return made

    def commit(self, declarations: list[Any]) -> None:
        pending = self.client.commit(declarations)
        self.world.run()
        assert pending.done
        pending.check()

    def put(self, publisher: Written, payload: bytes) -> bool:
        sent = self.client.put(publisher, payload)
        self.world.run()
        return sent

    def write(self, name: str, payload: bytes, reliable: bool = True) -> None:
        assert self.client.write(name, payload, reliable)
        self.world.run()

    def pull(self, one: Read, most: int | None = None, final: bool = False) -> list[bytes]:
        before = len(self.got)
        assert self.client.pull(one, most, final)
        self.world.run()
        return [payload for _, payload in self.got[before:]]

    def taken(self) -> list[tuple[str, bytes]]:
        found, self.got = self.got, []
        return found

    @property
    def open(self) -> bool:
        return self.client.session.state == OPEN


class World:
    """A broker and everybody who speaks with it."""

    def __init__(
        self, outside: Outside | None = None, values: Values | None = None, **options: Any
    ) -> None:
        self.now = 100.0
        self.broker = Broker(BrokerOptions(b"brokerid", **options), outside, values)
        self.devices: list[Device] = []
        self.strangers: dict[Port, list[xrce.XrceMessage]] = {}

    def device(self, name: str, stream: bool = False, **options: Any) -> Device:
        made = Device(self, name, stream, options)
        self.devices.append(made)
        self.run()
        assert made.open, made.client.session.why
        return made

    def stranger(self, data: bytes, stream: bool = False, port: Port | None = None) -> list[Any]:
        """Somebody sends bytes; gives the answers."""
        port = port or self.broker.connected("stranger", stream)
        self.broker.received(port, frame(data) if stream else data, self.now)
        self.run()
        out, port.out = port.out, []
        if stream:
            deframer = Deframer()
            out = [packet for data in out for packet in deframer.feed(data)]
        return [message for packet in out for message in xrce.read_packet(packet)]

    def _exchange(self) -> bool:
        moved = False
        for device in self.devices:
            if device.asleep:
                continue
            for packet in device.client.session.packets(self.now):
                moved = True
                device.packets.append(packet)
                data = frame(packet) if device.port.stream else packet
                self.broker.received(device.port, data, self.now)
        self.broker.flush(self.now)
        for device in self.devices:
            if device.asleep:
                continue
            out, device.port.out = device.port.out, []
            for data in out:
                moved = True
                for packet in device.deframer.feed(data) if device.port.stream else [data]:
                    device.packets.append(packet)
                    device.client.receive(packet, self.now)
        return moved

    def run(self, seconds: float = 0.0) -> None:
        """Let time pass, in steps of a hundredth of a second at most."""
        until = self.now + seconds
        while True:
            while self._exchange():
                pass
            if self.now >= until:
                return
            self.now = min(until, self.now + 0.01)
            self.broker.tick(self.now)
            for device in self.devices:
                device.client.session.tick(self.now)
