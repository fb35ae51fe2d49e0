"""Sessions open, gain and lose links, and end: what that means for the rest of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zenlake.errors import ClosedError, HandshakeError, RemoteError
from zenlake.node.guard import intercept, papers_of
from zenlake.node.rejections import KEY, PROTOCOL, UNDECODABLE
from zenlake.routing.face import Face
from zenlake.routing.regions import NOT_YET, PEER, UNSAID, Place, Traits, bound, claimed, place
from zenlake.transport.handshake import CONNECTION_TO_SELF, INVALID, MAX_LINKS, Terms
from zenlake.values.qos import QOS_CONTROL
from zenlake.wire.codec_declare import DeclareFinal
from zenlake.wire.codec_network import Declare

if TYPE_CHECKING:
    from zenlake.node.neighbour import Neighbour
    from zenlake.node.node import Node


def admit(node: Node, neighbour: Neighbour, terms: Terms) -> int:
    """Whether a neighbour may open: -1, or the reason why not."""
    if terms.zid == node.zid:
        return CONNECTION_TO_SELF
    if node.closing:
        return INVALID
    if terms.assigned != NOT_YET:
        place_of(neighbour, terms)  # which raises if there is none
    first = node.by_zid.get(terms.zid)
    if first is not None:
        return -1 if _may_join(node, first, terms) else MAX_LINKS
    if (
        not neighbour.attempt
        and terms.link_key is None
        and _is_opening_to(node, terms.zid)
        and node.zid > terms.zid
    ):
        # Both connected to each other at once: the link of the greater id stays.
        return MAX_LINKS
    if len(node.by_zid) >= node.settings.max_sessions:
        return INVALID
    return -1


def claim_of(neighbour: Neighbour, terms: Terms) -> int:
    """Where this node's own list puts a neighbour."""
    node = neighbour.node
    subregions = node.settings.south
    if subregions is None:
        return UNSAID
    name = terms.region_name.decode("utf-8", "replace")
    interfaces = papers_of(neighbour).interfaces
    return claimed(node.mode, subregions, Traits(terms.zid, terms.whatami, name, interfaces))


def bound_of(neighbour: Neighbour) -> Callable[[Terms], int]:
    """Tells in the opening where this node's own list puts a neighbour."""
    return lambda terms: bound(claim_of(neighbour, terms))


def place_of(neighbour: Neighbour, terms: Terms) -> Place:
    """Where a neighbour lies; raises `HandshakeError` if both sides do not agree on that."""
    claim = claim_of(neighbour, terms)
    return place(neighbour.node.mode, terms.whatami, claim, terms.assigned)


def _may_join(node: Node, first: Neighbour, terms: Terms) -> bool:
    """Whether a link may be one more of the session that there is."""
    session = None if first.unicast is None else first.unicast.terms
    return (
        session is not None
        and terms.link_key is not None
        and terms.link_key == session.link_key
        and (terms.qos, terms.mask) == (session.qos, session.mask)
        and len(first.links) < node.settings.max_links
    )


def _is_opening_to(node: Node, zid: bytes) -> bool:
    for neighbour in node.neighbours:
        unicast = neighbour.unicast
        if neighbour.attempt and unicast is not None and not neighbour.is_open():
            initiator = unicast.initiator
            terms = None if initiator is None else initiator.terms
            if terms is not None and terms.zid == zid:
                return True
    return False


def opened(node: Node, neighbour: Neighbour, terms: Terms, now: float) -> None:
    """A session is open: tell it what it must know, ask what we must know."""
    node.now = now
    unicast = neighbour.unicast
    assert unicast is not None
    first = node.by_zid.get(terms.zid)
    if first is not None:
        _join(node, first, neighbour, terms)
        return
    face = Face(node.fresh_face(), terms.zid, terms.whatami, unicast.outbox)
    lies = place_of(neighbour, terms)
    face.lie(node.mode, lies.region, lies.serves)
    # Only peers of one region tell each other unasked, and when they have told all.
    mutual = face.kind == PEER and not face.south and not face.serves
    face.settled = not mutual
    neighbour.face = face
    neighbour.links = [neighbour]
    intercept(neighbour, terms)
    node.by_zid[terms.zid] = neighbour
    face.on_illegal_key = _reporter(neighbour)
    node.plan.opened(neighbour.attempt)
    node.wake_by(unicast.deadline)
    node.surroundings.greet(face)
    node.wake_by(node.surroundings.deadline())
    node.tables.add(face, now)
    node.local.greet(face, now)
    if mutual:
        face.send(Declare(interest_id=0, qos=QOS_CONTROL, body=DeclareFinal()))
    if node.on_session is not None:
        node.on_session(neighbour, True)


