from __future__ import annotations

import pickle
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError
from zenlake.values import (
    DEFAULT_QOS,
    CongestionControl,
    ConsolidationMode,
    Locality,
    Priority,
    QoS,
    QueryTarget,
    Reliability,
    ReplyKeyExpr,
    SampleKind,
)


@pytest.mark.parametrize(
    ("qos", "byte"),
    [
        (QoS(), 0x05),
        (QoS(congestion_control=CongestionControl.BLOCK), 0x0D),
        (QoS(congestion_control=CongestionControl.BLOCK_FIRST), 0x25),
        (QoS(express=True), 0x15),
        (QoS(Priority.REAL_TIME), 0x01),
        (QoS(Priority.BACKGROUND, CongestionControl.BLOCK, True), 0x1F),
    ],
)
def test_the_byte_is_the_one_on_the_wire(qos: QoS, byte: int) -> None:
    assert qos.byte == byte
    assert QoS.from_byte(byte) == qos


def test_nothing_said_means_data_dropped_and_batched() -> None:
    assert DEFAULT_QOS.byte == 5
    assert QoS(Priority.DEFAULT, CongestionControl.DEFAULT, False) == DEFAULT_QOS


def test_blocking_wins_over_blocking_the_first() -> None:
    assert QoS.from_byte(0x2D).congestion_control is CongestionControl.BLOCK


def test_the_nodes_own_priority_looks_ordinary_to_a_program_and_is_kept() -> None:
    assert QoS.from_byte(0x08).priority is Priority.DATA
    assert QoS.from_byte(0x08).byte == 0x08


@pytest.mark.parametrize("byte", [-1, 256])
def test_more_than_a_byte_is_refused(byte: int) -> None:
    with pytest.raises(DecodeError):
        QoS.from_byte(byte)


@pytest.mark.parametrize(
    ("alias", "member", "text"),
    [
        (Priority.DEFAULT, Priority.DATA, "Priority.DATA"),
        (Priority.MIN, Priority.BACKGROUND, "Priority.BACKGROUND"),
        (Priority.MAX, Priority.REAL_TIME, "Priority.REAL_TIME"),
        (CongestionControl.DEFAULT, CongestionControl.DROP, "CongestionControl.DROP"),
        (Reliability.DEFAULT, Reliability.BEST_EFFORT, "Reliability.BEST_EFFORT"),
        (Locality.DEFAULT, Locality.ANY, "Locality.ANY"),
        (QueryTarget.DEFAULT, QueryTarget.BEST_MATCHING, "QueryTarget.BEST_MATCHING"),
        (ConsolidationMode.DEFAULT, ConsolidationMode.AUTO, "ConsolidationMode.AUTO"),
        (ReplyKeyExpr.DEFAULT, ReplyKeyExpr.MATCHING_QUERY, "ReplyKeyExpr.MATCHING_QUERY"),
        (SampleKind.PUT, SampleKind.PUT, "SampleKind.PUT"),
    ],
)
def test_defaults_are_other_names_of_members(alias: Enum, member: Enum, text: str) -> None:
    assert alias is member
    assert str(alias) == repr(alias) == text
    assert {member: 1}[alias] == 1
    assert pickle.loads(pickle.dumps(alias)) is member


def test_priorities_are_numbered_by_urgency() -> None:
    assert [int(priority) for priority in Priority] == [1, 2, 3, 4, 5, 6, 7]


@given(st.sampled_from(Priority), st.sampled_from(CongestionControl), st.booleans())
def test_what_goes_in_comes_out(
    priority: Priority, congestion: CongestionControl, express: bool
) -> None:
    qos = QoS(priority, congestion, express)
    assert (qos.priority, qos.congestion_control, qos.express) == (priority, congestion, express)
    assert QoS.from_byte(qos.byte) == qos
    assert pickle.loads(pickle.dumps(qos)) == qos
    assert hash(qos) == hash(QoS.from_byte(qos.byte))
