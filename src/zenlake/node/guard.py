"""Where a node's policy meets its neighbours: who each is, and what it may say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenlake.clock.zid import ZenohId
from zenlake.routing.face import CONTROL_QOS, Face
from zenlake.routing.policy.gate import Gate, Interceptors
from zenlake.routing.policy.messages import FLOWS, KINDS, Verdict
from zenlake.routing.policy.subject import Subject
from zenlake.wire.codec_declare import (
    DeclareFinal,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import Declare, Interest, Push, Request, Response
from zenlake.wire.message import Message

if TYPE_CHECKING:
    from zenlake.node.neighbour import Neighbour
    from zenlake.transport.handshake import Terms

#: What rules call the protocols of links that have several names.
PROTOCOLS: Final[dict[str, str]] = {"wss": "ws"}


class Papers:
    """What a link knows of a neighbour."""

    __slots__ = ("certificates", "interfaces")

    def __init__(self, interfaces: tuple[str, ...], certificates: tuple[str, ...]) -> None:
        """The interfaces of this machine that it uses, and the names in certificates shown."""
        self.interfaces: tuple[str, ...] = interfaces
        self.certificates: tuple[str, ...] = certificates


#: Of a link that knows nothing.
NO_PAPERS: Final = Papers((), ())


def papers_of(neighbour: Neighbour) -> Papers:
    """What the link of a neighbour knows of it."""
    ask = neighbour.papers
    return NO_PAPERS if ask is None else ask()


def subject_of(neighbour: Neighbour, terms: Terms) -> Subject:
    """Who a neighbour is, as far as rules can tell."""
    protocol = neighbour.src.partition("/")[0]
    papers = papers_of(neighbour)
    return Subject(
        interfaces=papers.interfaces,
        cert_common_names=papers.certificates,
        username=terms.user or None,
        link_protocol=PROTOCOLS.get(protocol, protocol),
        zid=ZenohId(terms.zid),
    )


def intercept(neighbour: Neighbour, terms: Terms) -> None:
    """Have the policy look at what a neighbour says and hears."""
    policy = neighbour.node.policy
    interceptors: Interceptors | None = None
    if not policy.is_idle():
        interceptors = policy.for_neighbour(subject_of(neighbour, terms))
    neighbour.intercept(interceptors)
    if interceptors is not None:
        _listen_to(neighbour, interceptors.ingress, FLOWS[0])
        _listen_to(neighbour, interceptors.egress, FLOWS[1])


def _listen_to(neighbour: Neighbour, gate: Gate | None, flow: str) -> None:
    if gate is None:
        return

    def stopped(reason: str, kind: int, key: str) -> None:
        tell = neighbour.node.on_stopped
        if tell is not None:
            tell(neighbour, flow, reason, KINDS[kind], key)

    gate.stopped = stopped


def admitted(neighbour: Neighbour, gate: Gate, message: Message, reliable: bool) -> bool:
    """Whether a message may come in; if not, whoever waits for an end of it is given one."""
    face = neighbour.face
    if face is None:
        return True
    key = key_of(face, message)
    if key is None:
        return True  # it means nothing, and will be ignored
    node = neighbour.node
    verdict = gate.judge(message, key, node.now)
    if verdict is Verdict.PASS:
        if isinstance(message, (Push, Request)):
            message.qos = gate.qos(message, key, reliable)
        return True
    if isinstance(message, Request):
        node.questions.refuse(face, message)
    elif isinstance(message, Interest):
        final = DeclareFinal()
        face.send(Declare(interest_id=message.id, qos=CONTROL_QOS, body=final))
    return False


def key_of(face: Face, message: Message) -> str | None:
    """The whole key of a message, empty if it names none; None if it makes no sense."""
    keys = face.keys
    if isinstance(message, (Push, Request, Response)):
        return keys.resolve(message.scope, message.sender_mapping, message.suffix)
    if isinstance(message, Interest):
        if not message.restricted:
            return ""
        return keys.resolve(message.scope, message.sender_mapping, message.suffix)
    if isinstance(message, Declare):
        body = message.body
        if isinstance(body, (DeclareSubscriber, DeclareQueryable, DeclareToken)):
            return keys.resolve(body.scope, body.sender_mapping, body.suffix)
        if isinstance(body, (UndeclareSubscriber, UndeclareQueryable, UndeclareToken)):
            named = body.key
            if named is not None:
                return keys.resolve(named.scope, named.sender_mapping, named.suffix)
    return ""
