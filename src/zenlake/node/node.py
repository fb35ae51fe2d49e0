"""Everything a node decides, with no socket, no clock and no thread.

The edge gives it links and time, and does what it asks:

    node.start(now)
    node.attempts(now)                 connections to make; then connected() or failed()
    node.connected(...), node.accepted(...)   a link is up: a Neighbour to feed and to empty
    neighbour.unicast.receive(data, now), neighbour.unicast.outbox.take()
    node.deadline, node.tick(now)

Programs declare and ask through `local`, and publish through `Publication`, which needs no lock.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.errors import RemoteError
from zenlake.node.core import Core
from zenlake.node.programs.local import Local
from zenlake.node.routes.routes import Routes
from zenlake.node.sessions.connect import Attempt, ConnectPlan
from zenlake.node.sessions.multicast import MulticastSession
from zenlake.node.sessions.neighbour import Neighbour, outbox_for
from zenlake.node.sessions.sessions import Sessions, purpose_of
from zenlake.node.sessions.topology import Topology
from zenlake.node.settings import NodeSettings
from zenlake.node.stamps import Timestamper
from zenlake.routing.face import Face, InterestOut, QueryBranch
from zenlake.routing.mesh import Mesh
from zenlake.routing.policy.policy import Policy
from zenlake.transport.auth import Credentials
from zenlake.transport.multicast_terms import MulticastTerms
from zenlake.transport.outbox import Outbox
from zenlake.transport.turn import Turn
from zenlake.transport.unicast import CLOSED
from zenlake.wire.codec_zenoh import Query


class Node(Core):
    """A client, a peer or a router."""

    def __init__(
        self,
        settings: NodeSettings,
        cookie: Callable[[], bytes],
        random: Callable[[], float],
        make_outbox: Callable[[bool, int], Outbox] = outbox_for,
        stamps: Timestamper | None = None,
    ) -> None:
        """`cookie` gives bytes nobody can guess, `random` a number from 0 to 1.

        With `stamps`, values that pass without a time are given one.
        """
        super().__init__(settings, cookie, random, stamps)
        self.local: Local = Local(self)
        self.routes: Routes = Routes(self, self.local)
        self.local.routes = self.routes
        self.topology: Topology = Topology(
            settings, self.tables, self.borders.meshes, self.locators, self.time
        )
        self.sessions: Sessions = Sessions(
            self, self.routes, self.local, self.topology, make_outbox
        )
        self.mesh: Mesh | None = self.topology.mesh
        #: The same objects as those of `sessions`.
        self.plan: ConnectPlan = self.sessions.plan
        self._links: dict[Neighbour, None] = self.sessions.neighbours
        self.by_zid: dict[bytes, Neighbour] = self.sessions.by_zid

    @property
    def neighbours(self) -> list[Neighbour]:
        """A neighbour for each link, as of now."""
        return list(self._links)

    # -------------------------------------------------------------------------------- time

    def start(self, now: float) -> None:
        """Begin to connect."""
        self.now = now
        self.plan.configure(self.settings.connect, now)
        self.wake_by(now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self.now = now
        self.sessions.leases.tick(now)
        deadline = self.sessions.leases.next()
        for multicast in self.sessions.multicasts:
            if multicast.group.deadline <= now:
                multicast.group.tick(now)
            deadline = min(deadline, multicast.group.deadline)
        self.topology.tick(now)
        self.tables.expire(now)
        self.queries.expire(now)
        self.local.expire(now)
        self.deadline = min(
            deadline,
            self.sessions.discovered.tick(now),
            self.topology.deadline(),
            self.tables.deadline(),
            self.queries.deadline(),
            self.local.deadline(),
            self.plan.deadline,
        )

    # --------------------------------------------------------------------------------- links

    def attempts(self, now: float) -> list[Attempt]:
        """The connections that the edge should make now."""
        self.now = now
        started = self.plan.due(now) + self.sessions.discovered.take_started()
        self.wake_by(self.plan.deadline)
        return started

    def connect(self, endpoint: str, now: float) -> None:
        """Keep a connection to one more endpoint."""
        self.plan.add(endpoint, now)
        self.wake_by(now)

    def change_endpoints(self, endpoints: tuple[str, ...], now: float) -> None:
        """Keep connections to these endpoints, and to no others that were configured."""
        self.now = now
        unwanted = self.plan.change(endpoints, now)
        for neighbour in self.neighbours:
            unicast = neighbour.unicast
            if neighbour.attempt in unwanted and unicast is not None:
                unicast.close(now)
        self.wake_by(now)

    def change_settings(self, settings: NodeSettings) -> None:
        """Behave otherwise from now on, where that can be changed: places, weights, policy."""
        before = self.settings
        self.settings = settings
        self.topology.change(settings)
        if settings.locators != before.locators:
            self.topology.relocated()
        if settings.link_weights != before.link_weights:
            self.topology.reweighed(dict(settings.link_weights))
            self.wake_by(self.topology.deadline())
        if settings.policy is not before.policy:
            self.obey(settings.policy)

    def failed(self, attempt: Attempt, error: str, now: float) -> None:
        """A connection could not be made."""
        self.now = now
        self.plan.over(attempt.id, False, error, now)
        self.wake_by(self.plan.deadline)

    def connected(
        self, attempt: Attempt, src: str, dst: str, stream: bool, mtu: int, now: float
    ) -> Neighbour:
        """A connection was made: say the first word."""
        patience = self.settings.open_timeout
        purpose = purpose_of(attempt.endpoint)
        neighbour = self.sessions.meet(src, dst, stream, mtu, attempt.id, patience, purpose)
        self.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        unicast.connect(now, attempt.expected)
        self.wake_by(self.sessions.leases.add(neighbour))
        return neighbour

    def accepted(
        self,
        src: str,
        dst: str,
        stream: bool,
        mtu: int,
        now: float,
        parts: Credentials | None = None,
    ) -> Neighbour:
        """A link was accepted: wait for the InitSyn of the node at its other end.

        `parts`: the users of a listener that is for parts of the same service, and for nobody else.
        """
        patience = self.settings.accept_timeout
        neighbour = self.sessions.meet(src, dst, stream, mtu, 0, patience, parts=parts)
        self.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        unicast.listen(now, self.cookie())
        self.wake_by(self.sessions.leases.add(neighbour))
        return neighbour

    def receive(self, neighbour: Neighbour, data: bytes, now: float) -> None:
        """Bytes came over a neighbour's link; what is wrong with them ends its session."""
        self.now = now
        unicast = neighbour.unicast
        if unicast is None:
            return
        turn = self.turn if len(self._links) > 1 else None
        unicast.turn = turn
        before = unicast.received
        try:
            unicast.receive(data, now)
        except RemoteError as error:
            neighbour.settle()
            unicast.fail(error, now)
            return
        neighbour.settle()
        # Where the session is over nothing is handled, and no turn has begun.
        if turn is not None and unicast.state != CLOSED:
            self._had(neighbour, turn, unicast.received - before)

    def go_on(self, neighbour: Neighbour, now: float) -> None:
        """Another turn of a neighbour that sent more than one took (`unicast.behind`)."""
        self.now = now
        unicast = neighbour.unicast
        if unicast is None:
            return
        turn = unicast.turn
        before = unicast.received
        try:
            unicast.go_on(now)
        except RemoteError as error:
            neighbour.settle()
            unicast.fail(error, now)
            return
        neighbour.settle()
        if turn is not None:
            self._had(neighbour, turn, unicast.received - before)

    def _had(self, neighbour: Neighbour, turn: Turn, received: int) -> None:
        """A neighbour had a turn: who uses up one after the other is watched."""
        unicast = neighbour.unicast
        took = turn.took()
        if unicast is None or (not unicast.behind and took < turn.seconds):
            self.brief += 1
            neighbour.brief += 1
            return
        own = neighbour.brief
        neighbour.brief = 0
        declarations = turn.declarations
        others = turn.spent - declarations
        self.busy.used_up(
            neighbour.host,
            neighbour.user(),
            seconds=took,
            declarations=declarations,
            samples=max(0, received - turn.spent),
            messages=others,
            heard=self.brief,
            own=own,
            now=self.now + took,
        )

    def lost(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """A neighbour's link is gone."""
        self.now = now
        unicast = neighbour.unicast
        if unicast is not None:
            unicast.lost(error, now)

    def close(self, now: float) -> None:
        """Close all sessions, with a Close message to each neighbour."""
        self.now = now
        self.closing = True
        self.plan.stopped = True
        self.sessions.discovered.clear()
        for neighbour in self.neighbours:
            unicast = neighbour.unicast
            if unicast is not None:
                unicast.close(now)
        for multicast in self.sessions.multicasts:
            multicast.group.close(now)
        self.local.end()

    # ---------------------------------------------------------------------------------- groups

    def join(
        self, place: str, terms: MulticastTerms, outbox: Outbox, now: float
    ) -> MulticastSession:
        """Be a member of a multicast group from now on."""
        self.now = now
        multicast = self.sessions.join(place, terms, outbox)
        multicast.group.start(now)
        self.wake_by(multicast.group.deadline)
        return multicast

    # ------------------------------------------------------------------------------- policy

    def obey(self, policy: Policy) -> None:
        """Have another policy from now on; what was declared under the old one stays."""
        self.policy = policy
        for neighbour in self.neighbours:
            unicast = neighbour.unicast
            if unicast is not None and unicast.terms is not None and neighbour.face is not None:
                neighbour.obey(unicast.terms)
        for multicast in self.sessions.multicasts:
            multicast.obey()
        self.tables.version += 1

    # ------------------------------------------------------------------------ told by the tables

    def changed(self, kind: int, key: str, face: Face, added: bool) -> None:
        """An entity was declared or undeclared: matching and liveliness may have changed."""
        self.local.changed(kind, key, face, added)

    def interest_final(self, interest: InterestOut) -> None:
        """An interest of one of our programs has been answered."""
        self.local.liveliness.interest_final(interest)

    def token_present(self, interest: InterestOut, key: str) -> None:
        """A token is alive now."""
        self.local.liveliness.token_present(interest, key)

    def deliver_query(self, branch: QueryBranch, key: str, body: Query, target: int) -> None:
        """A query for our own queryables."""
        self.local.deliver_query(branch, key, body, target)
