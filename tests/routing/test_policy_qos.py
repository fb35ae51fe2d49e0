from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.policies import policy_of
from zenlake.clock import ZenohId
from zenlake.routing.policy import EGRESS, INGRESS, PolicyGate, Subject
from zenlake.values.qos import CongestionControl, Priority, QoS
from zenlake.wire.codec_declare import DeclareFinal
from zenlake.wire.codec_network import Declare, Push, Request, Response
from zenlake.wire.codec_zenoh import Del, Put, Query, QueryBody, Reply

DEFAULT = QoS().byte


def item(overwrite: dict[str, object], **others: object) -> dict[str, object]:
    return {"messages": ["put"], "overwrite": overwrite} | others


def gate(*items: dict[str, object], who: Subject | None = None) -> PolicyGate:
    told = policy_of(qos={"network": list(items)}).for_neighbour(who or Subject())
    assert told is not None
    assert told.ingress is not None
    return told.ingress


def put(payload: bytes = b"", qos: int = DEFAULT) -> Push:
    return Push(scope=0, suffix="a", qos=qos, body=Put(payload=payload))


def after(one: PolicyGate, message: Push | None = None, reliable: bool = True) -> QoS:
    return QoS.from_byte(one.qos(message or put(), "a", reliable))


def test_priority_congestion_control_and_express_are_changed() -> None:
    change = {"priority": "real_time", "congestion_control": "block", "express": True}
    told = after(gate(item(change)))
    assert told == QoS(Priority.REAL_TIME, CongestionControl.BLOCK, True)


def test_what_is_null_is_left_alone() -> None:
    before = QoS(Priority.DATA_LOW, CongestionControl.BLOCK, True)
    told = after(gate(item({"priority": "background"})), put(qos=before.byte))
    assert told == QoS(Priority.BACKGROUND, CongestionControl.BLOCK, True)
    assert after(gate(item({})), put(qos=before.byte)) == before


@pytest.mark.parametrize("name", ["drop", "block", "block_first"])
def test_one_congestion_control_replaces_another(name: str) -> None:
    for before in CongestionControl:
        message = put(qos=QoS(congestion_control=before).byte)
        told = after(gate(item({"congestion_control": name})), message)
        assert told == QoS(congestion_control=CongestionControl[name.upper()])


@pytest.mark.parametrize(
    ("before", "steps", "expected"),
    [(5, 1, 6), (5, -1, 4), (7, 3, 7), (2, -7, 1), (5, 0, 5), (0, -1, 1)],
)
def test_lanes_are_counted_from_the_messages_own(before: int, steps: int, expected: int) -> None:
    byte = gate(item({"priority": steps})).qos(put(qos=before), "a", True)
    assert byte & 0x07 == expected


def test_items_change_a_message_one_after_the_other() -> None:
    one = gate(item({"priority": "data_low"}), item({"priority": 1}), item({"priority": 1}))
    assert after(one).priority is Priority.BACKGROUND


def test_an_item_sees_what_the_one_before_it_made() -> None:
    first = item({"priority": "data_low"})
    second = item({"express": True}, qos={"priority": "data_low"})
    assert after(gate(first, second)).express
    assert not after(gate(second, first)).express


@pytest.mark.parametrize(
    ("wanted", "before", "reliable", "matches"),
    [
        ({"priority": "data"}, QoS(), True, True),
        ({"priority": "data"}, QoS(Priority.DATA_LOW), True, False),
        ({"congestion_control": "drop"}, QoS(), True, True),
        ({"congestion_control": "block"}, QoS(), True, False),
        ({"express": False}, QoS(), True, True),
        ({"express": False}, QoS(express=True), True, False),
        ({"reliability": "reliable"}, QoS(), True, True),
        ({"reliability": "reliable"}, QoS(), False, False),
        ({"reliability": "best_effort"}, QoS(), False, True),
    ],
)
def test_only_messages_with_the_options_asked_for_are_changed(
    wanted: dict[str, object], before: QoS, reliable: bool, matches: bool
) -> None:
    one = gate(item({"priority": "background"}, qos=wanted))
    told = after(one, put(qos=before.byte), reliable)
    assert (told.priority is Priority.BACKGROUND) is matches


