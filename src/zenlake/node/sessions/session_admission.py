"""Which links may become sessions: proven roles, regions, limits; and what is noted if not.

Errors that are raised here refuse the opening; the other side is told the reason code.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.errors import ClosedError, HandshakeError, LimitError, RemoteError
from zenlake.node.core import Core
from zenlake.node.rejections import LIMIT, LOGIN, PENDING, PROTOCOL, UNDECODABLE, host_of
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.node.sessions.openings import room_for
from zenlake.routing.regions import NOT_YET, UNSAID, Placement, Traits, bound, claimed, place
from zenlake.transport.handshake import (
    CONNECTION_TO_SELF,
    GENERIC,
    INVALID,
    MAX_LINKS,
    Terms,
)


class SessionAdmission:
    """Decides which links may become sessions of a node."""

    def __init__(
        self, node: Core, by_zid: dict[bytes, Neighbour], opening: dict[Neighbour, None]
    ) -> None:
        """`by_zid`: the open sessions; `opening`: the links whose session is not open yet."""
        self._node: Core = node
        self._by_zid: dict[bytes, Neighbour] = by_zid
        self._opening: dict[Neighbour, None] = opening
        #: How many sessions are open from each address.
        self._by_host: dict[str, int] = {}

    def may_accept(self, peer: str) -> bool:
        """Whether one more stranger, connected from `peer`, may begin to open a session."""
        wait = self._node.brake.wait(host_of(peer), self._node.moment())
        if wait > 0.0:
            what = "not let in: too many logins of its address failed"
            self._node.rejections.add(LOGIN, peer, what, self._node.moment())
            return False
        settings = self._node.settings
        may, displaced = room_for(
            peer, self._opening, settings.limits.openings, settings.accept_pending
        )
        now = self._node.moment()
        if displaced is not None and displaced.unicast is not None:
            what = "too many of its address are opening a session, and others wait"
            displaced.unicast.fail(HandshakeError(what, GENERIC, PENDING), now)
        if not may:
            what = f"not let in: {len(self._opening)} others are opening a session"
            self._node.rejections.add(PENDING, peer, what, now)
        return may

    def admit(self, neighbour: Neighbour, terms: Terms) -> int:
        """Whether a neighbour may open: -1, or the reason why not."""
        node = self._node
        if terms.zid == node.zid:
            return CONNECTION_TO_SELF
        if node.closing:
            return INVALID
        if not neighbour.attempt:
            self._check_proof(neighbour, terms)
        if terms.assigned != NOT_YET:
            self.place_of(neighbour, terms)  # which raises if there is none
        first = self._by_zid.get(terms.zid)
        if first is not None:
            return -1 if self._may_join(first, terms) else MAX_LINKS
        if (
            not neighbour.attempt
            and terms.link_key is None
            and self._is_opening_to(terms.zid)
            and node.zid > terms.zid
        ):
            # Both connected to each other at once: the link of the greater id stays.
            return MAX_LINKS
        if neighbour.part:
            return -1  # a crowd of strangers does not keep out the parts of this service
        if len(self._by_zid) >= node.settings.max_sessions:
            return INVALID
        if not neighbour.attempt:
            self._check_address(neighbour)
        return -1

    def opened(self, neighbour: Neighbour) -> None:
        """A session is open, and counts for the address of its first link."""
        host = neighbour.host
        self._by_host[host] = self._by_host.get(host, 0) + 1

    def closed(self, neighbour: Neighbour) -> None:
        """A session is over, or goes on over other links than its first one."""
        left = self._by_host.get(neighbour.host, 0) - 1
        if left > 0:
            self._by_host[neighbour.host] = left
        else:
            self._by_host.pop(neighbour.host, None)

    def _check_address(self, neighbour: Neighbour) -> None:
        """Refuse one session more from an address that has all that it may have."""
        most = self._node.settings.limits.sessions
        if self._by_host.get(neighbour.host, 0) >= most:
            raise HandshakeError(
                f"{most} sessions are open from its address (limits/address/sessions)",
                INVALID,
                LIMIT,
            )

    def _check_proof(self, neighbour: Neighbour, terms: Terms) -> None:
        """Refuse who guessed too often, and who claims a role that it has not proven."""
        node = self._node
        host = host_of(neighbour.dst)
        if node.settings.credentials.users is not None and not neighbour.part:
            wait = node.brake.wait(host, node.moment(), terms.user)
            if wait > 0.0:
                raise HandshakeError(
                    f"user '{terms.user[:64]}' must wait: too many logins failed",
                    INVALID,
                    LOGIN,
                )
            node.brake.succeeded(host, terms.user)
        demanded = node.settings.proven.get(terms.whatami)
        if demanded is not None:
            shown = {terms.user, *neighbour.identity().certificates}
            if not demanded & shown:
                raise HandshakeError(
                    "it claims a role that only those named in transport/auth/roles may have, and "
                    "showed neither the user nor the certificate of one of them",
                    INVALID,
                    LOGIN,
                )

    def _claim_of(self, neighbour: Neighbour, terms: Terms) -> int:
        """Where this node's own list puts a neighbour."""
        node = self._node
        subregions = node.settings.south
        if subregions is None:
            return UNSAID
        name = terms.region_name.decode("utf-8", "replace")
        interfaces = neighbour.identity().interfaces
        return claimed(node.mode, subregions, Traits(terms.zid, terms.whatami, name, interfaces))

    def bound_of(self, neighbour: Neighbour) -> Callable[[Terms], int]:
        """Tells in the opening where this node's own list puts a neighbour."""
        return lambda terms: bound(self._claim_of(neighbour, terms))

    def place_of(self, neighbour: Neighbour, terms: Terms) -> Placement:
        """Where a neighbour lies; raises `HandshakeError` if both sides do not agree on that."""
        claim = self._claim_of(neighbour, terms)
        return place(self._node.mode, terms.whatami, claim, terms.assigned)

    def _may_join(self, first: Neighbour, terms: Terms) -> bool:
        """Whether a link may be one more of the session that there is."""
        node = self._node
        session = None if first.unicast is None else first.unicast.terms
        return (
            session is not None
            and terms.link_key is not None
            and terms.link_key == session.link_key
            and (terms.qos, terms.mask) == (session.qos, session.mask)
            and len(first.links) < node.settings.max_links
        )

    def _is_opening_to(self, zid: bytes) -> bool:
        for neighbour in self._opening:
            unicast = neighbour.unicast
            if neighbour.attempt and unicast is not None:
                initiator = unicast.opening.initiator
                terms = None if initiator is None else initiator.terms
                if terms is not None and terms.zid == zid:
                    return True
        return False

    def _is_second_link(self, neighbour: Neighbour) -> bool:
        """Whether the node at its end is connected from the same address, or is being dialled."""
        unicast = neighbour.unicast
        acceptor = None if unicast is None else unicast.opening.acceptor
        terms = None if acceptor is None else acceptor.terms
        if terms is None:
            return False
        first = self._by_zid.get(terms.zid)
        if first is None:
            return self._is_opening_to(terms.zid)
        return first.host == neighbour.host

    def reject(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """Note that a link was given up for what came over it."""
        node = self._node
        unicast = neighbour.unicast
        if isinstance(error, ClosedError) or not isinstance(error, RemoteError):
            # It said goodbye, or the network failed; or it never said anything that could be read.
            stranger = neighbour.face is None and not neighbour.attempt
            if stranger and unicast is not None and unicast.bytes_received:
                acceptor = unicast.opening.acceptor
                if acceptor is not None and acceptor.terms is None:
                    received = unicast.bytes_received
                    what = f"no session: it left after {received} bytes without an InitSyn"
                    node.rejections.add(UNDECODABLE, neighbour.dst, what, now)
            return
        if neighbour.face is not None:
            reason = error.about if isinstance(error, LimitError) else PROTOCOL
            what = f"session closed: {error}"
            node.rejections.add(reason, neighbour.dst, what, now, neighbour.user())
        elif not neighbour.attempt:
            reason = UNDECODABLE
            if isinstance(error, HandshakeError):
                if error.reason == MAX_LINKS and self._is_second_link(neighbour):
                    return  # who finds a node in two ways dials twice
                reason = error.about
            user = ""
            if reason == LOGIN:
                acceptor = None if unicast is None else unicast.opening.acceptor
                user = "" if acceptor is None else acceptor.auth.tried
                if user and not neighbour.part:  # a guess; who shows nothing at all guesses nothing
                    node.brake.failed(host_of(neighbour.dst), user, now)
            node.rejections.add(reason, neighbour.dst, f"no session: {error}", now, user)
