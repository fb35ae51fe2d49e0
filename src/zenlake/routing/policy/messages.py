"""The nine kinds of messages that rules speak of, and which message is of which kind.

    PUSH with PUT or DEL                     put, delete
    REQUEST, RESPONSE (errors too)           query, reply
    REQUEST with the parameter `_ack_put`    put, besides
    declare or undeclare a subscriber        declare_subscriber
    declare or undeclare a queryable         declare_queryable
    declare or undeclare a token             liveliness_token
    INTEREST in tokens, current              liveliness_query
    INTEREST in tokens, future or both       declare_liveliness_subscriber

All the rest (key expressions, finals, maintenance, interests in subscribers and queryables, the
end of an interest) says nothing worth hiding, or cannot be understood without what was refused
before it, and passes.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from zenlake.keys.parameters import Parameters
from zenlake.keys.query_parameters import ACK_PUT
from zenlake.wire.codec_declare import (
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import Declare, Interest, Push, Request, Response
from zenlake.wire.codec_zenoh import Del, Err, Put, Query, Reply, Slice
from zenlake.wire.message import Message

__all__ = [
    "DECLARE_LIVELINESS_SUBSCRIBER",
    "DECLARE_QUERYABLE",
    "DECLARE_SUBSCRIBER",
    "DELETE",
    "EGRESS",
    "FLOWS",
    "INGRESS",
    "KINDS",
    "LIVELINESS_QUERY",
    "LIVELINESS_TOKEN",
    "PUT",
    "QUERY",
    "REPLY",
    "UNFILTERED",
    "PolicyVerdict",
    "attachment_size",
    "flows_of",
    "is_undeclaration",
    "kind_of",
    "kinds_of_query",
    "payload_size",
    "refusal_of",
]

INGRESS: Final = 0
EGRESS: Final = 1
FLOWS: Final = ("ingress", "egress")

PUT: Final = 0
DELETE: Final = 1
QUERY: Final = 2
REPLY: Final = 3
DECLARE_SUBSCRIBER: Final = 4
DECLARE_QUERYABLE: Final = 5
LIVELINESS_TOKEN: Final = 6
LIVELINESS_QUERY: Final = 7
DECLARE_LIVELINESS_SUBSCRIBER: Final = 8
UNFILTERED: Final = -1
KINDS: Final = (
    "put",
    "delete",
    "query",
    "reply",
    "declare_subscriber",
    "declare_queryable",
    "liveliness_token",
    "liveliness_query",
    "declare_liveliness_subscriber",
)
"""The names of the kinds in a configuration; the number of a kind is its place here."""

_CURRENT: Final = 1  # the mode of an interest


class PolicyVerdict(Enum):
    """What the node does with a message.

    The last two drop it as well, and a neighbour waits for an end: the node answers a message that
    came in, and takes one that may not go out for answered.
    """

    PASS = 0
    DROP = 1
    RESPONSE_FINAL = 2
    DECLARE_FINAL = 3


def flows_of(names: tuple[str, ...] | None) -> tuple[int, ...]:
    """The flows that a list of a configuration names; both if there is no list."""
    return (INGRESS, EGRESS) if names is None else tuple({FLOWS.index(name) for name in names})


def kind_of(message: Message) -> int:
    """The kind of a network message, or `UNFILTERED`."""
    if isinstance(message, Push):
        return PUT if isinstance(message.body, Put) else DELETE
    if isinstance(message, Request):
        return QUERY
    if isinstance(message, Response):
        return REPLY
    if isinstance(message, Declare):
        return _kind_of_declaration(message)
    if isinstance(message, Interest) and message.mode and message.tokens:
        return LIVELINESS_QUERY if message.mode == _CURRENT else DECLARE_LIVELINESS_SUBSCRIBER
    return UNFILTERED


def kinds_of_query(parameters: str) -> tuple[int, ...]:
    """The kinds that a query is of: one with `_ack_put` has a storage put its payload."""
    if ACK_PUT not in parameters:
        return (QUERY,)
    for name, value in Parameters(parameters):
        if name == ACK_PUT and value != "false":
            return (QUERY, PUT)
    return (QUERY,)


def _kind_of_declaration(message: Declare) -> int:
    body = message.body
    if isinstance(body, (DeclareSubscriber, UndeclareSubscriber)):
        return DECLARE_SUBSCRIBER
    if isinstance(body, (DeclareQueryable, UndeclareQueryable)):
        return DECLARE_QUERYABLE
    if isinstance(body, (DeclareToken, UndeclareToken)):
        return LIVELINESS_TOKEN
    return UNFILTERED


def is_undeclaration(message: Message) -> bool:
    """Whether it takes a declaration back; such a message may leave out its key."""
    return isinstance(message, Declare) and isinstance(
        message.body, (UndeclareSubscriber, UndeclareQueryable, UndeclareToken)
    )


def refusal_of(message: Message) -> PolicyVerdict:
    """How to drop a message so that no query waits for ever."""
    if isinstance(message, Request):
        return PolicyVerdict.RESPONSE_FINAL
    if isinstance(message, Interest):
        return PolicyVerdict.DECLARE_FINAL
    return PolicyVerdict.DROP


def payload_size(message: Message) -> int:
    """The bytes of its value: of a sample, of the body of a query, of an error."""
    body = _content(message)
    if isinstance(body, (Put, Err)):
        return _sliced(body.slices) if body.shm else len(body.payload)
    if isinstance(body, Query) and body.body is not None:
        return len(body.body.payload)
    return 0


def attachment_size(message: Message) -> int:
    """The bytes of its attachment; errors have none."""
    body = _content(message)
    if isinstance(body, (Put, Del, Query)) and body.attachment is not None:
        return len(body.attachment)
    return 0


def _content(message: Message) -> Put | Del | Query | Err | None:
    if isinstance(message, (Push, Request)):
        return message.body
    if isinstance(message, Response):
        body = message.body
        return body.body if isinstance(body, Reply) else body
    return None


def _sliced(slices: tuple[Slice, ...]) -> int:
    size = 0
    for piece in slices:
        size += len(piece.data)
    return size
