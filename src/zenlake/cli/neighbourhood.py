"""What `zenlake doctor` finds in the network: ports, multicast, nodes, and their clocks."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from zenlake.cli.connection import Connection
from zenlake.cli.machine import Finding

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config
    from zenlake.node.sample import Sample

__all__ = ["free_port", "multicast", "routers", "scouted"]

#: A difference of clocks that puts values into the wrong order, in seconds.
SKEW = 0.5
#: How long something may take that is at hand, in seconds.
PATIENCE = 2.0


def free_port(port: int, kind: socket.SocketKind) -> Finding:
    """Whether a router could listen on a port."""
    name = f"{'tcp' if kind is socket.SOCK_STREAM else 'udp'} {port}"
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind is socket.SOCK_DGRAM:
            # Scouting shares its port; only a program that does not share it is in the way.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT"):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        elif sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError as error:
            if kind is socket.SOCK_STREAM:
                return taken(name, port)
            return Finding(
                "warn",
                name,
                f"taken ({(error.strerror or str(error)).lower()})",
                "nodes on this machine may not be found: see what uses it: ss -ulpn",
            )
    return Finding("ok", name, "free")


def taken(name: str, port: int) -> Finding:
    """Who listens on a port of this machine: a router, or something else."""
    import zenlake
    from zenlake.cli.admin_space import nodes
    from zenlake.errors import ZError

    config = _client(f"tcp/127.0.0.1:{port}")
    config.insert_json5("transport/unicast/open_timeout", "1000")
    config.insert_json5("connect/timeout_ms", "1000")
    try:
        with zenlake.open(config) as session:
            transports = session.info.transports()
            versions = {
                node.zid: str(node.page.get("version", "")) for node in nodes(session).values()
            }
    except ZError:
        return Finding(
            "warn",
            name,
            "taken by something that opens no Zenoh session with us",
            f"see what it is: ss -tlpn 'sport = :{port}'; or start yours elsewhere: zenlake "
            "router -l tcp/0.0.0.0:7448",
        )
    who = [
        f"{one.whatami} {one.zid} {versions.get(str(one.zid), '')}".strip() for one in transports
    ]
    return Finding("ok", name, f"a Zenoh node listens: {', '.join(who)}")


def multicast(config: Config) -> Finding:
    """Whether a datagram to the scouting group comes back."""
    from zenlake.errors import ZError

    settings = config.resolved.scouting.multicast
    heard = threading.Event()
    token = f"zenlake doctor {time.monotonic_ns()}".encode()
    text = f"{settings.address} on interface {settings.interface}"
    remedy = (
        "name the interface in scouting/multicast/interface, allow multicast in the firewall, or "
        "do without: -e tcp/HOST:7447"
    )
    try:
        asyncio.run(_echo(config, token, heard.set))
    except (OSError, ZError) as error:
        return Finding("fail", "multicast", f"{text}: {error}", remedy)
    if not heard.is_set():
        return Finding("fail", "multicast", f"{text}: what is sent is not heard", remedy)
    return Finding("ok", "multicast", text)


async def _echo(config: Config, token: bytes, heard: Callable[[], None]) -> None:
    """Send to the group, and listen for it."""
    from zenlake.links.multicast import MulticastSockets

    settings = config.resolved.scouting.multicast
    done = asyncio.Event()

    def came(data: bytes, *_: object) -> None:
        if data == token:
            heard()
            done.set()

    def ignored(*_: object) -> None:
        pass

    loop = asyncio.get_running_loop()
    words = (settings.address, settings.interface, settings.ttl)
    # Two of them: a socket does not hear itself.
    ear, mouth = MulticastSockets(loop, *words), MulticastSockets(loop, *words, listen=False)
    try:
        ear.open(came, ignored)
        mouth.open(ignored, ignored)
        for _ in range(5):
            mouth.send_to_group(token)
            try:
                async with asyncio.timeout(0.2):
                    await done.wait()
                    return
            except TimeoutError:
                continue
    finally:
        ear.close()
        mouth.close()


def scouted(config: Config, patience: float) -> Iterator[Finding]:
    """Routers and peers that answer a Scout message."""
    import zenlake

    nodes: dict[str, tuple[str, tuple[str, ...]]] = {}

    def hello(one: zenlake.Hello) -> None:
        nodes[str(one.zid)] = (str(one.whatami), tuple(one.locators))

    scout = zenlake.scout(hello, what="router|peer", config=config)
    time.sleep(min(patience, 1.0))
    scout.stop()
    routers = [zid for zid, (whatami, _) in nodes.items() if whatami == "router"]
    peers = len(nodes) - len(routers)
    others = f"{peers} peer{'' if peers == 1 else 's'}"
    if not routers:
        yield Finding(
            "warn",
            "scouting",
            f"no router found, {others}",
            "start one: zenlake router; or say where it is: -e tcp/HOST:7447",
        )
        return
    for zid in routers:
        yield Finding("ok", "scouting", f"router {zid} at {', '.join(nodes[zid][1])}")
    if peers:
        yield Finding("ok", "scouting", others)


def routers(connection: Connection) -> Iterator[Finding]:
    """What the nodes that can be reached say of themselves, and what time it is there."""
    import zenlake
    from zenlake.cli.admin_space import nodes
    from zenlake.errors import ZError

    try:
        with zenlake.open(connection.config()) as session:
            deadline = time.monotonic() + connection.wait
            while not session.info.transports() and time.monotonic() < deadline:
                time.sleep(0.05)
            transports = session.info.transports()
            if not transports:
                if connection.connect:
                    yield Finding("fail", "session", "none could be opened", _reach(connection))
                else:
                    yield Finding("warn", "session", "nobody is there", _reach(connection))
                return
            kinds = ", ".join(f"{one.whatami} {one.zid}" for one in transports)
            yield Finding("ok", "session", kinds)
            shown = nodes(session)
            if not shown:
                yield Finding(
                    "warn",
                    "admin space",
                    "no node shows itself here",
                    'adminspace/enabled, and permissions/links "any" for other machines',
                )
            for node in shown.values():
                yield Finding("ok", "version", f"{node.whatami} {node.zid}: {node.page['version']}")
            yield from clocks(session)
    except ZError as error:
        yield Finding("fail", "session", str(error), _reach(connection))


def _reach(connection: Connection) -> str:
    if connection.connect:
        return "see that a router listens there and that no firewall is between"
    return "start a router: zenlake router; or say where one is: -e tcp/HOST:7447"


def clocks(session: Session) -> Iterator[Finding]:
    """How far the clocks of routers are from ours, by the times that they give to values."""
    import zenlake
    from zenlake.errors import ZError

    routers = set(session.info.routers_zid())
    for link in session.info.links():
        if link.zid not in routers:
            continue
        try:
            with zenlake.open(_client(str(link.dst))) as other:
                yield clock(session, other)
        except ZError:
            continue  # it connected to us from a place where it does not listen


def clock(session: Session, other: Session) -> Finding:
    """How far the clock of a router between two sessions is from ours."""
    key = f"zenlake/doctor/{session.zid()}"
    heard: SimpleQueue[tuple[Sample, float]] = SimpleQueue()
    with (
        other.declare_subscriber(key, lambda sample: heard.put((sample, time.time()))),
        session.declare_publisher(key) as publisher,
    ):
        deadline = time.monotonic() + PATIENCE
        while not publisher.matching_status.matching and time.monotonic() < deadline:
            time.sleep(0.02)
        sent = time.time()
        publisher.put(b"what time is it?")
        try:
            sample, arrived = heard.get(timeout=PATIENCE)
        except Empty:
            return Finding("warn", "clock", "nothing comes back from the router")
    stamp = sample.timestamp
    if stamp is None:
        return Finding("ok", "clock", "the router adds no times")
    there = stamp.get_time().timestamp()
    # It was there between sending and hearing; what is outside of that is the difference.
    skew = min(0.0, there - sent) + max(0.0, there - arrived)
    text = f"router {stamp.get_id()} differs from ours by "
    text += f"{skew:+.3f} s" if skew else f"less than {arrived - sent:.3f} s"
    if abs(skew) > SKEW:
        return Finding("fail", "clock", text, "have both machines keep the time: chrony or ntpd")
    return Finding("ok", "clock", text)


def _client(place: str) -> Config:
    """A configuration for a client of one router."""
    from zenlake.config import Config

    config = Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([place]))
    config.insert_json5("scouting/multicast/enabled", "false")
    return config
