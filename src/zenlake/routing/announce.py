"""What is told to a neighbour of a key, in the words of the protocol."""

from __future__ import annotations

from zenlake.routing.face import CONTROL_QOS, Face
from zenlake.routing.policy.messages import DECLARE_SUBSCRIBER
from zenlake.routing.resources import QUERYABLE, SUBSCRIBER
from zenlake.wire.codec_declare import (
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    KeyExt,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import Declare


def announce(face: Face, kind: int, id: int, key: str, info: int, interest: int | None) -> None:
    """Tell a neighbour of a key, in answer to an interest of its or on our own account."""
    # The policy counts the kinds of declarations in the same order.
    if not face.may_learn(DECLARE_SUBSCRIBER + kind, key):
        return
    may_declare = not face.south or (face.wants_keys and id != 0)
    scope, mine, suffix = face.wire_key(key, may_declare)
    body: DeclareSubscriber | DeclareQueryable | DeclareToken
    if kind == SUBSCRIBER:
        body = DeclareSubscriber(id=id, scope=scope, suffix=suffix, sender_mapping=mine)
    elif kind == QUERYABLE:
        body = DeclareQueryable(id=id, scope=scope, suffix=suffix, sender_mapping=mine, info=info)
    else:
        body = DeclareToken(id=id, scope=scope, suffix=suffix, sender_mapping=mine)
    face.send(Declare(interest_id=interest, qos=CONTROL_QOS, body=body))


def retract(face: Face, kind: int, id: int, key: str) -> None:
    """Tell a neighbour that nobody declares a key any more."""
    if not face.may_learn(DECLARE_SUBSCRIBER + kind, key):
        return
    body: UndeclareSubscriber | UndeclareQueryable | UndeclareToken
    null = KeyExt(scope=0)
    if kind == SUBSCRIBER:
        body = UndeclareSubscriber(id=id)
    elif kind == QUERYABLE:
        body = UndeclareQueryable(id=id, key=null)
    else:
        body = UndeclareToken(id=id, key=null)
    face.send(Declare(qos=CONTROL_QOS, body=body))
