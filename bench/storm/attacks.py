"""The attacks: each a small program of one client, or of a few from one address.

    python -m bench.storm.attacks NAME '{"tcp": port, "ws": port, "tls": port, "size": 1.0, …}'

It prints what became of it, as a line of JSON. `size` scales the attack; 1.0 is the table's.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import ssl
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.storm.hostile import ATTACKER, HONEST, ROUTER, Cut, Hostile, dial
from zenlake.wire import (
    Declare,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Fragment,
    Interest,
    LinkState,
    Message,
    Push,
    Put,
    Query,
    Request,
    UndeclareSubscriber,
    write,
)
from zenlake.wire.link_state import write_entries

Places = dict[str, Any]
FUTURE, CURRENT_FUTURE = 2, 3


def subscriber(id: int, key: str) -> Message:
    """A client declares a subscriber."""
    return Declare(body=DeclareSubscriber(id=id, scope=0, suffix=key))


def interest(id: int, key: str, mode: int = FUTURE, aggregate: bool = True) -> Message:
    """A client wants to be told of subscribers."""
    return Interest(
        mode=mode,
        id=id,
        key_exprs=True,
        subscribers=True,
        restricted=True,
        aggregate=aggregate,
        suffix=key,
    )


def scaled(places: Places, many: int) -> int:
    """A number of the table, scaled."""
    return max(1, int(many * places["size"]))


def aggregates(places: Places) -> str:
    """1000 aggregate interests x 1000 resources, then 10 declarations."""
    one = Hostile.connect(places["tcp"])
    many = scaled(places, 1000)
    one.say(subscriber(id, f"storm/{id}") for id in range(1, many + 1))
    one.say(interest(id, "storm/**") for id in range(1, many + 1))
    one.say(subscriber(many + id, f"storm/more/{id}") for id in range(1, 11))
    return linger(one, 2)


def tokens(places: Places) -> str:
    """300 000 tokens, then hang up."""
    one = Hostile.connect(places["tcp"])
    many = scaled(places, 300_000)
    one.say(
        Declare(body=DeclareToken(id=id, scope=0, suffix=f"storm/token/{id}"))
        for id in range(1, many + 1)
    )
    linger(one, 1)
    one.sock.close()
    time.sleep(2)
    return "hung up"


def interests(places: Places) -> str:
    """50 000 tokens, and 100 interests in all of them."""
    one = Hostile.connect(places["tcp"])
    many = scaled(places, 50_000)
    one.say(
        Declare(body=DeclareToken(id=id, scope=0, suffix=f"storm/token/{id}"))
        for id in range(1, many + 1)
    )
    one.say(Interest(mode=CURRENT_FUTURE, id=id, tokens=True) for id in range(1, 101))
    return linger(one, 3)


def subscribers(places: Places) -> str:
    """A million subscribers."""
    one = Hostile.connect(places["tcp"])
    many = scaled(places, 1_000_000)
    one.say(subscriber(id, f"storm/{id % 1000}/{id}") for id in range(1, many + 1))
    return linger(one, 2)


def chunks(places: Places) -> str:
    """100 000 subscribers with keys of 500 chunks."""
    one = Hostile.connect(places["tcp"])
    tail = "/a" * 499
    one.say(subscriber(id, f"{id}{tail}") for id in range(1, scaled(places, 100_000) + 1))
    return linger(one, 1)


def unread(places: Places) -> str:
    """20 clients that never read while one flaps keys of 20 KB."""
    deaf = [Hostile.connect(places["tcp"]) for _ in range(20)]
    for one in deaf:
        one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.say([interest(1, "**", CURRENT_FUTURE, False)])
    time.sleep(0.3)
    flapping = Hostile.connect(places["tcp"])
    stop = time.monotonic() + 12
    for turn in range(scaled(places, 15_000)):
        key = f"{turn}/" + "k" * 20_000
        flapping.say([subscriber(1, key), Declare(body=UndeclareSubscriber(id=1))])
        if time.monotonic() > stop:
            break
    return linger(flapping, 1)


def fragments(places: Places) -> str:
    """Unfinished fragments, in sessions that come again and again."""
    piece = bytes(1 << 20)
    said = ""
    for turn in range(6):
        one = Hostile.connect(places["tcp"])
        try:
            for start in range(scaled(places, 1000)):
                one.say_in_fragments(piece, finish=False) if start == 0 else more(one, piece)
        except Cut as cut:
            said = f"cut after {one.sent >> 20} MiB: {cut}"
        if turn % 2:
            one.sock.close()
    return said or "not cut"


def more(one: Hostile, piece: bytes) -> None:
    """Go on with the same message."""
    for start in range(0, len(piece), 45_000):
        fragment = Fragment(
            reliable=True, more=True, sn=one._sn, payload=piece[start : start + 45_000]
        )
        one._sn = (one._sn + 1) & 0x0FFF_FFFF
        one.send_batch(write(fragment))


def queries(places: Places) -> str:
    """60 000 queries x 50 silent queryables."""
    silent = [Hostile.connect(places["tcp"]) for _ in range(50)]
    for one in silent:
        one.say([Declare(body=DeclareQueryable(id=1, scope=0, suffix="storm/q"))])
    time.sleep(0.3)
    asking = Hostile.connect(places["tcp"])
    asking.say(
        Request(id=id, scope=0, suffix="storm/q", target=1, timeout=5000, body=Query())
        for id in range(1, scaled(places, 60_000) + 1)
    )
    return linger(asking, 3)


def routers(places: Places) -> str:
    """1000 fake routers of degree 500, told anew twenty times."""
    one = Hostile.connect(places["tcp"], ROUTER)
    many = scaled(places, 1000)
    zids = [one.zid] + [bytes((7, 7, n & 255, n >> 8, 1)) for n in range(1, many)]
    step = many // 2
    for turn in range(20):
        entries = [
            LinkState(
                psid=n,
                sn=2 + turn,
                zid=zids[n],
                whatami=1,
                links=tuple((n + k) % many for k in range(1, step))
                + tuple((n - k) % many for k in range(1, min(step, 3 + turn))),
            )
            for n in range(many)
        ]
        one.say_in_fragments(write(write_entries(entries)))
        for n in range(1, many, 10):
            one.say([Declare(node_id=n, body=DeclareSubscriber(id=0, scope=0, suffix=f"r/{n}"))])
    return linger(one, 3)


def named(places: Places) -> str:
    """A router fills the quota in the name of another."""
    one = Hostile.connect(places["tcp"], ROUTER)
    other = bytes.fromhex(places["router"].rjust(32, "0"))[::-1].rstrip(b"\0")
    entries = [
        LinkState(psid=0, sn=2, zid=one.zid, whatami=1, links=(1,)),
        LinkState(psid=1, sn=1, zid=other, whatami=1, links=()),
    ]
    one.say([write_entries(entries)])
    key = "k" * 4000
    one.say(
        Declare(node_id=1, body=DeclareSubscriber(id=0, scope=0, suffix=f"storm/{n}/{key}"))
        for n in range(scaled(places, 18_000))
    )
    return linger(one, 2)


def websocket(port: int) -> socket.socket:
    """A WebSocket, agreed on."""
    sock = dial(port)
    sock.sendall(
        b"GET / HTTP/1.1\r\nHost: storm\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += sock.recv(4096)
    return sock


def flood(sock: socket.socket, data: bytes, seconds: float) -> str:
    """Write the same bytes for a while and read nothing."""
    sock.settimeout(0.5)
    stop = time.monotonic() + seconds
    sent = 0
    while time.monotonic() < stop:
        try:
            sent += sock.send(data)
        except TimeoutError:
            continue
        except OSError as error:
            return f"cut after {sent >> 20} MiB: {error}"
    return f"not cut, {sent >> 20} MiB"


def pings(places: Places) -> str:
    """WebSocket pings whose pongs are never read."""
    sock = websocket(places["ws"])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    ping = bytes((0x89, 0x80 | 125)) + bytes(4) + bytes(125)
    return flood(sock, ping * 500, 6 * places["size"])


def continuations(places: Places) -> str:
    """WebSocket messages of empty continuations without end."""
    sock = websocket(places["ws"])
    sock.sendall(bytes((0x02, 0x80)) + bytes(4))
    return flood(sock, (bytes((0x00, 0x80)) + bytes(4)) * 10_000, 6 * places["size"])


def silence(places: Places) -> str:
    """Silent sockets and stalled TLS handshakes: how long newcomers take, from here and there."""
    held = [dial(places["tcp"]) for _ in range(scaled(places, 150))]
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    hello = ssl.MemoryBIO(), ssl.MemoryBIO()
    stalled = context.wrap_bio(*hello)
    with contextlib.suppress(ssl.SSLWantReadError):
        stalled.do_handshake()
    said = hello[1].read()
    for _ in range(scaled(places, 150)):
        sock = dial(places["tls"])
        sock.sendall(said[:40])
        held.append(sock)
    time.sleep(0.3)
    times = {}
    for who, source in (("elsewhere", HONEST), ("same address", ATTACKER)):
        times[who] = patience(partial(Hostile.connect, places["tcp"], source=source))
        times[f"{who}, TLS"] = patience(partial(secured, context, places["tls"], source))
    return "newcomers: " + ", ".join(f"{who} {told}" for who, told in times.items())


def secured(context: ssl.SSLContext, port: int, source: str) -> Hostile:
    """A session over TLS."""
    return Hostile(context.wrap_socket(dial(port, source), server_hostname="localhost"))


def patience(open: Callable[[], object]) -> str:
    """How long a newcomer takes to open a session, trying again when refused."""
    begun = time.monotonic()
    while time.monotonic() < begun + 12:
        try:
            open()
            return f"{time.monotonic() - begun:.2f} s"
        except (Cut, OSError):
            time.sleep(0.05)
    return "refused for 12 s"


def puts(places: Places) -> str:
    """Tiny puts that nobody hears, as fast as one client can."""
    one = Hostile.connect(places["tcp"])
    stop = time.monotonic() + 5 * places["size"]
    batch = [Push(scope=0, suffix=f"storm/{n}", body=Put(payload=b"x")) for n in range(2000)]
    while time.monotonic() < stop:
        one.say(batch)
    return f"{one.sent >> 20} MiB"


def linger(one: Hostile, seconds: float) -> str:
    """Stay for a while, reading; whether the session lived through it."""
    stop = time.monotonic() + seconds
    try:
        while (left := stop - time.monotonic()) > 0:
            if select.select([one.sock], [], [], left)[0]:
                one.read()
            if time.monotonic() > stop - seconds / 2:
                one.send_batch(b"\x04")
                time.sleep(0.02)
    except Cut as cut:
        return f"cut after {one.sent >> 10} KiB ({cut})"
    return f"not cut, {one.sent >> 10} KiB"


ATTACKS: dict[str, Callable[[Places], str]] = {
    attack.__name__: attack
    for attack in (
        aggregates, tokens, interests, subscribers, chunks, unread, fragments, queries, routers,
        named, pings, continuations, silence, puts,
    )
}  # fmt: skip


def main() -> None:
    """Run one attack."""
    places = json.loads(sys.argv[2])
    try:
        said = ATTACKS[sys.argv[1]](places)
    except Cut as cut:
        said = f"cut ({cut})"
    except OSError as error:
        said = f"failed: {error}"
    print(json.dumps({"said": said}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
