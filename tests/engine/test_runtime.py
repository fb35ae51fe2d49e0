"""A node that runs: how it opens, what it says when it cannot, how it comes back and ends."""

from __future__ import annotations

import array
import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

import zenlake
from bench.storm.hostile import Hostile
from tests.api.sessions import config, connected, joined, listening, until_matched, where
from tests.engine.by_hand import Client, MemoryLink, started, timed
from tests.ports import free_port
from tests.waiting import SECONDS, until
from zenlake import CongestionControl, SampleKind
from zenlake.engine.loop import shared_loop
from zenlake.engine.pump import Pump
from zenlake.node.sessions.neighbour import Neighbour
from zenlake.routing.face import Face
from zenlake.wire import Interest, KeepAlive

Pair = tuple[zenlake.Session, zenlake.Session]

IMPATIENT = "{period_init_ms: 10, period_max_ms: 50, period_increase_factor: 2}"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with joined() as sessions:
        yield sessions


@contextmanager
def mute() -> Iterator[str]:
    """Somebody who lets others connect and never says a word; where."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"tcp/127.0.0.1:{server.getsockname()[1]}"


# ------------------------------------------------------------------------------------ opening


def test_every_endpoint_that_was_tried_is_named_once_with_its_reason() -> None:
    dead = [f"tcp/127.0.0.1:{free_port()}" for _ in range(2)]
    with pytest.raises(zenlake.ZError) as caught:
        zenlake.open(config(mode='"client"', connect__endpoints=str(dead)))
    text = str(caught.value)
    assert text.startswith("no session could be opened; tried ")
    for endpoint in dead:
        assert text.count(endpoint) == 1
    assert text.count("refused") == 2


def test_an_endpoint_that_stays_silent_is_named_when_the_time_is_up() -> None:
    with mute() as endpoint:
        began = time.monotonic()
        with pytest.raises(zenlake.ZError, match=endpoint):
            zenlake.open(
                config(
                    mode='"client"',
                    connect__endpoints=f'["{endpoint}"]',
                    transport__unicast__open_timeout="200",
                )
            )
        assert time.monotonic() - began < SECONDS


def test_a_client_that_was_told_nothing_is_told_what_to_say() -> None:
    with pytest.raises(zenlake.ZError, match="set connect/endpoints"):
        zenlake.open(config(mode='"client"', scouting__timeout="50"))


def test_a_client_that_finds_nobody_is_told_where_it_looked() -> None:
    group = f"224.0.0.224:{free_port()}"
    settings = config(
        mode='"client"',
        scouting__multicast__enabled="true",
        scouting__multicast__interface='"127.0.0.1"',
        scouting__multicast__address=f'"{group}"',
        scouting__timeout="100",
    )
    with pytest.raises(zenlake.ZError, match=f"scouted {group} on interface 127.0.0.1"):
        zenlake.open(settings)


def test_a_place_that_is_taken_is_named() -> None:
    with listening() as first, pytest.raises(zenlake.ZError, match=where(first)):
        zenlake.open(config(listen__endpoints=f'["{where(first)}"]'))


def test_a_wrong_password_is_refused_in_words(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice:secret\n")
    users.chmod(0o600)
    settings = {
        "transport__auth__usrpwd__user": '"alice"',
        "transport__auth__usrpwd__password": '"guessed"',
    }
    with listening(transport__auth__usrpwd__dictionary_file=f'"{users}"') as strict:
        with pytest.raises(zenlake.ZError, match=where(strict)) as caught:
            connected(strict, mode='"client"', **settings)
        assert "guessed" not in str(caught.value), "a password is not shown"
        assert strict.info.transports() == []


def test_a_failed_opening_leaves_no_link_and_no_thread_behind() -> None:
    with listening():  # the loop thread is there
        before = threading.active_count()
        with mute() as endpoint, pytest.raises(zenlake.ZError):
            zenlake.open(
                config(
                    mode='"client"',
                    connect__endpoints=f'["{endpoint}"]',
                    transport__unicast__open_timeout="100",
                )
            )
        # Those of tests before this one may end meanwhile.
        until(lambda: threading.active_count() <= before, "a thread is left")


def test_all_sessions_of_a_process_share_one_loop_thread() -> None:
    with joined() as (here, there):
        assert here.runtime.loop is there.runtime.loop is shared_loop()


# ---------------------------------------------------------------------------------- reconnection


def test_a_lost_neighbour_is_connected_again_as_soon_as_it_is_back() -> None:
    port = free_port()
    place = f'["tcp/127.0.0.1:{port}"]'
    patient = {"transport__link__tx__lease": "600000"}
    first = zenlake.open(config(listen__endpoints=place, **patient))
    with connected(first, connect__retry=IMPATIENT, **patient) as session:
        events = session.info.declare_transport_events_listener(history=True)
        subscriber = session.declare_subscriber("again")
        token = session.liveliness().declare_token("alive/again")
        assert events.recv().kind is SampleKind.PUT
        first.close()
        assert events.recv().kind is SampleKind.DELETE
        with zenlake.open(config(listen__endpoints=place, **patient)) as second:
            assert events.recv().transport.zid == second.zid()
            publisher = second.declare_publisher("again")
            until_matched(publisher)
            publisher.put("x")
            assert subscriber.recv().payload == b"x"
            [alive] = second.liveliness().get("alive/*", timeout=SECONDS)
            assert alive.ok is not None
        token.undeclare()


def test_a_link_that_ends_without_a_goodbye_is_the_end_of_its_session() -> None:
    with joined(transport__link__tx__lease="600000") as (here, there):
        events = here.info.declare_transport_events_listener(history=True)
        assert events.recv().kind is SampleKind.PUT
        [pump] = there.runtime.pumps
        shared_loop().soon(pump.link.close)
        assert events.recv().kind is SampleKind.DELETE


# ------------------------------------------------------------------------------------------ time


def test_the_end_of_a_questions_time_comes_though_nothing_else_happens() -> None:
    with joined(transport__link__tx__lease="600000") as (here, there):
        queryable = here.declare_queryable("q")
        until_matched(there.declare_querier("q"))
        began = time.monotonic()
        [reply] = there.get("q", timeout=0.1)
        assert reply.err is not None
        assert 0.1 <= time.monotonic() - began < SECONDS
        queryable.undeclare()


def test_an_idle_link_outlives_its_lease_and_a_silent_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime, loop = started(timed(monkeypatch), transport__link__tx__lease="1500")
    client = Client(runtime, loop, MemoryLink(), b"\x11")
    client.open(lease=1500)
    said = []
    for _ in range(14):  # 3.5 leases
        loop.advance(1.5 / 4)
        said.append(client.link.batches())
        client.say(KeepAlive())
    assert said == [[]] + [[KeepAlive()]] * 13, "in the first quarter it had opened the session"
    assert len(runtime.neighbours()) == 1
    loop.advance(1.375)
    assert len(runtime.neighbours()) == 1
    loop.advance(0.125)
    assert runtime.neighbours() == []


# ------------------------------------------------------------------------------------------- ends


def test_closing_while_a_connection_is_under_way_does_not_wait_for_it() -> None:
    with mute() as endpoint:
        session = zenlake.open(
            config(
                connect__endpoints=f'["{endpoint}"]',
                scouting__delay="0",
                transport__unicast__open_timeout="3600000",
            )
        )
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < SECONDS


def test_what_was_put_before_the_close_arrives(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("last/*")
    publisher = there.declare_publisher("last/p", congestion_control=CongestionControl.BLOCK)
    until_matched(publisher)
    for number in range(500):
        publisher.put(str(number).ljust(1000))
    there.close()
    heard = [subscriber.recv().payload.to_string().rstrip() for _ in range(500)]
    assert heard == [str(number) for number in range(500)]


def test_closing_does_not_wait_long_for_a_neighbour_that_does_not_read() -> None:
    with joined() as (here, there):
        for session in (here, there):
            assert len(session.info.transports()) == 1
        subscriber = here.declare_subscriber("full")
        publisher = there.declare_publisher("full")
        until_matched(publisher)
        [pump] = here.runtime.pumps
        paused = threading.Event()
        shared_loop().soon(pump.pause)
        shared_loop().soon(paused.set)
        assert paused.wait(SECONDS)
        while (outcome := publisher.try_put(b"x" * 60_000)) is zenlake.PutOutcome.QUEUED:
            pass
        assert outcome is zenlake.PutOutcome.QUEUE_FULL
        began = time.monotonic()
        there.close()
        assert time.monotonic() - began < SECONDS
        assert subscriber.stats.received < 10_000


def test_closed_sessions_are_forgotten() -> None:
    def sessions() -> int:
        gc.collect()
        return sum(isinstance(one, zenlake.Session) for one in gc.get_objects())

    before = sessions()
    for _ in range(5):
        with joined() as (here, there):
            here.declare_subscriber("a", lambda sample: None)
            there.put("a", "x")
        del here, there
    assert sessions() == before


RULE = """{
    enabled: true, default_permission: "allow",
    rules: [{id: "none", permission: "deny", flows: ["egress", "ingress"], messages: ["put"],
             key_exprs: ["denied/**"]}],
    subjects: [{id: "all"}],
    policies: [{rules: ["none"], subjects: ["all"]}],
}"""


@pytest.mark.parametrize("rules", [{}, {"access_control": RULE}], ids=["free", "ruled"])
def test_what_a_neighbour_was_is_freed_by_reference_counts(rules: dict[str, str]) -> None:
    # A router's collections of garbage spare what lives long (`engine/survivors`).
    # With a lease so long that nothing is freed because one has ended.
    with listening(mode='"router"', transport__link__tx__lease="3600000", **rules) as router:
        runtime = router.runtime
        strangers: set[bytes] = set()

        def left() -> int:
            return sum(
                (isinstance(one, Neighbour) and one.node is runtime.node)
                or (isinstance(one, Pump) and one.runtime is runtime)
                or (isinstance(one, Face) and one.zid in strangers)
                for one in gc.get_objects()
            )

        gc.disable()
        try:
            for number in range(3):
                with connected(router, mode='"client"') as client:
                    client.declare_subscriber("a/*", lambda sample: None)
                    client.liveliness().declare_token(f"alive/{number}")
                    client.put("a/b", "x")
                # This one says nothing at its end, and does not read.
                stranger = Hostile.connect(int(where(router).rpartition(":")[2]))
                stranger.say([Interest(mode=3, id=1, tokens=True, subscribers=True)])
                until(lambda: len(runtime.pumps) == 1)
                strangers |= set(runtime.node.by_zid)
                assert strangers
                stranger.sock.close()
                until(lambda: not runtime.pumps)
            until(lambda: not left(), "they are still there")
        finally:
            gc.enable()


# ----------------------------------------------------------------------------------------- buffers


@pytest.mark.parametrize(
    "payload",
    [
        bytearray(b"abcdefgh"),
        memoryview(b"abcdefgh"),
        memoryview(b"a.b.c.d.e.f.g.h.")[::2],
        array.array("B", b"abcdefgh"),
        np.frombuffer(b"abcdefgh", np.uint8),
        np.frombuffer(b"abcdefgh", np.uint16).reshape(2, 2),
        zenlake.ZBytes(b"abcdefgh"),
        "abcdefgh",
    ],
    ids=["bytearray", "memoryview", "strided", "array", "numpy", "matrix", "ZBytes", "text"],
)
def test_a_payload_may_be_any_buffer(pair: Pair, payload: zenlake.ZBytes) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("b")
    publisher = there.declare_publisher("b")
    until_matched(publisher)
    publisher.put(payload)
    there.put("b", payload, attachment=payload)
    assert subscriber.recv().payload == b"abcdefgh"
    sample = subscriber.recv()
    assert sample.payload == b"abcdefgh"
    assert sample.attachment == b"abcdefgh"


def test_a_buffer_that_changes_after_the_put_does_not_change_the_sample(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("b")
    publisher = there.declare_publisher("b")
    until_matched(publisher)
    buffer = np.zeros(1000, np.uint8)
    for number in range(100):
        buffer[:] = number
        publisher.put(buffer)
    for number in range(100):
        assert set(subscriber.recv().payload.to_bytes()) == {number}


def test_what_is_received_is_read_without_a_copy(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("b")
    publisher = there.declare_publisher("b")
    until_matched(publisher)
    publisher.put(np.arange(1000, dtype=np.int64))
    payload = subscriber.recv().payload
    numbers = np.frombuffer(payload.view(), np.int64)
    assert numbers.sum() == 499_500
    assert not numbers.flags.owndata


# ------------------------------------------------------------------------------------- accounting


def test_statistics_account_for_everything_that_came(pair: Pair) -> None:
    here, there = pair
    ring = here.declare_subscriber("st", zenlake.handlers.RingChannel[zenlake.Sample](4))
    fifo = here.declare_subscriber("st")
    publisher = there.declare_publisher("st", congestion_control=CongestionControl.BLOCK)
    until_matched(publisher)
    for number in range(10):
        publisher.put(str(number))
    assert [fifo.recv().payload.to_string() for _ in range(10)] == [str(n) for n in range(10)]
    fence = here.declare_subscriber("fence")
    until_matched(there.declare_publisher("fence"))
    there.put("fence", "x")
    fence.recv()
    assert (fifo.stats.received, fifo.stats.delivered, fifo.stats.queued) == (10, 10, 0)
    stats = ring.stats
    assert (stats.received, stats.delivered, stats.queued) == (10, 0, 4)
    assert stats.dropped == {"oldest": 6, "full": 0, "cancelled": 0}
    assert stats.dropped_keys == {"oldest": {"st": 6}}
    assert [ring.recv().payload.to_string() for _ in range(4)] == ["6", "7", "8", "9"]
