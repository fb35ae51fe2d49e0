from __future__ import annotations

import gc
import threading

import pytest

import zenlake
from tests.api.sessions import config, connected, joined, listening, until_matched
from tests.waiting import SECONDS

Pair = tuple[zenlake.Session, zenlake.Session]


def test_closing_is_final_and_may_be_repeated() -> None:
    session = zenlake.open(config())
    publisher = session.declare_publisher("a")
    subscriber = session.declare_subscriber("a")
    querier = session.declare_querier("a")
    zid = session.zid()
    session.close()
    session.close()
    assert session.is_closed()
    assert session.zid() == zid
    assert "closed" in repr(session)
    for use in (
        lambda: session.put("a", b""),
        lambda: session.try_put("a", b""),
        lambda: session.delete("a"),
        lambda: session.get("a"),
        lambda: session.declare_subscriber("a"),
        lambda: session.declare_publisher("a"),
        lambda: session.declare_keyexpr("a"),
        lambda: session.liveliness().declare_token("a"),
        lambda: publisher.put(b""),
        lambda: publisher.delete(),
        lambda: querier.get(),
    ):
        with pytest.raises(zenlake.ZError, match="session closed"):
            use()
    with pytest.raises(zenlake.ZError, match="empty and closed"):
        subscriber.recv()
    assert session.info.peers_zid() == []
    subscriber.undeclare()
    publisher.undeclare()


def test_a_block_closes_its_session() -> None:
    with zenlake.open(config()) as session:
        assert not session.is_closed()
    assert session.is_closed()


def test_many_threads_may_close_at_once() -> None:
    session = zenlake.open(config())
    threads = [threading.Thread(target=session.close) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert session.is_closed()
    assert not any(thread.is_alive() for thread in threads)


def test_closing_a_session_in_its_own_callback_ends_it() -> None:
    session = zenlake.open(config())
    over = threading.Event()
    callback = zenlake.handlers.Callback[zenlake.Sample](lambda _: session.close(), over.set)
    session.declare_subscriber("a", callback)
    session.put("a", "x")
    assert over.wait(SECONDS)
    assert session.is_closed()


def test_a_forgotten_session_is_closed() -> None:
    with listening() as here:
        events = here.info.declare_transport_events_listener()
        there = connected(here)
        assert events.recv().kind is zenlake.SampleKind.PUT
        del there
        gc.collect()
        assert events.recv().kind is zenlake.SampleKind.DELETE


def test_a_dead_endpoint_is_named_with_what_went_wrong() -> None:
    with pytest.raises(zenlake.ZError, match=r"tcp/127\.0\.0\.1:1.*refused"):
        zenlake.open(config(mode='"client"', connect__endpoints='["tcp/127.0.0.1:1"]'))


def test_a_session_is_opened_with_a_configuration() -> None:
    with pytest.raises(TypeError, match="Config"):
        zenlake.open("peer")  # type: ignore[arg-type]


def test_a_session_knows_itself(alone: zenlake.Session) -> None:
    assert alone.id.zid == alone.zid() == alone.info.zid()
    assert alone.id.eid == 1
    first, second = alone.new_timestamp(), alone.new_timestamp()
    assert first < second
    assert first.get_id() == alone.zid()


def test_a_key_expression_is_undeclared_as_often_as_declared(alone: zenlake.Session) -> None:
    key = alone.declare_keyexpr("a/*")
    assert key == "a/*"
    alone.declare_keyexpr(key)
    alone.put(key, b"")
    alone.undeclare(key)
    alone.undeclare(key)
    with pytest.raises(zenlake.ZError, match="not declared"):
        alone.undeclare(key)


def test_a_session_undeclares_entities_too(alone: zenlake.Session) -> None:
    subscriber = alone.declare_subscriber("a")
    alone.undeclare(subscriber)
    with pytest.raises(zenlake.ZError, match="Undeclared subscriber"):
        subscriber.recv()


def test_neighbours_are_seen_with_their_links(pair: Pair) -> None:
    here, there = pair
    assert here.info.peers_zid() == [there.zid()]
    assert here.info.routers_zid() == []
    (transport,) = there.info.transports()
    assert transport.zid == here.zid()
    assert transport.whatami is zenlake.WhatAmI.PEER
    assert transport.is_qos
    assert not transport.is_multicast
    (link,) = there.info.links()
    assert link.dst.startswith("tcp/127.0.0.1:")
    assert link.is_streamed
    assert link.reliability is zenlake.Reliability.RELIABLE
    assert link.mtu > 0
    (back,) = here.info.links()
    assert (back.src, back.dst) == (link.dst, link.src)
    assert link == there.info.links()[0]
    assert len({link, back}) == 2
    assert link != back
    assert (link < back) != (back < link)


def test_listeners_hear_of_neighbours_that_come_and_go() -> None:
    with joined() as (here, there):
        transports = here.info.declare_transport_events_listener(history=True)
        links = here.info.declare_link_events_listener(history=True)
        assert transports.recv().transport == here.info.transports()[0]
        assert links.recv().link == here.info.links()[0]
        there.close()
        gone = transports.recv()
        assert (gone.kind, gone.transport.zid) == (zenlake.SampleKind.DELETE, there.zid())
        assert links.recv().kind is zenlake.SampleKind.DELETE
        transports.undeclare()
        with pytest.raises(zenlake.ZError, match="Undeclared transport events listener"):
            transports.try_recv()
        here.close()
        assert list(links) == []


def test_both_sides_of_a_pair_may_publish(pair: Pair) -> None:
    here, there = pair
    for one, other, key in ((here, there, "to/here"), (there, here, "to/there")):
        subscriber = one.declare_subscriber(key)
        publisher = other.declare_publisher(key)
        until_matched(publisher)
        publisher.put("x")
        assert subscriber.recv().payload == b"x"
