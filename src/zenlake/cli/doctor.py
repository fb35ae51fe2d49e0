"""`zenlake doctor`: is this machine fit for it, and if not, what to do?"""

from __future__ import annotations

import asyncio
import json
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Literal

import typer

from zenlake.cli.connection import FAILED, Connection, networked
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config
    from zenlake.node.sample import Sample

Word = Literal["ok", "warn", "fail"]

#: How many files a router of a thousand sessions needs.
FILES = 1024
#: A difference of clocks that puts values into the wrong order, in seconds.
SKEW = 0.5
#: How long something may take that is at hand, in seconds.
PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found."""

    word: Word
    what: str
    found: str
    #: The way out, if there is something to get out of.
    remedy: str = ""


@examples(
    "zenlake doctor",
    "zenlake doctor -c router.json5",
    "zenlake doctor -e tcp/10.0.0.7:7447 --json",
)
@networked
def doctor(connection: Connection) -> None:
    """Check this machine and its network.

    Prints a line for each check: ok, warn or fail, with what to do about it. Ends with 1 if
    something fails.
    """
    from zenlake.cli.show import paint, print_json

    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    failed = False
    for finding in examine(connection):
        failed = failed or finding.word == "fail"
        if connection.as_json:
            print_json(
                {
                    "result": finding.word,
                    "what": finding.what,
                    "found": finding.found,
                    "remedy": finding.remedy,
                }
            )
            continue
        word = paint(f"{finding.word:<4}", colours[finding.word])
        typer.echo(f"{word}  {finding.what:<12}{finding.found}")
        if finding.remedy:
            typer.echo(f"      {'':<12}→ {finding.remedy}")
    if failed:
        raise typer.Exit(FAILED)


def examine(connection: Connection) -> Iterator[Finding]:
    """All looks, one after the other."""
    config = connection.config()
    yield python()
    yield build()
    yield event_loop()
    yield files()
    for port, kind in ((7447, socket.SOCK_STREAM), (7446, socket.SOCK_DGRAM)):
        yield free_port(port, kind)
    if config.resolved.scouting.multicast.enabled:
        yield multicast(config)
        yield from found(config, connection.wait)
    yield from routers(connection)


# --------------------------------------------------------------------------------- this process


def python() -> Finding:
    """The interpreter."""
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if platform.python_implementation() != "CPython":
        return Finding("warn", "python", name, "the compiled build needs CPython")
    return Finding("ok", "python", name)


def build() -> Finding:
    """Whether the hot modules are compiled."""
    import zenlake

    if zenlake.compiled:
        return Finding("ok", "build", f"zenlake {zenlake.__version__}, compiled")
    return Finding(
        "warn",
        "build",
        f"zenlake {zenlake.__version__}, interpreted: many times slower",
        "install a wheel for this platform, or build one: pip install --no-binary zenlake zenlake",
    )


def event_loop() -> Finding:
    """Whether there is a faster loop."""
    if find_spec("uvloop") is not None:
        return Finding("ok", "event loop", "uvloop")
    if sys.platform == "win32":
        return Finding("ok", "event loop", "asyncio")
    return Finding("warn", "event loop", "asyncio", "pip install 'zenlake[uvloop]' is faster")


def files() -> Finding:
    """How many files may be open: each link is one."""
    try:
        import resource
    except ImportError:
        return Finding("ok", "open files", "no limit known")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{soft} (could be {hard})"
    if 0 <= soft < FILES:
        return Finding(
            "warn", "open files", found, f"a router needs one a session: ulimit -n {FILES * 4}"
        )
    return Finding("ok", "open files", found)


# -------------------------------------------------------------------------------- the machine


def free_port(port: int, kind: socket.SocketKind) -> Finding:
    """Whether a router could listen on a port."""
    name = f"{'tcp' if kind is socket.SOCK_STREAM else 'udp'} {port}"
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind is socket.SOCK_DGRAM:
            # Scouting shares its port; only somebody who does not share is in the way.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT"):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        elif sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError as error:
            why = error.strerror or str(error)
            return Finding(
                "warn",
                name,
                f"taken ({why.lower()})",
                "if that is a router, good; if not, start yours elsewhere: "
                "zenlake router -l tcp/0.0.0.0:7448"
                if kind is socket.SOCK_STREAM
                else "nodes on this machine may not be found: see what uses it: ss -ulpn",
            )
    return Finding("ok", name, "free")


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
    from zenlake.links.multicast import Multicast

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
    # Two of them: nobody hears himself.
    ear, mouth = Multicast(loop, *words), Multicast(loop, *words, listen=False)
    try:
        ear.open(came, ignored)
        mouth.open(ignored, ignored)
        for _ in range(5):
            mouth.ask(token)
            try:
                async with asyncio.timeout(0.2):
                    await done.wait()
                    return
            except TimeoutError:
                continue
    finally:
        ear.close()
        mouth.close()


# -------------------------------------------------------------------------------- the network


def found(config: Config, patience: float) -> Iterator[Finding]:
    """Who answers a scout."""
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
