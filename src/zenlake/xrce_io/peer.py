"""A peer: programs of 2018 that find each other by multicast and need no broker.

Every peer listens, and every pair of peers has one session: who has the smaller id opens it. On the
side that accepted it, a small broker speaks for the program, and only for it: peers pass nothing on
for each other. So whatever a program publishes goes to each of the others once, directly; or, if it
says `multicast`, to all of them with one datagram to the group, where every session has a conduit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from types import TracebackType
from typing import Any, Final, Self

from zenlake.engine.tasks import join_tasks
from zenlake.errors import DecodeError, ZError
from zenlake.links.multicast import MulticastSockets
from zenlake.xrce.broker import PEER
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.client import Read, Written
from zenlake.xrce.codec import Hello, Property, Scout
from zenlake.xrce.group import GROUP_CONDUIT, Group, heard
from zenlake.xrce.names import parse_name
from zenlake.xrce.outgoing import SYNCH_LEAST
from zenlake.xrce.packets import read_packet, write
from zenlake.xrce.properties import value_of
from zenlake.xrce.session import OPEN
from zenlake.xrce_io import aio
from zenlake.xrce_io.aio import MODES, Mode
from zenlake.xrce_io.brokering import SCOUTING, RunningBroker
from zenlake.xrce_io.client import Subscriber

log = logging.getLogger("zenlake.xrce")

#: Seconds between two Scout messages to the group; a new peer is found this soon.
EVERY: Final = 1.0
#: The vendor property in which Hello and Scout say who speaks.
PID: Final = 35
#: What a packet to the group begins with, if it is no Scout.
KEEP_ALIVE: Final = b"\x10"
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
        options = BrokerOptions(
            self.pid, mtu=mtu, mask=PEER, only=self._program,
            conduits=GROUP_CONDUIT + 1, shared=GROUP_CONDUIT,
        )  # fmt: skip
        self._group = Group(self.pid, mtu=mtu)
        self._broker = RunningBroker(options)
        self._broker.start([listen])
        self._loop = self._broker.thread
        self._mtu = mtu
        self._sessions: dict[str, aio.Session] = {}
        self._opening: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._publishers: dict[str, dict[str, Written]] = {}
        self._reliable: dict[str, bool] = {}
        self._subscribers: dict[tuple[str, str], tuple[PeerSubscriber, dict[str, Any]]] = {}
        self._scouting: MulticastSockets | None = None
        self.places = self._broker.locators()
        try:
            self._loop.run(self._start(connect, group, interface), 30)
        except BaseException:
            self.close()
            raise

    # -------------------------------------------------------------------------- what programs call

    def publisher(
        self, uri: str, *, multicast: bool = False, reliable: bool = True
    ) -> PeerPublisher:
        """Declare a publisher of a resource.

        With `multicast`, a sample is one datagram to the group for all peers, where all of them
        want it as it comes; what one of them misses is sent again to that one.
        """
        self._loop.run(self._publish(uri, reliable), 30)
        return PeerPublisher(self, uri, multicast, reliable)

    @property
    def multicasts(self) -> int:
        """How many samples went to all peers as one datagram."""
        return self._group.sent

    def subscriber(self, uri: str, mode: Mode = "push", **options: Any) -> PeerSubscriber:
        """Subscribe to a resource."""
        if mode not in MODES:
            raise ValueError(f"'{mode}' is no mode; these are: {', '.join(MODES)}")
        made = PeerSubscriber(self)
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
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if self._scouting is not None:
            self._scouting.close()
        await join_tasks(tasks)
        for session in list(self._sessions.values()):
            with contextlib.suppress(ZError):
                await session.close()

    def _keep(self, work: Any) -> None:
        task = self._loop.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self) -> None:
        scout = write(Scout(mask=PEER, properties=(Property(id=PID, value=self.pid),)))
        while self._scouting is not None:
            self._scouting.send_to_group(scout)
            for place in [at for at, one in self._sessions.items() if at and one.state != OPEN]:
                self._sessions.pop(place).end()
            await asyncio.sleep(EVERY)

    def _hello(self) -> bytes:
        mine = (Property(id=PID, value=self.pid),)
        return write(Hello(mask=PEER, locators=tuple(self.places), properties=mine))

    def _asked(self, datagram: bytes, address: tuple[str, int], interface: str) -> None:
        """Answer a Scout for peers with a Hello, or take a sample that a peer sent to all."""
        if datagram[:1] == KEEP_ALIVE:
            self._to_all(datagram)
            return
        try:
            scouts = [m for m in read_packet(datagram) if isinstance(m, Scout) and m.mask & PEER]
        except ZError:
            return
        if (
            scouts
            and value_of(scouts[0].properties, PID) != self.pid
            and self._scouting is not None
        ):
            self._scouting.send_to(self._hello(), address)

    def _to_all(self, datagram: bytes) -> None:
        """A packet of a peer to the group: it belongs to the session with that peer."""
        try:
            pid, messages = heard(datagram)
        except DecodeError:
            self._broker.broker.counters.malformed += 1
            return
        if not messages:
            return
        for session in self._sessions.values():
            if session.broker == pid:
                session.take(messages)
                return
        broker = self._broker
        if broker.broker.heard(pid, messages, broker.now()):
            broker.flush()

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
        session: aio.Session | None = None
        try:
            session = await aio.open(
                place, pid=self.pid, mtu=self._mtu,
                conduits=GROUP_CONDUIT + 1, shared=GROUP_CONDUIT,
            )  # fmt: skip
            for uri, publishers in self._publishers.items():
                publishers[place] = await session.publisher(
                    uri, reliable=self._reliable.get(uri, True)
                )
            for (uri, mode), (one, options) in self._subscribers.items():
                one._reads[session] = await session.subscriber(
                    uri,
                    one.samples.put,
                    mode,  # type: ignore[arg-type]
                    **options,
                )
            self._sessions[place] = session
        except ZError as error:
            log.info("no session with the peer at %s: %s", place, error)
        finally:
            self._opening.discard(place)
            if session is not None and self._sessions.get(place) is not session:
                session.end()

    async def _publish(self, uri: str, reliable: bool) -> None:
        publishers = self._publishers.setdefault(uri, {})
        for place, session in list(self._sessions.items()):
            if place not in publishers:
                publishers[place] = await session.publisher(uri, reliable=reliable)
        self._reliable[uri] = reliable

    async def _subscribe(
        self, uri: str, mode: Mode, one: PeerSubscriber, options: dict[str, Any]
    ) -> None:
        self._subscribers[uri, mode] = (one, options)
        for session in list(self._sessions.values()):
            one._reads[session] = await session.subscriber(uri, one.samples.put, mode, **options)

    async def _write(self, name: str, payload: bytes) -> None:
        for session in list(self._sessions.values()):
            await session.write(name, payload)

    async def _put(self, uri: str, payload: bytes) -> bool:
        heard = False
        for place, publisher in list(self._publishers[uri].items()):
            session = self._sessions.get(place)
            if session is not None and session.state == OPEN:
                heard = await session.put(publisher, payload) or heard
        return heard

    async def _put_to_all(self, uri: str, payload: bytes, reliable: bool) -> bool:
        """Publish with one datagram, if all peers are in the group and want samples at once."""
        if not self._matched(uri):
            return False
        sender, group = self._scouting, self._group
        name = parse_name(uri)
        if (
            sender is None
            or not self._all_joined()
            or not self._broker.broker.routing.pushes_all(name.path)
        ):
            return await self._put(uri, payload)
        while reliable and group.full:
            await asyncio.sleep(SYNCH_LEAST)
            if not self._all_joined():
                return await self._put(uri, payload)
        packet = group.packet(name.text("/"), payload, reliable, self._broker.now())
        if not packet:
            return await self._put(uri, payload)
        sender.send_to_group(packet)
        for session in self._sessions.values():
            session.flush_soon()  # it has a question to ask when no answer comes
        self._broker.call(self._broker.broker.touch_all)
        return True

    def _all_joined(self) -> bool:
        """Have every session in the group; False: some peer cannot be."""
        group = self._group
        group.sweep()
        others = [one.client.session for at, one in self._sessions.items() if at]
        others += [
            one.session for pid, one in self._broker.broker.members.items() if pid != self._program
        ]
        joined = [group.join(session) for session in others if session.state == OPEN]
        return all(joined)

    def _matched(self, uri: str) -> bool:
        return any(one.matched for one in self._publishers[uri].values())


class PeerSubscriber(Subscriber):
    """A subscriber of a peer: one subscription with each of the others."""

    def __init__(self, peer: Peer) -> None:
        """Made by `Peer.subscriber`."""
        super().__init__(None)
        self._peer = peer
        self._reads: dict[aio.Session, Read] = {}

    def pull(
        self, most: int | None = None, timeout: float = aio.PATIENCE
    ) -> list[tuple[str, bytes]]:
        """Fetch what the others kept for us, or the `most` oldest of each of them."""
        self._peer._loop.run(self._pull(most, timeout))
        samples: list[tuple[str, bytes]] = []
        while (sample := self.try_recv()) is not None:
            samples.append(sample)
        return samples

    async def _pull(self, most: int | None, timeout: float) -> None:
        for session, one in list(self._reads.items()):
            if session.state == OPEN:
                await session.pull(one, most, timeout)
            else:
                del self._reads[session]

    def undeclare(self) -> None:
        """Subscribe no longer."""
        self._peer._loop.run(self._undeclare())

    async def _undeclare(self) -> None:
        known = self._peer._subscribers
        for key in [key for key, (one, _) in known.items() if one is self]:
            del known[key]
        for session, one in list(self._reads.items()):
            if session.state == OPEN:
                await session.undeclare(one)
        self._reads.clear()


class PeerPublisher:
    """A publisher of a peer."""

    def __init__(self, peer: Peer, uri: str, multicast: bool, reliable: bool) -> None:
        """Made by `Peer.publisher`."""
        self._peer = peer
        self._uri = uri
        self._multicast = multicast
        self._reliable = reliable

    @property
    def matched(self) -> bool:
        """Whether another peer listens."""
        return self._peer._matched(self._uri)

    def put(self, payload: bytes) -> bool:
        """Publish a sample to subscribers; False: there is none."""
        peer = self._peer
        if self._multicast:
            return peer._loop.run(peer._put_to_all(self._uri, payload, self._reliable), 30)
        return peer._loop.run(peer._put(self._uri, payload), 30)
