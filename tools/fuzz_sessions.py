"""Speaks to nodes in every role, in sessions that are open, and lies: nothing may come out of it.

    python tools/fuzz_sessions.py --seconds 60
    python tools/fuzz_sessions.py --seed 7 --messages 10000000

Against routers, peers and clients stand strangers that are routers, peers and clients: they
declare, undeclare, ask, answer, publish, speak of routers, send fragments, in words that are right,
nearly right, or damaged. The broker of the 2018 protocol, the layer of WebSockets and HTTP get the
same.
A stranger that was cut comes again. Whatever is not a refusal that the program foresaw is a
failure, and so is an honest sample that does not arrive.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))


from zenlake.links.link import OnData, OnLost, UnicastLink
from zenlake.links.ws import WebSocketLink
from zenlake.linkstate import write_entries
from zenlake.testing.network import Network, Stranger
from zenlake.wire import (
    Declare,
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Del,
    Err,
    Fragment,
    Frame,
    InitAck,
    Interest,
    KeepAlive,
    KeyExt,
    LinkState,
    Message,
    OpenSyn,
    Push,
    Put,
    Query,
    Reply,
    Request,
    Response,
    ResponseFinal,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
    read_batch,
    write,
)
from zenlake.xrce.broker import Broker
from zenlake.xrce.client import Client
from zenlake.xrce.framing import frame
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.outside import BrokerOptions

#: The damages are those of the other tool, which lies beside this one.
fuzz: Any = importlib.import_module("fuzz")
HttpRequests: Any = importlib.import_module("fuzz_http").HttpRequests

ROLES = ("router", "peer", "client")
KEYS = ("a", "a/b", "a/*", "a/**", "**", "a/$*b", "@/x", "k/" * 40 + "z", "", "a//b", "é/ü", "*/b")
#: How many messages a stranger says before it leaves.
LIFE = 2000


def some_message(chance: random.Random) -> Message:
    """A message as a neighbour might say it."""
    id, key = chance.randrange(6), chance.choice(KEYS)
    scope = chance.choice((0, 0, 0, 1, 2, 9))
    mine = chance.random() < 0.7
    named: dict[str, Any] = {"scope": scope, "suffix": key, "sender_mapping": mine}
    ext = KeyExt(**named)
    declared: list[Callable[[], Any]] = [
        lambda: DeclareKeyExpr(id=id, scope=scope, suffix=key),
        lambda: UndeclareKeyExpr(id=id),
        lambda: DeclareSubscriber(id=id, **named),
        lambda: UndeclareSubscriber(id=id, key=ext),
        lambda: DeclareQueryable(id=id, info=chance.choice((0, 1, 257)), **named),
        lambda: UndeclareQueryable(id=id, key=ext),
        lambda: DeclareToken(id=id, **named),
        lambda: UndeclareToken(id=id, key=ext),
        DeclareFinal,
    ]
    kind = chance.randrange(12)
    if kind < 5:
        interest = chance.choice((None, None, 0, id))
        return Declare(
            interest_id=interest,
            node_id=chance.choice((0, 0, 1, 3)),
            body=chance.choice(declared)(),
        )
    if kind == 5:
        return Interest(
            mode=chance.randrange(4), id=id, key_exprs=mine, subscribers=chance.random() < 0.5,
            queryables=chance.random() < 0.5, tokens=chance.random() < 0.5,
            restricted=chance.random() < 0.8, aggregate=chance.random() < 0.5, **named,
        )  # fmt: skip
    if kind in (6, 7):
        body = Put(payload=chance.randbytes(8)) if chance.random() < 0.8 else Del()
        return Push(node_id=chance.choice((0, 0, 2)), body=body, **named)
    if kind == 8:
        return Request(
            id=id, target=chance.randrange(3), timeout=chance.choice((0, 1, 1000)), body=Query(),
            **named,
        )  # fmt: skip
    if kind == 9:
        answer = Reply(body=Put(payload=b"r")) if chance.random() < 0.7 else Err(payload=b"e")
        return Response(id=id, body=answer, **named)
    if kind == 10:
        return ResponseFinal(id=id)
    return write_entries(
        [
            LinkState(
                psid=chance.randrange(4), sn=chance.randrange(20),
                zid=chance.choice((b"", b"\x66", b"\x67", b"\x68\x01")),
                whatami=chance.choice((0, 1, 2, 4)),
                links=tuple(chance.randrange(5) for _ in range(chance.randrange(4))),
                locators=chance.choice((None, (), ("tcp/127.0.0.1:1",), ("nonsense",))),
            )
            for _ in range(chance.randrange(4))
        ]
    )  # fmt: skip


class Sessions:
    """A node of one role with two honest neighbours, and strangers of another role."""

    def __init__(self, mode: str, role: int, chance: random.Random) -> None:
        """Open the network."""
        self.name = f"{ROLES[role]} to {mode}"
        self.mode, self.role, self.chance = mode, role, chance
        self.network = Network(random.Random(0))
        self.honest = [
            self.network.node(name, "peer" if mode == "client" else "client")
            for name in ("one", "two")
        ]
        if mode == "client":
            self.node = self.network.node("node", mode, connect=["one"])
        else:
            self.node = self.network.node("node", mode)
            for host in self.honest:
                self.network.connect(host, self.node)
        self.network.settle()
        self.messages = 0

    def _stranger(self) -> Stranger | None:
        stranger = self.network.stranger(self.node)
        zid = bytes((0x66,))
        stranger.say(bytes((0x81, 9, (len(zid) - 1) << 4 | self.role)) + zid + b"\x81\x27\x01")
        self.network.run(0.01)
        heard = stranger.heard()
        ack = read_batch(heard[0])[0] if heard else None
        if not isinstance(ack, InitAck):
            return None
        stranger.say(write(OpenSyn(lease=100_000, initial_sn=5, cookie=ack.cookie)))
        self.network.run(0.01)
        stranger.heard()
        return None if stranger.closed else stranger

    def round(self) -> None:
        """One stranger's life, and a look at the honest ones."""
        chance = self.chance
        stranger = self._stranger()
        sn = 5
        for _ in range(LIFE // 20):
            if stranger is None or stranger.closed:
                break
            said = tuple(some_message(chance) for _ in range(20))
            batch = bytearray(write(Frame(sn=sn, reliable=True, messages=said)))
            if chance.random() < 0.05:
                whole = write(said[0])
                first = Fragment(
                    sn=sn, reliable=True, more=chance.random() < 0.5, first=True, payload=whole
                )
                batch = bytearray(write(first))
            if chance.random() < 0.02:
                chance.choice(fuzz.DAMAGES)(batch, chance, [bytes(batch)])
            sn += 1
            self.messages += len(said)
            stranger.say(bytes(batch[:65000]) + write(KeepAlive()))
            self.network.run(chance.choice((0.0, 0.001, 0.01)))
            stranger.heard()
        if stranger is not None and not stranger.closed:
            self.network.lose(stranger.end)
        self.network.run(0.2)
        if self.mode != "client":
            samples = self.honest[0].subscribe("honest/word")
            self.network.run(0.1)
            self.honest[1].put("honest/word", b"here")
            self.network.run(0.1)
            if b"here" not in [value for _, value in samples.values()]:
                raise AssertionError("an honest sample did not arrive")


class OldDevices:
    """The broker of the 2018 protocol, and packets of devices."""

    name = "2018"

    def __init__(self, chance: random.Random) -> None:
        """A broker without sockets."""
        self.chance = chance
        self.messages = 0
        vectors = json.loads((fuzz.GOLDEN / "vectors-2018.json").read_text())["vectors"]
        self.packets = [bytes.fromhex(entry["hex"]) for entry in vectors]
        self.now = 0.0
        self.broker = Broker(BrokerOptions(b"broker"))

    def round(self) -> None:
        """One device's life."""
        chance = self.chance
        stream = chance.random() < 0.5
        name = chance.randrange(4)
        port = self.broker.connected(name, stream, 0 if stream else 1400)
        device = Client.make(SessionOptions(f"device{name}".encode(), lossless=stream))
        device.session.open(self.now)
        for packet in device.session.packets(self.now):
            self.broker.received(port, frame(packet) if stream else packet, self.now)
        for _ in range(LIFE // 4):
            damaged = bytearray(chance.choice(self.packets))
            for _ in range(chance.choice((0, 0, 0, 1, 2))):
                chance.choice(fuzz.DAMAGES)(damaged, chance, self.packets)
            self.messages += 1
            self.now += chance.choice((0.0, 0.0, 0.01))
            data = bytes(damaged[:1400])
            if stream and data and chance.random() < 0.99:
                data = frame(data)
            self.broker.received(port, data, self.now)
            port.out.clear()
            if port.closing:
                break
            self.broker.tick(self.now)
            self.broker.flush(self.now)
        self.broker.lost(port)
        self.now += 10.0
        self.broker.tick(self.now)


class Pipe(UnicastLink):
    """The stream below a WebSocket: what is written to it goes nowhere."""

    stream = True
    reliable = True
    thread_safe = False
    mtu = 65535

    def __init__(self) -> None:
        """Not started."""
        super().__init__("tcp/127.0.0.1:1", "tcp/127.0.0.1:2")
        self.on_data: OnData | None = None
        self.on_lost: OnLost | None = None
        self.full = False

    @property
    def interfaces(self) -> list[str]:
        """None."""
        return []

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Remember whom to tell."""
        self.on_data, self.on_lost = on_data, on_lost

    def send(self, data: bytes) -> int:
        """Take everything, or nothing."""
        return 0 if self.full else len(data)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Never."""

    def pause(self) -> None:
        """Nothing is read by itself."""

    def resume(self) -> None:
        """Nothing is read by itself."""

    def close(self) -> None:
        """Closed."""


class WebSockets:
    """The layer of WebSockets, and frames of a stranger."""

    name = "WebSocket"

    def __init__(self, chance: random.Random) -> None:
        """No link yet."""
        self.chance = chance
        self.messages = 0
        self.loop = asyncio.new_event_loop()

    def round(self) -> None:
        """One link's life."""
        chance = self.chance
        pipe = Pipe()
        link = WebSocketLink(pipe, self.loop, "ws")
        lost: list[Exception | None] = []
        assert pipe.on_data is not None
        pipe.on_data(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        link.start(lambda data: None, lost.append)
        self.loop.run_until_complete(asyncio.sleep(0))
        sender = FrameMaker(chance)
        for _ in range(LIFE // 10):
            if lost:
                break
            pipe.full = chance.random() < 0.1
            data = bytearray(sender.frame())
            if chance.random() < 0.03:
                chance.choice(fuzz.DAMAGES)(data, chance, [bytes(data)])
            self.messages += 1
            if pipe.on_data is not None:
                pipe.on_data(bytes(data))
        link.close()


class FrameMaker:
    """Frames of a WebSocket, as bytes."""

    def __init__(self, chance: random.Random) -> None:
        """Masked with zeros, as a client may."""
        self.chance = chance

    def frame(self) -> bytes:
        """One frame."""
        chance = self.chance
        opcode = chance.choice((0x82, 0x82, 0x82, 0x02, 0x00, 0x80, 0x89, 0x8A, 0x81, 0x88))
        size = chance.choice((0, 1, 20, 125, 126, 300))
        if opcode & 0x08:
            size = min(size, 125)
        head = bytes((opcode, 0x80 | min(size, 126)))
        if size >= 126:
            head += size.to_bytes(2, "big")
        return head + bytes(4) + chance.randbytes(size)


def main() -> int:
    """Fuzz as the command line says."""
    parser = argparse.ArgumentParser(prog="python tools/fuzz_sessions.py")
    parser.add_argument("--seconds", type=float, default=0, help="how long to search")
    parser.add_argument("--messages", type=int, default=0, help="how many messages at least")
    parser.add_argument("--seed", type=int, help="which messages (default: others each time)")
    asked = parser.parse_args()
    seed = random.randrange(1 << 32) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    scenes: list[Any] = [Sessions(mode, role, chance) for mode in ROLES for role in range(3)]
    scenes += [OldDevices(chance), WebSockets(chance), HttpRequests(chance)]
    began = time.monotonic()
    seconds = asked.seconds if asked.seconds or asked.messages else 60
    while time.monotonic() < began + seconds or sum(s.messages for s in scenes) < asked.messages:
        for scene in scenes:
            try:
                scene.round()
            except Exception:
                traceback.print_exc()
                print(f"failed: {scene.name}, seed {seed}, after {scene.messages} messages")
                return 1
    spent = time.monotonic() - began
    for scene in scenes:
        print(f"{scene.name:18} {scene.messages:10} messages")
    total = sum(scene.messages for scene in scenes)
    print(f"{total} messages in {spent:.0f} s, {total / spent:.0f} a second, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
