"""The broker of the 2018 protocol between two honest devices, and devices that say anything.

A stranger has a session that numbers, acknowledges and cuts what it says as it should, so that it
is heard; what it says are declarations, samples, pulls and transactions with numbers from a small
range, in the order in which chance draws them. Some packets are damaged, lost or said twice.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from tools import fuzz
from zenlake.errors import DecodeError, EncodeError
from zenlake.xrce.broker import Broker, Port
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.client import Client, Written
from zenlake.xrce.codec import (
    BatchedData,
    Commit,
    Declare,
    ForgetPublisher,
    ForgetResource,
    ForgetSelection,
    ForgetSubscriber,
    Property,
    Publisher,
    Pull,
    Resource,
    Selection,
    StreamData,
    Subscriber,
    WriteData,
)
from zenlake.xrce.framing import Deframer, frame
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.session import OPEN
from zenlake.xrce.tables import PULL

#: How many steps a device lives, and how many messages it says in each.
LIFE = 300
TOGETHER = 12
#: Seconds of silence after which nothing of a device is left, unless it asked for more.
SILENCE = 300.0
NAMES = (
    "/a", "/a/b", "/a/*", "/a/**", "/**", "//a", "zenoh://a/b", "/k?y", "/a#persistent",
    "", "a", "//", "/é/ü", "/" + "x/" * 60, "/a#transient", "/@/x", "/a\x00b",
)  # fmt: skip
QUERIES = ("/a/*?{v >= 3}", "/a?{", "/a/**", "/a?{x == 'y'}[b]#c", "")


class DeviceEnd:
    """A device with its link to the broker."""

    def __init__(
        self, broker: Broker, name: bytes, stream: bool, now: float, lease: int = 100
    ) -> None:
        """It opens a session; `lease` in tenths of a second, 0: for ever."""
        self.broker = broker
        self.stream = stream
        self.client = Client.make(SessionOptions(name, lossless=stream, lease=lease))
        self.port: Port = broker.connected(name, stream, 0 if stream else 1400)
        self.deframer = Deframer()
        self.heard: list[bytes] = []
        self.client.session.open(now)

    def say(self, packet: bytes, now: float) -> None:
        """Send a packet; an empty one cannot be framed, and its frame is sent as it would be."""
        framed = packet
        if self.stream:
            framed = frame(packet) if packet else b"\x00"
        self.broker.received(self.port, framed, now)

    def listen(self, now: float) -> bool:
        """Take what the broker says; whether it said anything."""
        out, self.port.out = self.port.out, []
        for data in out:
            for packet in self.deframer.feed(data) if self.stream else [data]:
                self.client.receive(packet, now)
        return bool(out)

    def took(self, name: str, payload: bytes) -> None:
        """A sample came."""
        self.heard.append(payload)


class Devices:
    """A broker, honest devices, and strangers one after the other."""

    name = group = "2018"

    def __init__(self, chance: random.Random) -> None:
        """A broker without sockets."""
        self.chance = chance
        self.messages = 0
        self.lives = 0
        self.life = LIFE
        self.ends: Counter[str] = Counter()
        self.now = 0.0
        vectors = json.loads((fuzz.GOLDEN / "vectors-2018.json").read_text())["vectors"]
        self.packets = [bytes.fromhex(entry["hex"]) for entry in vectors]
        self.broker = Broker(BrokerOptions(b"broker", lease=0))
        self.honest = [
            DeviceEnd(self.broker, name, stream, self.now, 0)
            for name, stream in ((b"h1", True), (b"h2", False))
        ]
        self._exchange()
        speaker, hearer = self.honest
        rid, told = speaker.client.resource("/honest/word")
        self.publisher: Written
        self.publisher, more = speaker.client.publisher(rid)
        speaker.client.commit([*told, *more])
        rid, told = hearer.client.resource("/honest/word")
        _, more = hearer.client.subscriber(rid, hearer.took)
        hearer.client.commit([*told, *more])
        self._exchange()
        self._check_honest()
        self.before = self._left()

    def _exchange(self, *others: DeviceEnd) -> None:
        for _ in range(50):
            moved = False
            for device in (*self.honest, *others):
                for packet in device.client.session.packets(self.now):
                    device.say(packet, self.now)
                    moved = True
            self.broker.tick(self.now)
            self.broker.flush(self.now)
            for device in self.honest:
                moved = device.listen(self.now) or moved
            if not moved:
                return
        raise AssertionError("2018: does not come to rest")

    def round(self) -> None:
        """One device's life."""
        chance = self.chance
        self.lives += 1
        stream = chance.random() < 0.5
        name = b"s%d" % chance.randrange(4)
        device = DeviceEnd(self.broker, name, stream, self.now)
        for _ in range(self.life):
            session = device.client.session
            for _ in range(TOGETHER if session.state == OPEN else 0):
                reliable = chance.random() < 0.8
                message, conduit = self._message(reliable), chance.choice((0, 0, 0, 1, 4))
                try:
                    session.send(message, reliable, conduit)
                except (DecodeError, EncodeError):
                    # Its own side refuses what a damaged opening did not agree on.
                    self.ends["not agreed on"] += 1
                    continue
                self.messages += 1
            self._send(device)
            self.now += chance.choice((0.0, 0.01, 0.2))
            self.broker.tick(self.now)
            self.broker.flush(self.now)
            try:
                device.listen(self.now)
            except DecodeError:
                self.ends["unheard"] += 1  # the two do not agree any more on where packets begin
                break
            if device.port.closing or session.why:
                break
            if chance.random() < 0.05:
                self._check_honest()
        self.ends[device.client.session.why or "it left"] += 1
        self.broker.lost(device.port)
        if not stream and device.port.member is not None:
            device.client.session.close(self.now)
            for packet in device.client.session.packets(self.now):
                device.say(packet, self.now)
        self.now += SILENCE
        self._exchange()
        self._check_honest()
        self._end_endless()
        left = self._left()
        if left != self.before:
            raise AssertionError(f"2018: left behind: {self.before} became {left}")

    def _send(self, device: DeviceEnd) -> None:
        chance = self.chance
        for packet in device.client.session.packets(self.now):
            what = chance.random()
            data = bytearray(packet)
            if what < 0.01:
                chance.choice(fuzz.DAMAGES)(data, chance, self.packets)
            elif what < 0.02 and not device.stream:
                continue
            elif what < 0.03:
                device.say(bytes(data[:1400]), self.now)
            elif what < 0.035:
                data = bytearray(chance.choice(self.packets))
                self.messages += 1
            device.say(bytes(data[: 1400 if not device.stream else None]), self.now)

    def _message(self, reliable: bool) -> Any:
        chance = self.chance
        id = chance.randrange(1, 24)
        kind = chance.randrange(10)
        if kind < 4:
            made = [self._declaration() for _ in range(chance.randrange(1, 4))]
            if chance.random() < 0.3:
                made.append(Commit(commit_id=chance.randrange(8)))
            return Declare(sn=0, declarations=tuple(made))
        payload = chance.randbytes(chance.choice((0, 1, 20, 20, 300, 5000)))
        if kind < 6:
            return StreamData(reliable=reliable, sn=0, id=id, payload=payload)
        if kind == 6:
            few = tuple(chance.randbytes(4) for _ in range(chance.randrange(4)))
            return BatchedData(reliable=reliable, sn=0, id=id, payloads=few)
        if kind == 7:
            most = chance.choice((None, 0, 3))
            return Pull(final=chance.random() < 0.2, sn=0, id=id, max_samples=most)
        return WriteData(reliable=reliable, sn=0, resource=chance.choice(NAMES), payload=payload)

    def _declaration(self) -> Any:
        chance = self.chance
        id = chance.randrange(1, 24)
        kind = chance.randrange(9)
        some = (Property(id=chance.randrange(20), value=chance.randbytes(chance.randrange(6))),)
        properties = some if chance.random() < 0.2 else ()
        if kind < 2:
            return Resource(rid=id, uri=chance.choice(NAMES), properties=properties)
        if kind == 2:
            return Publisher(rid=id, properties=properties)
        if kind in (3, 4):
            mode = chance.randrange(1, 5)
            window = {"origin": chance.choice((0, 5)), "period": 100, "duration": 50}
            return Subscriber(
                id=id, mode=mode, properties=properties, **(window if mode > PULL else {})
            )
        if kind == 5:
            return Selection(sid=id, query=chance.choice(QUERIES), properties=properties)
        if kind == 6:
            return ForgetResource(rid=id)
        if kind == 7:
            return ForgetPublisher(id=id)
        return ForgetSubscriber(id=id) if chance.random() < 0.7 else ForgetSelection(sid=id)

    # ------------------------------------------------------------------------------- looking

    def _check_honest(self) -> None:
        speaker, hearer = self.honest
        hearer.heard.clear()
        word = b"word %d" % self.messages
        if not speaker.client.put(self.publisher, word):
            raise AssertionError("2018: an honest publisher found no subscriber, or no room")
        self._exchange()
        if hearer.heard.count(word) != 1:
            raise AssertionError(f"2018: an honest sample arrived {hearer.heard.count(word)} times")

    def _end_endless(self) -> None:
        """End sessions over datagrams that asked, in a damaged Open, to live longer than that."""
        honest = {device.client.session.options.pid for device in self.honest}
        for pid, member in list(self.broker.members.items()):
            lease = member.session.peer_lease / 10
            if pid not in honest and (not lease or lease > SILENCE / 2):
                self.broker._leave(member, "it asked for a long lease")

    def _left(self) -> dict[str, int]:
        broker = self.broker
        return {"sessions": len(broker.members), "ports": len(broker._ports)}
