"""Where a node's policy meets a neighbour: the subject that it is, and what may come from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.clock.zid import ZenohId
from zenlake.keys.asker import with_asker
from zenlake.keys.readable import ReadableKeys, asks_of_many
from zenlake.node.core import Core
from zenlake.node.narrowed_write import NarrowedWrite
from zenlake.routing.face import CONTROL_QOS, Face
from zenlake.routing.policy.gate import PolicyGate
from zenlake.routing.policy.messages import (
    KINDS,
    PUT,
    REPLY,
    PolicyVerdict,
    attachment_size,
    kind_of,
    kinds_of_query,
    payload_size,
)
from zenlake.routing.policy.subject import Subject
from zenlake.routing.regions import ROUTER
from zenlake.transport.handshake import Terms
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
from zenlake.wire.codec_zenoh import Put, Query
from zenlake.wire.message import Message

#: What rules call the protocols of links that have several names.
PROTOCOLS: Final[dict[str, str]] = {"wss": "ws"}
#: What a gate gives as its reason, and as what that is counted.
STOPS: Final[dict[str, str]] = {
    "denied": "access-control",
    "too large": "low-pass",
    "downsampled": "downsampling",
}


class LinkIdentity:
    """What a link knows of a neighbour."""

    __slots__ = ("certificates", "interfaces")

    def __init__(self, interfaces: tuple[str, ...], certificates: tuple[str, ...]) -> None:
        """The interfaces of this machine that it uses, and the names in certificates shown."""
        self.interfaces: tuple[str, ...] = interfaces
        self.certificates: tuple[str, ...] = certificates


#: Random bytes in the name of an asker.
ASKER_BYTES: Final = 8

#: Of a link that knows nothing.
NO_IDENTITY: Final = LinkIdentity((), ())


def subject_of(src: str, identity: LinkIdentity, terms: Terms, part: bool = False) -> Subject:
    """The neighbour at the other end of a link from `src`, as far as rules can tell.

    `part`: it came over the listener that is for parts of the same service.
    """
    protocol = src.partition("/")[0]
    return Subject(
        interfaces=identity.interfaces,
        cert_common_names=identity.certificates,
        username=terms.user or None,
        link_protocol=PROTOCOLS.get(protocol, protocol),
        zid=ZenohId(terms.zid),
        part=part,
    )


def reporter(node: Core, face: Face | None, flow: str) -> Callable[[str, int, str], None]:
    """Takes what a gate stops of a neighbour: it is counted, and the node's edge is told."""

    def stopped(reason: str, kind: int, key: str) -> None:
        if kind <= REPLY:
            node.drops.note(STOPS[reason], key, 1)
        tell = node.on_stopped
        if tell is not None:
            tell(face, flow, reason, KINDS[kind], key)

    return stopped


def admitted(
    node: Core, face: Face | None, gate: PolicyGate, message: Message, reliable: bool
) -> bool:
    """Whether a message may come in; if not, a neighbour that waits for its end is given one."""
    if face is None:
        return True
    key = key_of(face, message)
    if key is None:
        return True  # it means nothing, and will be ignored
    verdict = gate.judge(message, key, node.now)
    if verdict is PolicyVerdict.PASS and _is_put(message) and not gate.permits(PUT, key):
        verdict = PolicyVerdict.RESPONSE_FINAL
    if verdict is PolicyVerdict.PASS:
        if isinstance(message, (Push, Request)):
            message.qos = gate.qos(message, key, reliable)
        return True
    if isinstance(message, Push):
        _narrow(node, face, gate, message, key, reliable)
    elif isinstance(message, Request):
        node.queries.refuse(face, message)
    elif isinstance(message, Interest):
        final = DeclareFinal()
        face.send(Declare(interest_id=message.id, qos=CONTROL_QOS, body=final))
    return False


def _narrow(node: Core, face: Face, gate: PolicyGate, push: Push, key: str, reliable: bool) -> None:
    """Have stores of this node apply a write of many keys to those that its sender may write."""
    tell = node.on_narrowed
    body = push.body
    if tell is None or (isinstance(body, Put) and body.shm):
        return
    writable = gate.writable(kind_of(push), key, payload_size(push) + attachment_size(push))
    if writable is None:
        return
    stamps = node.stamps
    if stamps is None or not stamps.stamp(body):
        return  # without a time nobody could tell what it is newer than
    tell(NarrowedWrite(face.zid, key, push, reliable, writable))


def _is_put(message: Message) -> bool:
    """Whether a message is a question that has a storage put something."""
    if not isinstance(message, Request):
        return False
    return PUT in kinds_of_query(message.body.parameters)


def restrict(face: Face, message: Request, readable: ReadableKeys) -> None:
    """Have a question that may be answered about many keys say which of them its asker may read."""
    body = message.body
    if isinstance(body, Query):
        key = key_of(face, message)
        if key is not None and asks_of_many(key, body.parameters):
            body.parameters = readable.restrict(body.parameters)


def name_asker(node: Core, face: Face, message: Request) -> None:
    """Have a query of a neighbour of this router name its asker, if turns may depend on it.

    A router is believed: it named the asker already, or could not.
    """
    body = message.body
    if node.mode != ROUTER or face.role == ROUTER or not isinstance(body, Query):
        return
    key = key_of(face, message)
    if key is None or not (key.startswith("@") or "_" in body.parameters):
        return
    if not face.asker:
        face.asker = node.chance(ASKER_BYTES).hex()
    body.parameters = with_asker(key, body.parameters, face.asker)


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
