"""What is passed on and what is answered: nothing is lost for haste, and nothing waits for ever."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import zenlake
from tests.api.sessions import connected, joined, listening, until_matched, where
from tests.waiting import SECONDS, until
from zenlake import CongestionControl
from zenlake.wire import (
    Declare,
    DeclareSubscriber,
    Frame,
    InitAck,
    InitSyn,
    Message,
    OpenSyn,
    read_batch,
    write,
)

CLIENT = {"mode": '"client"'}


@contextmanager
def routed(**keys: str) -> Iterator[tuple[zenlake.Session, zenlake.Session, zenlake.Session]]:
    """A router and two of its clients."""
    with (
        listening(mode='"router"', **keys) as router,
        connected(router, **CLIENT) as one,
        connected(router, **CLIENT) as other,
    ):
        yield router, one, other


def say(to: socket.socket, message: Message) -> None:
    batch = write(message)
    to.sendall(len(batch).to_bytes(2, "little") + batch)


def subscribed_and_deaf(to: zenlake.Session, key: str, zid: bytes) -> socket.socket:
    """Somebody who subscribes and then never reads."""
    host, port = where(to).removeprefix("tcp/").rsplit(":", 1)
    deaf = socket.create_connection((host, int(port)), SECONDS)
    say(deaf, InitSyn(version=9, whatami=2, zid=zid, qos=True, patch=1))
    size = int.from_bytes(deaf.recv(2), "little")
    [ack] = read_batch(deaf.recv(size))
    assert isinstance(ack, InitAck)
    say(deaf, OpenSyn(lease=60_000, initial_sn=0, cookie=ack.cookie))
    subscriber = Declare(body=DeclareSubscriber(id=1, scope=0, suffix=key))
    say(deaf, Frame(sn=0, reliable=True, messages=(subscriber,)))
    return deaf


def test_nothing_that_may_not_be_dropped_is_lost_between_a_fast_and_a_slow_client() -> None:
    count, size = 3000, 8192
    with routed() as (router, fast, slow):
        samples = slow.declare_subscriber("k", zenlake.handlers.FifoChannel(16))
        publisher = fast.declare_publisher("k", congestion_control=CongestionControl.BLOCK)
        until_matched(publisher)

        def publish() -> None:
            for number in range(count):
                publisher.put(number.to_bytes(4, "big") + bytes(size))

        thread = threading.Thread(target=publish)
        thread.start()
        # It has more to say than all buffers between them hold: the router stops listening to it.
        neighbour = router.runtime.node.by_zid[fast.runtime.zid]
        [pump] = [pump for pump in router.runtime.pumps if pump.neighbour is neighbour]
        until(lambda: pump.pauses, "the router went on listening", SECONDS)
        heard = [int.from_bytes(bytes(samples.recv().payload)[:4], "big") for _ in range(count)]
        thread.join(SECONDS)
        assert heard == list(range(count))
        assert sum(sum(p.outbox.drops) for p in router.runtime.pumps) == 0


def test_who_takes_nothing_at_all_is_given_up_and_the_others_go_on() -> None:
    patience = "transport__link__tx__queue__congestion_control__block__wait_before_close"
    with routed(**{patience: "300000"}) as (router, fast, other):
        heard = other.declare_subscriber("k", zenlake.handlers.RingChannel(1))
        publisher = fast.declare_publisher("k", congestion_control=CongestionControl.BLOCK)
        until_matched(publisher)
        with subscribed_and_deaf(router, "k", b"\x66"):
            sessions = router.runtime.node.by_zid
            until(lambda: b"\x66" in sessions, "no session", SECONDS)
            deadline = time.monotonic() + SECONDS
            while b"\x66" in sessions and time.monotonic() < deadline:
                publisher.put(bytes(60_000))
            assert b"\x66" not in sessions
        publisher.put(b"after")
        while bytes(heard.recv().payload) != b"after":
            pass


def test_an_answer_does_not_wait_for_the_end_of_its_question() -> None:
    heard = threading.Event()
    late: list[bool] = []

    def answer(query: zenlake.Query) -> None:
        with query:
            query.reply("k", b"v")
            if str(query.parameters) == "wait":
                late.append(not heard.wait(SECONDS))

    with joined() as (here, there):
        queryable = here.declare_queryable("k", answer)
        querier = there.declare_querier("k", consolidation=zenlake.ConsolidationMode.NONE)
        until_matched(querier)
        for _ in range(5):
            # Quick ones first: after those the answering thread reads the link itself.
            for _ in range(20):
                assert len(list(querier.get())) == 1
            heard.clear()
            replies = querier.get(parameters="wait")
            assert replies.recv().ok is not None
            heard.set()
            assert list(replies) == []
        assert late == [False] * 5
        queryable.undeclare()
