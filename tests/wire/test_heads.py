"""What stands before a body, written and passed over without a message."""

from __future__ import annotations

from hypothesis import given

from zenlake.testing import spec
from zenlake.testing.strategies import messages
from zenlake.wire import Message, Push, Put, Response, numbers, write
from zenlake.wire.codec_network import push_head, response_head, skip_push_head
from zenlake.wire.codec_zenoh import put_head, skip_put_head
from zenlake.wire.cursor import Reader


@given(messages(spec("Push")))
def test_a_push_is_its_head_and_its_body(push: Message) -> None:
    assert isinstance(push, Push)
    head = push_head(
        scope=push.scope,
        suffix=push.suffix,
        sender_mapping=push.sender_mapping,
        qos=push.qos,
        timestamp=push.timestamp,
        node_id=push.node_id,
        timestamp_stack=push.timestamp_stack,
    )
    whole = write(push)
    assert whole == head + write(push.body)
    assert whole[0] & numbers.ID == numbers.PUSH
    r = Reader(whole)
    assert skip_push_head(r, r.u8())
    assert r.pos == len(head)


@given(messages(spec("Response")))
def test_a_response_is_its_head_and_its_body(response: Message) -> None:
    assert isinstance(response, Response)
    head = response_head(
        id=response.id,
        scope=response.scope,
        suffix=response.suffix,
        sender_mapping=response.sender_mapping,
        qos=response.qos,
        timestamp=response.timestamp,
        responder=response.responder,
        timestamp_stack=response.timestamp_stack,
    )
    assert write(response) == head + write(response.body)


@given(messages(spec("Put")))
def test_a_put_is_its_head_and_its_payload(put: Message) -> None:
    assert isinstance(put, Put)
    r = Reader(write(put))
    assert skip_put_head(r, r.u8()) is not put.shm
    if put.shm:
        return
    assert r.take(r.vle(0xFFFF_FFFF)) == put.payload
    assert r.pos == r.end
    put.extensions = ()
    head = put_head(
        timestamp=put.timestamp,
        encoding=put.encoding,
        schema=put.schema,
        source_info=put.source_info,
        attachment=put.attachment,
    )
    assert write(put).startswith(head)
    assert len(write(put)) - len(head) - len(put.payload) <= 5
