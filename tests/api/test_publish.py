from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zenlake
from tests.api.sessions import config, joined, until_matched
from zenlake import CongestionControl, Encoding, Locality, Priority, Reliability, SampleKind

Pair = tuple[zenlake.Session, zenlake.Session]


def test_every_option_of_a_put_arrives(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("a/*")
    until_matched(there.declare_publisher("a/b"))
    stamp = there.new_timestamp()
    source = zenlake.SourceInfo(there.id, 7)
    there.put(
        "a/b",
        "text",
        encoding="text/plain;utf-8",
        congestion_control=CongestionControl.BLOCK,
        priority=Priority.REAL_TIME,
        express=True,
        attachment=b"beside",
        timestamp=stamp,
        source_info=source,
    )
    sample = subscriber.recv()
    assert sample.key_expr == "a/b"
    assert sample.payload == b"text"
    assert sample.kind is SampleKind.PUT
    assert sample.encoding == "text/plain;utf-8"
    assert sample.congestion_control is CongestionControl.BLOCK
    assert sample.priority is Priority.REAL_TIME
    assert sample.express
    assert sample.attachment == b"beside"
    assert sample.timestamp == stamp
    assert sample.source_info == source


def test_a_deletion_arrives_with_what_was_added(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("a")
    publisher = there.declare_publisher("a")
    until_matched(publisher)
    publisher.delete(attachment="why")
    there.delete("a")
    first, second = subscriber.recv(), subscriber.recv()
    assert (first.kind, second.kind) == (SampleKind.DELETE, SampleKind.DELETE)
    assert first.attachment == b"why"
    assert second.attachment is None


def test_a_publisher_shows_what_it_was_declared_with(alone: zenlake.Session) -> None:
    publisher = alone.declare_publisher(
        "a",
        encoding=Encoding.APPLICATION_JSON,
        congestion_control=CongestionControl.BLOCK,
        priority=Priority.BACKGROUND,
        reliability=Reliability.BEST_EFFORT,
    )
    assert publisher.key_expr == "a"
    assert publisher.encoding == "application/json"
    assert publisher.congestion_control is CongestionControl.BLOCK
    assert publisher.priority is Priority.BACKGROUND
    assert publisher.reliability is Reliability.BEST_EFFORT
    assert publisher.id.zid == alone.zid()
    assert not publisher.matching_status
    plain = alone.declare_publisher("a")
    assert plain.encoding == "zenoh/bytes"
    assert plain.congestion_control is CongestionControl.DROP
    assert plain.reliability is Reliability.RELIABLE
    assert plain.id != publisher.id


def test_an_undeclared_publisher_refuses_everything(alone: zenlake.Session) -> None:
    with alone.declare_publisher("a") as publisher:
        publisher.put("x")
    for use in (publisher.undeclare, lambda: publisher.put("x"), lambda: publisher.key_expr):
        with pytest.raises(zenlake.ZError, match="Undeclared publisher"):
            use()


def test_the_publishers_encoding_holds_unless_a_put_says_otherwise(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("a")
    publisher = there.declare_publisher("a", encoding="text/plain")
    until_matched(publisher)
    publisher.put("1")
    publisher.put("2", encoding="application/json")
    publisher.put("3", attachment="x")
    assert [str(subscriber.recv().encoding) for _ in range(3)] == [
        "text/plain",
        "application/json",
        "text/plain",
    ]


def test_one_session_hears_itself_unless_it_is_kept_away(alone: zenlake.Session) -> None:
    everything = alone.declare_subscriber("a")
    remote = alone.declare_subscriber("a", allowed_origin=Locality.REMOTE)
    alone.put("a", "1")
    alone.put("a", "2", allowed_destination=Locality.REMOTE)
    alone.put("a", "3", allowed_destination=Locality.SESSION_LOCAL)
    assert [everything.recv().payload.to_string() for _ in range(2)] == ["1", "3"]
    assert remote.try_recv() is None


@pytest.mark.parametrize("congestion", [CongestionControl.DROP, CongestionControl.BLOCK])
def test_trying_to_put_says_what_became_of_it(congestion: CongestionControl) -> None:
    with joined() as (here, there):
        publisher = there.declare_publisher("a", congestion_control=congestion)
        lonely = publisher.try_put("x")
        assert lonely is zenlake.PutOutcome.NOBODY_LISTENS
        assert not lonely
        assert lonely.reason == "nobody listens"
        subscriber = here.declare_subscriber("a")
        until_matched(publisher)
        assert publisher.try_put("x")
        assert there.try_put("a", "y", congestion_control=congestion)
        assert [subscriber.recv().payload.to_string() for _ in range(2)] == ["x", "y"]


def test_a_session_with_timestamps_stamps_what_it_publishes() -> None:
    with zenlake.open(config(timestamping__enabled="true")) as session:
        subscriber = session.declare_subscriber("a")
        publisher = session.declare_publisher("a")
        publisher.put("1")
        session.put("a", "2")
        publisher.delete()
        session.delete("a")
        stamps = [subscriber.recv().timestamp for _ in range(4)]
        assert all(stamp is not None and stamp.get_id() == session.zid() for stamp in stamps)
        assert len(set(stamps)) == 4


def test_times_are_taken_where_a_message_is_sent(alone: zenlake.Session) -> None:
    subscriber = alone.declare_subscriber("a")
    points = zenlake.TimestampInstrumentationBuilder().set_send(True).build()
    alone.put("a", "x", timestamp_instrumentation=points)
    stack = subscriber.recv().timestamp_stack
    assert stack is not None
    (record,) = stack.records
    assert record.point is zenlake.InterceptionPoint.SEND
    stamp = record.timestamp()
    assert isinstance(stamp, zenlake.Timestamp)
    assert stamp.get_id() == alone.zid()


def test_a_program_may_tell_the_time_in_its_own_form() -> None:
    contexts: list[zenlake.TimestampContext] = []

    def tell(context: zenlake.TimestampContext) -> bytes:
        contexts.append(context)
        return b"noon"

    with zenlake.open(config(), timestamp_callback=tell) as session:
        subscriber = session.declare_subscriber("a")
        points = zenlake.TimestampInstrumentationBuilder().set_send(True).build()
        session.declare_publisher("a").put("x", timestamp_instrumentation=points)
        stack = subscriber.recv().timestamp_stack
        assert stack is not None
        assert stack.records[0].timestamp() == b"noon"
        assert contexts[0].zid == session.zid()
        assert contexts[0].whatami is zenlake.WhatAmI.PEER


@pytest.mark.parametrize("payload", [5, 1.5, ["x"]])
def test_what_is_no_payload_is_refused_with_advice(alone: zenlake.Session, payload: object) -> None:
    with pytest.raises(TypeError, match="z_serialize"):
        alone.put("a", payload)  # type: ignore[arg-type]


def test_a_key_that_is_none_is_refused_every_time(alone: zenlake.Session) -> None:
    for _ in range(2):
        with pytest.raises(zenlake.ZError, match="/a"):
            alone.put("/a", b"")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    payload=st.one_of(
        st.binary(max_size=2000),
        st.text(max_size=50),
        st.binary(max_size=20).map(bytearray),
        st.binary(max_size=20).map(lambda data: memoryview(data)),
        st.binary(max_size=20).map(zenlake.ZBytes),
    )
)
def test_what_was_put_is_what_is_received(
    alone: zenlake.Session, payload: bytes | str | bytearray | memoryview | zenlake.ZBytes
) -> None:
    with alone.declare_subscriber("a") as subscriber:
        alone.put("a", payload)
        meant = payload.encode() if isinstance(payload, str) else bytes(payload)
        assert subscriber.recv().payload == meant


def test_more_keys_than_are_remembered_do_no_harm(alone: zenlake.Session) -> None:
    subscriber = alone.declare_subscriber("k/*")
    for n in range(1100):
        alone.put(f"k/{n}", b"x")
    assert subscriber.stats.received == 1100
    assert len(alone._plain) <= 1024