@pytest.mark.parametrize(
    ("sizes", "matching"),
    [("2..4", [2, 3, 4]), ("..3", [0, 1, 2, 3]), ("4..", [4, 5]), ("..", [0, 1, 2, 3, 4, 5])],
)
def test_only_payloads_of_the_size_asked_for_are_changed(sizes: str, matching: list[int]) -> None:
    one = gate(item({"express": True}, payload_size=sizes))
    assert [size for size in range(6) if after(one, put(bytes(size))).express] == matching


def test_only_keys_that_are_included_are_changed() -> None:
    one = gate(item({"express": True}, key_exprs=["a/*", "b"]))
    told = [key for key in ("a/x", "a/**", "b", "c") if one.qos(put(), key, True) != DEFAULT]
    assert told == ["a/x", "b"]


def test_only_messages_that_are_listed_are_changed() -> None:
    one = gate(item({"express": True}, messages=["delete", "query"]))
    body = QueryBody(encoding=0, payload=b"abc")
    told = [
        QoS.from_byte(one.qos(message, "a", True)).express
        for message in (
            put(),
            Push(scope=0, suffix="a", body=Del()),
            Request(id=1, scope=0, suffix="a", body=Query(body=body)),
            Response(id=1, scope=0, suffix="a", body=Reply(body=Put(payload=b""))),
        )
    ]
    assert told == [False, True, True, False]
    assert one.qos(Declare(body=DeclareFinal()), "", True) == -1


def test_only_neighbours_and_flows_that_are_listed_are_concerned() -> None:
    policy = policy_of(qos={"network": [item({"express": True}, zids=["a1"], flows=["egress"])]})
    assert policy.for_neighbour(Subject()) is None
    assert policy.for_neighbour(Subject(zid=ZenohId.parse("a2"))) is None
    told = policy.for_neighbour(Subject(zid=ZenohId.parse("a1")))
    assert told is not None
    assert told.gate(INGRESS) is None
    assert told.gate(EGRESS) is not None


def test_changes_are_counted_and_messages_left_alone_are_not() -> None:
    one = gate(
        item({"priority": "data"}, key_exprs=["a"]), item({"express": True}, key_exprs=["b"])
    )
    one.qos(put(), "a", True)
    one.qos(put(), "b", True)
    one.qos(put(), "c", True)
    assert one.counters.overwritten == 1


@given(st.integers(0, 255), st.sampled_from([-7, -2, 0, 3, 7, "data", None]), st.booleans())
def test_other_bits_are_never_touched(byte: int, priority: int | str | None, express: bool) -> None:
    told = gate(item({"priority": priority, "express": express})).qos(put(qos=byte), "a", True)
    assert told & 0xE8 == byte & 0xE8
    assert bool(told & 0x10) is express
    assert priority is None or 1 <= told & 0x07 <= 7


def test_the_first_publication_item_that_includes_the_key_counts_alone() -> None:
    publication = [
        {"key_exprs": ["a/**"], "config": {"priority": "data_high", "congestion_control": "block"}},
        {"key_exprs": ["**"], "config": {"express": True, "reliability": "best_effort"}},
    ]
    told = policy_of(qos={"publication": publication}).publications
    assert told is not None
    assert QoS.from_byte(told.changed("a/b", DEFAULT)) == QoS(
        Priority.DATA_HIGH, CongestionControl.BLOCK
    )
    assert QoS.from_byte(told.changed("c", DEFAULT)) == QoS(express=True)
    assert told.changed("@/x", DEFAULT) == DEFAULT
    options = told.options_of("c")
    assert options is not None
    assert options.reliability == "best_effort"


def test_publishers_keep_what_they_chose_where_nothing_is_configured() -> None:
    assert policy_of().publications is None
