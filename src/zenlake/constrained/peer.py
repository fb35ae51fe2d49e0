"""A peer: programs of 2018 that find each other by multicast and need no broker.

Every peer listens, and every pair of peers has one session: who has the smaller id opens it. On the
side that accepted it, a small broker speaks for the program, and only for it: peers pass nothing on
for each other. So whatever a program publishes goes to each of the others once, directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from types import TracebackType
from typing import Any, Final, Self

from zenlake.constrained import aio
from zenlake.constrained.aio import MODES, Mode
from zenlake.constrained.brokering import SCOUTING, RunningBroker
from zenlake.constrained.client import Subscriber
from zenlake.errors import ZError
from zenlake.links.multicast import MulticastSockets
from zenlake.xrce import Hello, Property, Scout, read_packet, write
from zenlake.xrce.broker import PEER
from zenlake.xrce.client import Read, Written
from zenlake.xrce.outside import BrokerOptions
from zenlake.xrce.properties import value_of

log = logging.getLogger("zenlake.xrce")

#: Seconds between two questions to the group; a new peer is found this soon.
EVERY: Final = 1.0
#: The vendor property in which Hello and Scout say who speaks.
PID: Final = 35
#: Peers that one peer opens sessions with.
PEERS_MAX: Final = 64


class Peer:
    """A program among others like it."""

    def __init__(
        self,
        listen: str = "udp/127.0.0.1:0",
        *,
        connect: tuple[str, ...] = (),
        group: str = SCOUTING,
        interface: str = "auto",
        mtu: int = 1400,
    ) -> None:
        """Listen at a place; `connect`: peers to open sessions with without looking for them.

        An empty `group` looks for nobody.
        """
        self.pid = secrets.token_bytes(8)
        self._program = b"program"
        options = BrokerOptions(self.pid, mtu=mtu, mask=PEER, only=self._program)
        self._broker = RunningBroker(options)
        self._broker.start([listen])
        self._loop = self._broker.thread
        self._mtu = mtu
        self._sessions: dict[str, aio.Session] = {}
        self._opening: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._publishers: dict[str, dict[str, Written]] = {}
        self._subscribers: dict[tuple[str, str], tuple[Subscriber, dict[str, Any]]] = {}
        self._scouting: MulticastSockets | None = None
        self.places = self._broker.locators()
        self._loop.run(self._start(connect, group, interface), 30)

    # -------------------------------------------------------------------------- what programs call

    def publisher(self, uri: str) -> PeerPublisher:
        """Declare a publisher of a resource."""
        self._loop.run(self._publish(uri), 30)
        return PeerPublisher(self, uri)

    def subscriber(self, uri: str, mode: Mode = "push", **options: Any) -> Subscriber:
        """Subscribe to a resource."""
        if mode not in MODES:
            raise ValueError(f"'{mode}' is no mode; these are: {', '.join(MODES)}")
        made = Subscriber(None)  # type: ignore[arg-type]
        self._loop.run(self._subscribe(uri, mode, made, options), 30)
        return made

    def write(self, name: str, payload: bytes) -> None:
        """Write a sample by name to every peer."""
        self._loop.run(self._write(name, payload), 30)

    @property
    def peers(self) -> int:
        """How many others there are."""
        return len(self._sessions) - 1 + len(self._broker.broker.members) - 1

    def close(self) -> None:
        """Leave."""
        with contextlib.suppress(TimeoutError):
            self._loop.run(self._stop(), 10)
        self._broker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------- on the loop thread

    async def _start(self, connect: tuple[str, ...], group: str, interface: str) -> None:
        own = await aio.open(self.places[0], pid=self._program, lease=0, mtu=self._mtu)
        self._sessions[""] = own
        for place in connect:
            await self._meet(place)
        if group:
            self._scouting = MulticastSockets(self._loop.loop, group, interface)
            self._scouting.open(self._asked, self._answered)
            self._keep(self._look())

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._scouting is not None:
            self._scouting.close()
        for session in self._sessions.values():
            await session.close()

    def _keep(self, work: Any) -> None:
        task = self._loop.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self) -> None:
        question = write(Scout(mask=PEER, properties=(Property(id=PID, value=self.pid),)))
        while self._scouting is not None:
            self._scouting.send_to_group(question)
            for place in [at for at, one in self._sessions.items() if at and one.state != 2]:
                del self._sessions[place]
            await asyncio.sleep(EVERY)

    def _hello(self) -> bytes:
        mine = (Property(id=PID, value=self.pid),)
        return write(Hello(mask=PEER, locators=tuple(self.places), properties=mine))

    def _asked(self, datagram: bytes, address: tuple[str, int], interface: str) -> None:
        """Somebody looks for peers: say hello."""
        try:
            found = [m for m in read_packet(datagram) if isinstance(m, Scout) and m.mask & PEER]
        except ZError:
            return
        if found and value_of(found[0].properties, PID) != self.pid and self._scouting is not None:
            self._scouting.send_to(self._hello(), address)

    def _answered(self, datagram: bytes, address: tuple[str, int], interface: str) -> None:
        """A peer says hello: who has the smaller id opens the session."""
        try:
            messages = read_packet(datagram)
        except ZError:
            return
        for message in messages:
            if not isinstance(message, Hello) or not message.mask & PEER or not message.locators:
                continue
            pid = value_of(message.properties, PID)
            place = message.locators[0]
            if pid is None or self.pid < pid:
                known = place in self._sessions or place in self._opening
                if not known and len(self._sessions) < PEERS_MAX and place not in self.places:
                    self._keep(self._meet(place))

    async def _meet(self, place: str) -> None:
        """Open a session with a peer, and declare there what the program has declared."""
        self._opening.add(place)
        try:
            session = await aio.open(place, pid=self.pid, mtu=self._mtu)
            for uri, publishers in self._publishers.items():
                publishers[place] = await session.publisher(uri)
            for (uri, mode), (one, options) in self._subscribers.items():
                await session.subscriber(uri, one._took, mode, **options)  # type: ignore[arg-type]
            self._sessions[place] = session
        except ZError as error:
            log.info("no session with the peer at %s: %s", place, error)
        finally:
            self._opening.discard(place)

    async def _publish(self, uri: str) -> None:
        publishers = self._publishers.setdefault(uri, {})
        for place, session in list(self._sessions.items()):
            if place not in publishers:
                publishers[place] = await session.publisher(uri)

    async def _subscribe(
        self, uri: str, mode: Mode, one: Subscriber, options: dict[str, Any]
    ) -> None:
        self._subscribers[uri, mode] = (one, options)
        for session in list(self._sessions.values()):
            made: Read = await session.subscriber(uri, one._took, mode, **options)
            one._inner = one._inner or made

    async def _write(self, name: str, payload: bytes) -> None:
        for session in list(self._sessions.values()):
            await session.write(name, payload)

    async def _put(self, uri: str, payload: bytes) -> bool:
        heard = False
        for place, publisher in list(self._publishers[uri].items()):
            session = self._sessions.get(place)
            if session is not None and session.state == 2:
                heard = await session.put(publisher, payload) or heard
        return heard

    def _matched(self, uri: str) -> bool:
        return any(one.matched for one in self._publishers[uri].values())


class PeerPublisher:
    """A publisher of a peer."""

    def __init__(self, peer: Peer, uri: str) -> None:
        """Made by `Peer.publisher`."""
        self._peer = peer
        self._uri = uri

    @property
    def matched(self) -> bool:
        """Whether another peer listens."""
        return self._peer._matched(self._uri)

    def put(self, payload: bytes) -> bool:
        """Publish a sample to those who listen; False: nobody does."""
        return self._peer._loop.run(self._peer._put(self._uri, payload), 30)
