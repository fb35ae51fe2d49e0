from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import Timestamp, ZenohId
from zenlake.errors import LocalError
from zenlake.values import (
    EntityGlobalId,
    InterceptionPoint,
    SourceInfo,
    TimestampContext,
    TimestampInstrumentation,
    TimestampInstrumentationBuilder,
    TimestampStack,
    TimestampStackRecord,
    WhatAmI,
)

ZID = ZenohId.parse("1a2b3")
STAMP = Timestamp(1_700_000_000, ZID)


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
