from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import Timestamp, ZenohId
from zenlake.errors import LocalError
from zenlake.keys import KeyExpr
from zenlake.values import (
    CongestionControl,
    Encoding,
    EntityGlobalId,
    InterceptionPoint,
    Priority,
    QoS,
    Reliability,
    Sample,
    SampleKind,
    SourceInfo,
    TimestampContext,
    TimestampInstrumentation,
    TimestampInstrumentationBuilder,
    TimestampStack,
    TimestampStackRecord,
    WhatAmI,
    ZBytes,
)

ZID = ZenohId.parse("1a2b3")
STAMP = Timestamp(1_700_000_000, ZID)


def test_a_bare_sample_is_a_put_of_bytes() -> None:
    sample = Sample(KeyExpr("a/b"), ZBytes("x"))
    assert sample.key_expr == "a/b"
    assert sample.payload == b"x"
    assert sample.kind is SampleKind.PUT
    assert sample.encoding is Encoding.ZENOH_BYTES
    assert (sample.priority, sample.congestion_control) == (Priority.DATA, CongestionControl.DROP)
    assert sample.express is False
    assert sample.reliability is Reliability.RELIABLE
    assert sample.timestamp is None
    assert sample.attachment is None
    assert sample.source_info is None
    assert sample.timestamp_stack is None


def test_a_full_sample_gives_everything_back() -> None:
    source = SourceInfo(EntityGlobalId(ZID, 7), 9)
    stack = TimestampStack(TimestampInstrumentation(1))
    sample = Sample(
        KeyExpr("a/b"),
        ZBytes("x"),
        SampleKind.DELETE,
        Encoding.TEXT_PLAIN,
        STAMP,
        QoS(Priority.REAL_TIME, CongestionControl.BLOCK, True),
        ZBytes("more"),
        source,
        stack,
        Reliability.BEST_EFFORT,
    )
    assert sample.kind is SampleKind.DELETE
    assert sample.encoding == "text/plain"
    assert sample.timestamp == STAMP
    assert (sample.priority, sample.express) == (Priority.REAL_TIME, True)
    assert sample.congestion_control is CongestionControl.BLOCK
    assert sample.qos.byte == 0x19
    assert sample.attachment == "more"
    assert sample.source_info == source
    assert sample.timestamp_stack == stack
    assert sample.reliability is Reliability.BEST_EFFORT
    again = pickle.loads(pickle.dumps(sample))
    assert again == sample
    assert hash(again) == hash(sample)
    assert sample != Sample(KeyExpr("a/b"), ZBytes("x"))
    assert repr(sample) == (
        f"<Sample DELETE a/b ZBytes(b'x') text/plain {STAMP} "
        "attachment=ZBytes(b'more') source=1a2b3/7#9>"
    )


def test_a_sample_cannot_be_changed() -> None:
    sample = Sample(KeyExpr("a/b"), ZBytes("x"))
    with pytest.raises(AttributeError):
        sample.payload = ZBytes("y")  # type: ignore[misc]


@pytest.mark.parametrize("number", [-1, 1 << 32])
def test_entity_and_sequence_numbers_have_32_bits(number: int) -> None:
    with pytest.raises(LocalError, match="32 bits"):
        EntityGlobalId(ZID, number)
    with pytest.raises(LocalError, match="32 bits"):
        SourceInfo(EntityGlobalId(ZID, 1), number)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_source_is_equal_by_its_parts(eid: int, sn: int) -> None:
    source = SourceInfo(EntityGlobalId(ZID, eid), sn)
    assert (source.source_id.zid, source.source_id.eid, source.source_sn) == (ZID, eid, sn)
    assert eval(repr(source)) == pickle.loads(pickle.dumps(source)) == source
    assert len({source, pickle.loads(pickle.dumps(source))}) == 1
    assert source != SourceInfo(EntityGlobalId(ZID, eid), sn ^ 1)
    assert source.source_id != EntityGlobalId(ZID, eid ^ 1)


def test_points_are_chosen_one_by_one() -> None:
    chosen = TimestampInstrumentationBuilder().set_send(True).set_route(True).set_receive(False)
    points = chosen.build()
    assert points.flags == 3
    assert [points.is_instrumented(point) for point in InterceptionPoint] == [True, True, False]
    assert chosen.set_send(False).build().flags == 2
    assert repr(points) == "<TimestampInstrumentation SEND|ROUTE>"
    with pytest.raises(LocalError, match="set_send"):
        TimestampInstrumentationBuilder().build()


def test_a_stack_keeps_times_and_foreign_bytes_in_order() -> None:
    records = (
        TimestampStackRecord(InterceptionPoint.SEND, STAMP),
        TimestampStackRecord(InterceptionPoint.RECEIVE, b"mine"),
    )
    stack = TimestampStack(TimestampInstrumentation(5), records)
    assert [record.point for record in stack.records] == [
        InterceptionPoint.SEND,
        InterceptionPoint.RECEIVE,
    ]
    assert [record.timestamp() for record in stack.records] == [STAMP, b"mine"]
    assert [record.is_custom for record in stack.records] == [False, True]
    assert stack.instrumentation == TimestampInstrumentation(5)
    again = pickle.loads(pickle.dumps(stack))
    assert again == stack
    assert hash(again) == hash(stack)


def test_a_context_says_whose_time_it_is() -> None:
    context = TimestampContext(ZID, WhatAmI.PEER)
    assert (context.zid, context.whatami) == (ZID, WhatAmI.PEER)
    assert repr(context) == "TimestampContext(ZenohId.parse('1a2b3'), WhatAmI.PEER)"
