from __future__ import annotations

import pytest
from hypothesis import given

from zenlake.routing.policy import KINDS, UNFILTERED, PolicyVerdict, kind_of
from zenlake.routing.policy.messages import (
    attachment_size,
    flows_of,
    is_undeclaration,
    payload_size,
    refusal_of,
)
from zenlake.testing.strategies import messages
from zenlake.wire.codec_declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import (
    Declare,
    Interest,
    Oam,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenlake.wire.codec_zenoh import Del, Err, Put, Query, QueryBody, Reply, Slice
from zenlake.wire.declared.network import PAGE
from zenlake.wire.message import Message


def push(body: Put | Del) -> Push:
    return Push(scope=0, suffix="a", body=body)


def request(body: Query) -> Request:
    return Request(id=1, scope=0, suffix="a", body=body)


def response(body: Reply | Err) -> Response:
    return Response(id=1, scope=0, suffix="a", body=body)


FILTERED: list[tuple[Message, str]] = [
    (push(Put(payload=b"")), "put"),
    (push(Del()), "delete"),
    (request(Query()), "query"),
    (response(Reply(body=Put(payload=b""))), "reply"),
    (response(Reply(body=Del())), "reply"),
    (response(Err(payload=b"")), "reply"),
    (Declare(body=DeclareSubscriber(id=1, scope=1)), "declare_subscriber"),
    (Declare(body=UndeclareSubscriber(id=1)), "declare_subscriber"),
    (Declare(body=DeclareQueryable(id=1, scope=1)), "declare_queryable"),
    (Declare(body=UndeclareQueryable(id=1)), "declare_queryable"),
    (Declare(body=DeclareToken(id=1, scope=1)), "liveliness_token"),
    (Declare(body=UndeclareToken(id=1)), "liveliness_token"),
    (Interest(mode=1, id=1, tokens=True), "liveliness_query"),
    (Interest(mode=2, id=1, tokens=True), "declare_liveliness_subscriber"),
    (Interest(mode=3, id=1, tokens=True), "declare_liveliness_subscriber"),
    (Interest(mode=3, id=1, tokens=True, subscribers=True), "declare_liveliness_subscriber"),
]

UNHEEDED: list[Message] = [
    Declare(body=DeclareKeyExpr(id=1, scope=0, suffix="a")),
    Declare(body=UndeclareKeyExpr(id=1)),
    Declare(body=DeclareFinal()),
    ResponseFinal(id=1),
    Oam(id=1, body=b""),
    Interest(mode=1, id=1, subscribers=True),
    Interest(mode=3, id=1, subscribers=True, queryables=True, key_exprs=True),
    Interest(mode=0, id=1),
]


@pytest.mark.parametrize(("message", "kind"), FILTERED)
def test_a_message_is_of_the_kind_that_rules_call_it(message: Message, kind: str) -> None:
    assert KINDS[kind_of(message)] == kind


@pytest.mark.parametrize("message", UNHEEDED)
def test_what_is_not_filtered_has_no_kind(message: Message) -> None:
    assert kind_of(message) == UNFILTERED


def test_every_kind_is_some_message() -> None:
    assert {kind for _, kind in FILTERED} == set(KINDS)


@pytest.mark.parametrize("message", [message for message, _ in FILTERED])
def test_whoever_waits_for_an_end_gets_one(message: Message) -> None:
    expected = PolicyVerdict.DROP
    if isinstance(message, Request):
        expected = PolicyVerdict.RESPONSE_FINAL
    elif isinstance(message, Interest):
        expected = PolicyVerdict.DECLARE_FINAL
    assert refusal_of(message) is expected


def test_undeclarations_of_entities_are_told_apart() -> None:
    told = [
        message.body
        for message, _ in FILTERED
        if is_undeclaration(message) and isinstance(message, Declare)
    ]
    assert [type(body) for body in told] == [
        UndeclareSubscriber,
        UndeclareQueryable,
        UndeclareToken,
    ]


@pytest.mark.parametrize(
    ("message", "payload", "attachment"),
    [
        (push(Put(payload=b"abc")), 3, 0),
        (push(Put(payload=b"abc", attachment=b"de")), 3, 2),
        (push(Put(shm=True, slices=(Slice(kind=0, data=b"ab"), Slice(kind=1, data=b"c")))), 3, 0),
        (push(Del(attachment=b"de")), 0, 2),
        (push(Del()), 0, 0),
        (request(Query()), 0, 0),
        (request(Query(body=QueryBody(encoding=0, payload=b"abc"), attachment=b"d")), 3, 1),
        (response(Reply(body=Put(payload=b"abc", attachment=b"d"))), 3, 1),
        (response(Reply(body=Del(attachment=b"d"))), 0, 1),
        (response(Err(payload=b"abc")), 3, 0),
        (Declare(body=DeclareFinal()), 0, 0),
    ],
)
def test_payload_and_attachment_are_measured(
    message: Message, payload: int, attachment: int
) -> None:
    assert (payload_size(message), attachment_size(message)) == (payload, attachment)


def test_no_list_of_flows_is_both() -> None:
    assert flows_of(None) == (0, 1)
    assert flows_of(("egress", "egress")) == (1,)


@given(messages(PAGE))
def test_any_message_at_all_can_be_asked_about(message: Message) -> None:
    assert UNFILTERED <= kind_of(message) < len(KINDS)
    assert payload_size(message) >= 0
    assert attachment_size(message) >= 0
    assert refusal_of(message) is not PolicyVerdict.PASS