def _reporter(neighbour: Neighbour) -> Callable[[str], None]:
    """Takes what is wrong with keys that a neighbour names."""
    node = neighbour.node

    def report(flaw: str) -> None:
        node.rejections.add(KEY, neighbour.dst, f"ignored: {flaw}", node.now)

    return report


def _reject(node: Node, neighbour: Neighbour, error: Exception | None, now: float) -> None:
    """Note that a link was given up for what came over it."""
    unicast = neighbour.unicast
    if isinstance(error, ClosedError) or not isinstance(error, RemoteError):
        # It said goodbye, or the network failed; or it never said anything that could be read.
        stranger = neighbour.face is None and not neighbour.attempt
        if stranger and unicast is not None and unicast.bytes_received:
            acceptor = unicast.acceptor
            if acceptor is not None and acceptor.terms is None:
                what = (
                    f"no session: it left after {unicast.bytes_received} bytes without an InitSyn"
                )
                node.rejections.add(UNDECODABLE, neighbour.dst, what, now)
        return
    if neighbour.face is not None:
        node.rejections.add(PROTOCOL, neighbour.dst, f"session closed: {error}", now)
    elif not neighbour.attempt:
        reason = UNDECODABLE
        if isinstance(error, HandshakeError):
            reason = error.about
        node.rejections.add(reason, neighbour.dst, f"no session: {error}", now)


def _join(node: Node, first: Neighbour, neighbour: Neighbour, terms: Terms) -> None:
    """A link joins the session of another."""
    unicast = neighbour.unicast
    face = first.face
    assert unicast is not None
    assert first.unicast is not None
    assert face is not None
    unicast.share(first.unicast)
    neighbour.face = face
    neighbour.links = first.links
    neighbour.links.append(neighbour)
    # What comes over a link is judged by what is known of that link.
    egress = face.egress
    intercept(neighbour, terms)
    face.egress = egress
    node.plan.opened(neighbour.attempt)
    node.wake_by(unicast.deadline)
    _find_ways(node, first.links)
    if node.on_session is not None:
        node.on_session(neighbour, True)


def _find_ways(node: Node, links: list[Neighbour]) -> None:
    """Find out anew which link of a session is for what."""
    face = links[0].face
    assert face is not None
    ways = [link.way() for link in links]
    face.outbox = ways[0][1]
    face.ways = ways if len(ways) > 1 else []
    node.tables.version += 1


def closed(node: Node, neighbour: Neighbour, error: Exception | None, now: float) -> None:
    """A link is gone, and with its last one the session; or it never began."""
    node.now = now
    if neighbour in node.neighbours:
        node.neighbours.remove(neighbour)
    if neighbour in neighbour.links:
        neighbour.links.remove(neighbour)
    face = neighbour.face
    _reject(node, neighbour, error, now)
    neighbour.fold()
    node.past.add(neighbour)
    if face is not None:
        node.stopped_in.add(neighbour.stopped_in)
        node.stopped_out.add(neighbour.stopped_out)
    if face is not None and neighbour.links:
        # The session goes on over its other links.
        node.by_zid[face.zid] = neighbour.links[0]
        _find_ways(node, neighbour.links)
        if node.on_session is not None:
            node.on_session(neighbour, False)
    elif face is not None:
        if node.by_zid.get(face.zid) is neighbour:
            del node.by_zid[face.zid]
            node.plan.released(face.zid, now)
        face.closed = True
        node.questions.remove(face)
        node.tables.remove(face)
        node.surroundings.part(face)
        node.wake_by(node.surroundings.deadline())
        if node.on_session is not None:
            node.on_session(neighbour, False)
    if neighbour.attempt:
        unicast = neighbour.unicast
        initiator = None if unicast is None else unicast.initiator
        if face is None and initiator is not None and initiator.terms is not None:
            zid = initiator.terms.zid
            if zid in node.by_zid:
                node.plan.taken(neighbour.attempt, zid, now)
        text = str(error) if error is not None else "closed"
        node.plan.over(neighbour.attempt, face is not None, text, now)
        node.wake_by(node.plan.deadline)
