"""A running node: its lock, its links, its timer, its scouting.

Life: made ──start──► *opening* ──sessions as configured──► *open* ──close──► *closed*, *stopped*.
The node itself exists from the start; links that come before all listeners are open wait in
`Listeners`.

Locks: `lock` guards the node, the marked channels, the session listeners and `closed`. It is held
for one call of the node: a read of a link, a tick, a declaration. Publications only take it when
the tables have changed (`_renew_route`). Channels are committed after it is released, since waking
a thread that then needs the lock would make it wait again. Pumps, the timer and tasks belong to the
loop thread and need no lock.

The node calls only the sinks of samples, queries and replies: what else happens it notes as events,
which are taken before the lock is released (`take_marked`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from zenlake.clock import Hlc, Timestamp, ZenohId
from zenlake.config import Config
from zenlake.config.model import Settings
from zenlake.engine.assembly import OutboxFactory, fresh_zid, make_node
from zenlake.engine.changes import Changes
from zenlake.engine.claims import Claims
from zenlake.engine.flushing import Flushing
from zenlake.engine.listeners import Listeners
from zenlake.engine.locked import LockedNode
from zenlake.engine.loop import CallerLoop, EventLoop, LoopThread, shared_loop
from zenlake.engine.multicast import MulticastPump, is_group
from zenlake.engine.narrowed_writes import NarrowedWrites
from zenlake.engine.node_events import EventDispatcher
from zenlake.engine.opening import Opening, named
from zenlake.engine.polling import SocketPoller, is_supported
from zenlake.engine.pump import LAST_WORDS, Pump
from zenlake.engine.scouts import NodeScouting, StandaloneScout
from zenlake.engine.services import (
    HEARING,
    SERVING,
    RunningService,
    refuse_session_services,
    start_services,
    start_session_services,
)
from zenlake.engine.tasks import join_tasks
from zenlake.engine.timer import NodeTimer
from zenlake.errors import HandshakeError, LinkError, ZError
from zenlake.links.link import UnicastLink
from zenlake.links.options import shown
from zenlake.links.registry import connect
from zenlake.node.entities import Publication
from zenlake.node.sessions.connect import Attempt
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.scouting.scout import DiscoveredNode
from zenlake.transport.auth import Credentials
from zenlake.values.locator import EndPoint

if TYPE_CHECKING:
    from zenlake.engine.handlers import ChannelSink

log = logging.getLogger("zenlake.engine")


class Runtime:
    """A running node."""

    def __init__(self, loop: EventLoop, config: Config) -> None:
        """Not started yet: see `open`."""
        self.loop = loop
        self.config = config
        self.settings: Settings = config.resolved
        #: Guards the node. Publications need it only when the tables have changed.
        self.lock = threading.RLock()
        own = self.settings.id
        self.zid: bytes = bytes(own) if own is not None else fresh_zid()
        self.hlc = Hlc(ZenohId(self.zid))
        self.pumps: dict[Pump, None] = {}
        self.closed = False
        #: Services that need an open node, by the name of their room.
        self.services: dict[str, RunningService] = {}
        #: Which of them replies for a key.
        self.claims = Claims()
        self.started = time.monotonic()
        self._marked: list[ChannelSink] = []
        self._groups: list[MulticastPump] = []
        #: The endpoints that it listens on.
        self.listeners = Listeners(self._accepted)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer = NodeTimer(loop.loop, self._tick)
        self._changes = Changes(self.lock, loop)
        self._stopped = False
        #: Whether `open` has not returned yet.
        self.opening = True
        #: Lets threads of the program poll the sockets; None on the program's own loop.
        self._poller: SocketPoller | None = None
        self.poll_for: Callable[[ChannelSink], bool] | None = None
        if isinstance(loop, LoopThread) and is_supported():
            self._poller = SocketPoller(self)
            self.poll_for = self._poller.poll_for
        #: The outboxes that the loop is to flush.
        self.flushing = Flushing(loop, self._poller)
        self.outboxes = OutboxFactory(self.settings, loop, self.flushing)
        self.node = make_node(self.settings, self.zid, self.hlc, self.outboxes.make)
        self.node.routes.guard = self._renew_route
        #: Has stores apply writes of many keys that their senders may write in part.
        self.narrowed_writes = NarrowedWrites()
        self.node.on_narrowed = self.narrowed_writes.add
        self._dispatcher = EventDispatcher(self.node, self.flushing, self._changes)

    # ------------------------------------------------------------------------------- opening

    @classmethod
    def open(cls, config: Config) -> Runtime:
        """Start a node, and wait until it is connected as its configuration says."""
        runtime = cls.prepare(config)
        runtime.begin()
        return runtime

    @classmethod
    def prepare(cls, config: Config) -> Runtime:
        """Start a node that listens, and neither lets anybody in nor connects until `begin`.

        What is declared between the two misses nothing: a client may connect and publish in the
        moment in which the port is there.
        """
        runtime = cls(shared_loop(), config)
        try:
            runtime.loop.run(runtime._listen())
            start_session_services(runtime, HEARING)
        except BaseException:
            runtime.close()
            raise
        return runtime

    def begin(self) -> None:
        """Let neighbours in, connect, and wait as the configuration says."""
        try:
            self.loop.run(self._begin())
            self._wait_until_open()
            self.opening = False
            start_session_services(self, SERVING)
        except BaseException:
            self.close()
            raise

    @classmethod
    async def open_async(cls, config: Config) -> Runtime:
        """Start a node on the event loop of the caller: no thread is started, and none waits."""
        runtime = cls(CallerLoop(), config)
        try:
            refuse_session_services(runtime)
            await runtime._listen()
            await runtime._begin()
            await runtime._until_open()
            runtime.opening = False
        except BaseException:
            await runtime.close_async()
            raise
        return runtime

    async def _listen(self) -> None:
        """Listen, and let links wait; on the loop thread."""
        await self.listeners.open(self.loop.loop, self.settings)
        with self.lock:
            node = self.node
            node.change_settings(replace(node.settings, locators=self.listeners.locators()))
        start_services(self)

    async def _begin(self) -> None:
        """Let in the links that wait, and begin to connect; on the loop thread."""
        now = time.monotonic()
        with self.lock:
            self.node.start(now)
        self._join_groups()
        self.listeners.serve()
        if self.settings.scouting.multicast.enabled:
            scouting = NodeScouting(self)
            self._dispatcher.scouting = scouting
            scouting.start()
        self._tick(now)

    def _join_groups(self) -> None:
        """Join every multicast group among the endpoints to listen on."""
        listening = self.settings.listen
        for endpoint in listening.endpoints:
            if not is_group(endpoint):
                continue
            group = MulticastPump(self, endpoint)
            try:
                group.start()
            except LinkError as error:
                if listening.exit_on_failure:
                    raise
                log.warning("not in the group %s: %s", shown(endpoint), error)
                continue
            self._groups.append(group)
            self.flushing.add(group.outbox, group)

    def _wait_until_open(self) -> None:
        """Wait until the configured return conditions hold."""
        opening = Opening(self)
        with self.lock:
            self._changes.wait(opening.ready, opening.patience)
            opening.check()

    async def _until_open(self) -> None:
        """Wait until the configured return conditions hold, as a task."""
        opening = Opening(self)
        await self._changes.until(opening.ready, opening.patience)
        with self.lock:
            opening.check()

    def scouting(self) -> bool:
        """Whether it scouts by multicast."""
        return self._dispatcher.scouting is not None

    # --------------------------------------------------------------------------------- links

    def _accepted(self, link: UnicastLink) -> None:
        """A neighbour connected to a listener; on the loop thread."""
        with self.lock:
            accepted = not self.closed and self.node.sessions.admission.may_accept(link.dst)
        if not accepted:
            link.close()
            return
        self.commit_all()  # another may have been displaced
        self._meet(link, None)

    def accept_part(self, link: UnicastLink, users: Credentials) -> None:
        """Take a link of another part of the same service; on the loop thread."""
        if self.closed:
            link.close()
            return
        self._meet(link, users)

    def _meet(self, link: UnicastLink, parts: Credentials | None) -> None:
        with self.lock:
            neighbour = self.node.accepted(
                link.src, link.dst, link.stream, link.mtu, time.monotonic(), parts
            )
        self._pump(link, neighbour)

    def _pump(self, link: UnicastLink, neighbour: Neighbour) -> None:
        pump = Pump(self, link, neighbour, self._forget)
        self.pumps[pump] = None
        self.flushing.add(pump.outbox, pump)
        pump.start()
        if self._poller is not None and not pump.closed:
            self._poller.add(pump)
        self.arm()

    def _forget(self, pump: Pump) -> None:
        """Let go of a pump whose link is closed; on the loop thread."""
        if self._poller is not None:
            self._poller.remove(pump)
        self.pumps.pop(pump, None)
        self.flushing.remove(pump.outbox)
        neighbour = pump.neighbour
        if neighbour.face is None and isinstance(neighbour.error, HandshakeError):
            log.info("no session with %s: %s", neighbour.dst, neighbour.error)
        with self.lock:
            self._changes.notify()

    async def _connect(self, attempt: Attempt) -> None:
        """Make a connection that the node wants."""
        try:
            link = await connect(
                EndPoint.parse(attempt.endpoint),
                self.loop.loop,
                self.settings.transport.unicast.open_timeout / 1000,
                self.settings.transport.link,
            )
        except ZError as error:
            log.info("%s", named(attempt.endpoint, str(error)))
            with self.lock:
                self.node.failed(attempt, str(error), time.monotonic())
                self._changes.notify()
            self.arm()
            return
        if self.closed:
            link.close()
            return
        with self.lock:
            neighbour = self.node.connected(
                attempt, link.src, link.dst, link.stream, link.mtu, time.monotonic()
            )
        self._pump(link, neighbour)

    @staticmethod
    def scout(
        config: Config, matcher: int, on_hello: Callable[[DiscoveredNode], None]
    ) -> StandaloneScout:
        """Scout without being a node."""
        settings = config.resolved.scouting.multicast
        return StandaloneScout(shared_loop(), settings, fresh_zid(), matcher, on_hello)

    def progress(self) -> None:
        """Have `open` check its conditions again: a message was received."""
        with self.lock:
            self._changes.notify()

    # ---------------------------------------------------------------------------------- time

    def arm(self) -> None:
        """Set the timer for the node's next deadline; on the loop thread."""
        if not self.closed:
            self._timer.arm(self.node.deadline)

    def arm_soon(self) -> None:
        """Set the timer for the node's next deadline; from any thread."""
        if self._timer.is_earlier(self.node.deadline):
            self.on_the_loop(self.arm)

    def on_the_loop(self, call: Callable[[], None]) -> None:
        """Call something on the loop thread: now if this is it, else soon."""
        if self.loop.is_current():
            call()
        else:
            self.loop.soon(call)

    def _tick(self, now: float) -> None:
        """Have the node do what is due, and begin the connections that it wants."""
        if self.closed:
            return
        self.flushing.flush_now()
        with self.lock:
            self.node.tick(now)
            attempts = self.node.attempts(now)
            self._changes.notify()
        for attempt in attempts:
            task = self.loop.loop.create_task(self._connect(attempt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.commit_all()
        self.arm()

    # ------------------------------------------------------------------------------ programs

    def locked(self) -> LockedNode:
        """A context in which the node's lock is held and `node.now` is set."""
        return LockedNode(self)

    def _renew_route(self, publication: Publication) -> None:
        """Compute anew where a publication goes; from any thread."""
        with self.lock:
            self.node.routes.find_publication(publication)

    def on_loop(self) -> bool:
        """Whether the caller is the loop thread, which must not wait."""
        return self.loop.is_current()

    def new_timestamp(self) -> Timestamp:
        """A timestamp later than all before it."""
        with self.lock:
            return self.hlc.new_timestamp(time.time_ns())

    def neighbours(self) -> list[Neighbour]:
        """The neighbours with an open session."""
        with self.lock:
            sessions = [n for n in self.node.neighbours if n.is_open()]
            return sessions + [
                one for multicast in self.node.sessions.multicasts for one in multicast.members
            ]

    def add_session_listener(self, listener: Callable[[Neighbour, bool], None]) -> None:
        """Call `listener` when sessions open and close, with the node's lock held."""
        with self.lock:
            self._dispatcher.session_listeners.append(listener)

    def remove_session_listener(self, listener: Callable[[Neighbour, bool], None]) -> None:
        """Call `listener` no more."""
        with self.lock, contextlib.suppress(ValueError):
            self._dispatcher.session_listeners.remove(listener)

    # --------------------------------------------------------------------------------- sinks

    def mark(self, sink: ChannelSink) -> None:
        """Commit a channel at the end of this read; the lock is held, or the caller commits."""
        self._marked.append(sink)

    def take_marked(self) -> list[ChannelSink]:
        """Act on the node's events; the channels that were marked. The lock is held."""
        events = self.node.events()
        if events:
            self._dispatcher.dispatch(events)
        marked = self._marked
        if marked:
            self._marked = []
        return marked

    def commit_all(self) -> None:
        """Commit every marked channel."""
        with self.lock:
            marked = self.take_marked()
        for sink in marked:
            sink.commit()

    # -------------------------------------------------------------------------------- ending

    def close(self) -> None:
        """Close every session and link, after what waits was written. Never hangs."""
        self._end_services()
        if not self._leave() or not self.loop.alive:
            return
        if self.loop.is_current():
            self._stop_now()
            return
        try:
            self.loop.run(self._stop(), LAST_WORDS * 2)
        except TimeoutError:
            log.warning("the loop did not stop a node in time")

    def _end_services(self) -> None:
        while self.services:
            _, service = self.services.popitem()
            service.close()

    async def close_async(self) -> None:
        """Close as a task; if it is cancelled every link is closed at once."""
        if self._leave():
            await self._stop()
        else:
            await self._changes.until(lambda: self._stopped, LAST_WORDS)

    def _leave(self) -> bool:
        """Send Close to every neighbour; False if that has been done."""
        with self.lock:
            if self.closed:
                return False
            self.node.close(time.monotonic())
            self.closed = True
            self._changes.notify()
        self.commit_all()
        return True

    async def _stop(self) -> None:
        """Wait until the pumps have written what waits, on the loop, and stop everything."""
        try:
            # Each pump closes itself when its outbox is empty.
            await self._changes.until(lambda: not self.pumps, LAST_WORDS)
        finally:
            tasks = list(self._tasks)
            self._stop_now()
            await join_tasks(tasks)

    def _stop_now(self) -> None:
        self._timer.cancel()
        if self._dispatcher.scouting is not None:
            self._dispatcher.scouting.close()
        self.listeners.close()
        for group in self._groups:
            group.shut()
        for pump in list(self.pumps):
            pump.shut()
        if self._poller is not None:
            self._poller.close()
        for task in self._tasks:
            task.cancel()
        with self.lock:
            self._stopped = True
            self._changes.notify()
