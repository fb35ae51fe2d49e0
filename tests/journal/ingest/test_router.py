"""A router that stamps, forwards and records: columns hold what the plain way gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.ingest.plain import PlainSink
from tests.node.clients import Client
from tests.routing.policies import access_control, applying, policy_of, rule, subject
from zenlake.clock import Hlc, ZenohId
from zenlake.clock.hlc import MAX_AHEAD_NS
from zenlake.journal.ingest.columns import FRAME, ColumnSink
from zenlake.journal.ingest.kernel import RowSink
from zenlake.node.stamps import Timestamper
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.testing import spec
from zenlake.testing.network import Network
from zenlake.testing.strategies import messages
from zenlake.wire import (
    Declare,
    DeclareKeyExpr,
    DeclareSubscriber,
    Del,
    Message,
    Push,
    Put,
    Timestamp,
    UndeclareSubscriber,
    read_network,
)

ZID = b"\x0f"
SECONDS = 1_800_000_000
KEYS = ["k", "k/two", "robot/seven/pose", "other/" + "x" * 150]


class Side:
    """A router with a clock that stands, a publisher, and some who subscribe to everything."""

    def __init__(self, sink: RowSink | PlainSink, hlc: Hlc, stamping: bool, others: int) -> None:
        self.network = Network()
        self.router = self.network.node("router", "router", zid=ZID)
        if stamping:
            self.router.node.stamps = Timestamper(hlc, lambda: SECONDS * 10**9, False)
        self.router.node.local.subscribe("**", sink)
        self.publisher = Client(self.network, self.router, b"\x01")
        self.others = [Client(self.network, self.router, bytes((2 + n,))) for n in range(others)]
        for other in self.others:
            other.say(Declare(body=DeclareSubscriber(id=1, scope=0, suffix="**")))
        if self.others:  # one of them is told other words
            self.others[0].say(Declare(body=DeclareKeyExpr(id=9, scope=0, suffix="k")))


class Twins:
    """Two such routers that hear the same: one makes columns, the other plain rows."""

    def __init__(self, stamping: bool = True, others: int = 2) -> None:
        wall = SECONDS * 10**9
        hlc = Hlc(ZenohId(ZID))
        self.columns = ColumnSink()
        self.rows = self.columns.open(hlc, lambda: wall)
        self.fast = Side(self.rows, hlc, stamping, others)
        hlc = Hlc(ZenohId(ZID))
        self.plain = PlainSink(hlc, 1, lambda: wall)
        self.slow = Side(self.plain, hlc, stamping, others)

    def say(self, *said: Message, reliable: bool = True) -> None:
        """Publish to both, in one frame."""
        for side in (self.fast, self.slow):
            side.publisher.say(*said, reliable=reliable)

    def check(self) -> tuple[list[dict[str, object]], list[tuple[bytes, int, bool]]]:
        """Rows and forwarded bytes are equal; gives the rows and what one subscriber heard."""
        rows = [row for _, batch in self.columns.take() for row in batch.to_pylist()]
        assert rows == [row for _, batch in self.plain.take() for row in batch.to_pylist()]
        heard = [other.heard() for other in self.fast.others]
        assert heard == [other.heard() for other in self.slow.others]
        return rows, heard[0] if heard else []


stamps = st.none() | st.builds(
    Timestamp,
    seconds=st.integers(SECONDS - 2, SECONDS + 1),
    fraction=st.integers(0, 2**32 - 1) | st.just((MAX_AHEAD_NS << 32) // 10**9),
    id=st.sampled_from([ZID, b"\x01" * 16]),
)


def ready(push: Message, key: str, stamp: Timestamp | None) -> Push:
    assert isinstance(push, Push)
    push.scope, push.suffix, push.sender_mapping, push.node_id = 0, key, True, 0
    push.timestamp_stack = None  # holds times of the clock on the wall
    if isinstance(push.body, Put) and push.body.shm:
        push.body = Del()
    push.body.timestamp = stamp
    return push


pushes = st.builds(ready, messages(spec("Push")), st.sampled_from(KEYS), stamps)


@given(st.lists(pushes, min_size=1, max_size=10), st.booleans(), st.booleans(), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_a_router_records_and_forwards_in_columns_what_it_does_plainly(
    said: list[Push], reliable: bool, stamping: bool, others: int
) -> None:
    twins = Twins(stamping, others)
    twins.say(*[Push(scope=0, suffix=key, body=Put(payload=b"")) for key in KEYS])
    twins.say(*said, reliable=reliable)
    twins.check()
    twins.say(*said, *said, reliable=reliable)
    rows, heard = twins.check()
    assert len(rows) == len(heard) == 2 * len(said) or not others


def stamp_of(message: bytes) -> Timestamp | None:
    push = read_network(message)
    assert isinstance(push, Push)
    return push.body.timestamp


@pytest.mark.parametrize("others", [0, 1, 3])
def test_usual_puts_of_a_router_are_one_stretch_with_the_times_that_others_hear(
    others: int,
) -> None:
    twins = Twins(others=others)
    early = Timestamp(seconds=SECONDS - 1, fraction=77, id=b"\x01" * 16)
    ahead = Timestamp(seconds=SECONDS, fraction=1 << 20, id=b"\x01" * 16)
    twins.say(Declare(body=DeclareKeyExpr(id=300, scope=0, suffix="robot")))
    usual = [
        Push(scope=300, suffix=suffix, qos=qos, body=body)
        for suffix in ("", "/1", "/one/two/three")
        for qos in (5, 0x1D)
        for body in (
            Put(payload=b"x" * 12),
            Put(payload=b"x" * 13, timestamp=early),
            Put(payload=b"x" * 300, encoding=40, schema=b"a.b"),
            Put(payload=b"1", attachment=b"y" * 200, timestamp=ahead),
            Put(payload=b"1", attachment=b"", encoding=7),
        )
    ]
    twins.say(*usual)
    twins.check()
    twins.say(*usual)
    assert len(twins.rows.table.frames) == FRAME.itemsize  # nothing was read in another way
    rows, heard = twins.check()
    assert [row["stamped"] for row in rows] == [False] * len(usual)
    own = [row["hlc"] for row in rows if row["stamp_id"] == ZID]
    assert own == sorted(set(own))  # type: ignore[type-var]
    assert len(own) == len(usual) * 3 // 5
    if others:
        times = []
        for message, _, _ in heard:
            stamp = stamp_of(message)
            assert stamp is not None
            times.append(((stamp.seconds << 32 | stamp.fraction) - HLC_BIAS, stamp.id))
        assert times == [(row["hlc"], row["stamp_id"]) for row in rows]


def test_a_time_of_the_future_is_replaced_in_row_and_message_alike() -> None:
    twins = Twins()
    late = Timestamp(seconds=SECONDS + 9, fraction=0, id=b"\x01" * 16)
    put = Push(scope=0, suffix="k", body=Put(payload=b"x"))
    twins.say(put, put)
    twins.say(put, Push(scope=0, suffix="k", body=Put(payload=b"y", timestamp=late)), put)
    rows, heard = twins.check()
    assert [row["stamp_id"] for row in rows] == [ZID] * 5
    assert twins.fast.router.node.stamps is not None
    assert twins.fast.router.node.stamps.replaced == 1
    assert len(heard) == 5


def test_a_subscriber_that_comes_or_goes_hears_from_then_on() -> None:
    twins = Twins(others=1)
    put = Push(scope=0, suffix="k", body=Put(payload=b"x"))
    twins.say(put, put)
    twins.say(put)
    twins.check()
    for side in (twins.fast, twins.slow):
        more = Client(side.network, side.router, b"\x77")
        side.others.append(more)
        more.say(Declare(body=DeclareSubscriber(id=1, scope=0, suffix="k")))
    twins.say(put, put)
    assert [len(other.heard()) for other in twins.fast.others] == [2, 2]
    assert [len(other.heard()) for other in twins.slow.others] == [2, 2]
    for side in (twins.fast, twins.slow):
        side.others.pop(0).say(Declare(body=UndeclareSubscriber(id=1)))
    twins.say(put, put)
    rows, heard = twins.check()
    assert (len(rows), len(heard)) == (4, 2)


def test_rules_are_obeyed_in_columns_as_they_are_plainly() -> None:
    """Some keys are denied, some only deletes, some are given another priority, some are free."""
    no_put = rule("no put", "deny", "denied/**", messages=["put"], flows=["ingress"])
    no_delete = rule("no delete", "deny", "kept/**", messages=["delete"], flows=["ingress"])
    apart = rule("apart", "deny", "secret/**", messages=["put", "delete"], flows=["egress"])
    rules = access_control(
        "allow", [no_put, no_delete, apart], [subject("all")],
        [applying(["no put", "no delete", "apart"], ["all"])],
    )  # fmt: skip
    overwrite = [
        {
            "messages": ["put"],
            "key_exprs": ["raised/**"],
            "overwrite": {"priority": "real_time"},
            "flows": ["ingress"],
        }
    ]
    twins = Twins(others=1)
    for side in (twins.fast, twins.slow):
        side.router.node.obey(policy_of(access_control=rules, qos={"network": overwrite}))
    said = [
        Push(scope=0, suffix=f"{first}/k", body=body)
        for first in ("denied", "kept", "secret", "raised", "free")
        for body in (Put(payload=b"1"), Put(payload=b"2"), Del())
    ]
    for _ in range(3):
        twins.say(*said)
    rows, heard = twins.check()
    assert len(rows) == 3 * (len(said) - 3)
    assert {row["priority"] for row in rows if str(row["key"]).startswith("raised")} == {1, 5}
    assert len(heard) == 3 * (len(said) - 6)
    free = [row["value"] for row in rows if row["key"] == "free/k"]
    assert free == [b"1", b"2", b""] * 3
