from __future__ import annotations

import gc
import threading

import pytest

import zenlake
from tests.api.sessions import until_matched
from tests.waiting import SECONDS
from zenlake.handlers import Callback, FifoChannel, Handler, RingChannel

Pair = tuple[zenlake.Session, zenlake.Session]


def test_a_subscriber_is_iterated_until_it_is_undeclared(alone: zenlake.Session) -> None:
    subscriber = alone.declare_subscriber("a")
    alone.put("a", "1")
    alone.put("a", "2")
    samples = iter(subscriber)
    subscriber.undeclare()
    assert [sample.payload.to_string() for sample in samples] == ["1", "2"]


def test_a_subscriber_that_only_a_loop_holds_lives_as_long_as_the_loop(
    alone: zenlake.Session,
) -> None:
    samples = iter(alone.declare_subscriber("a"))
    gc.collect()
    alone.put("a", "1")
    assert next(samples).payload == b"1"


def test_a_forgotten_subscriber_is_undeclared(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("a")
    publisher = there.declare_publisher("a")
    changes = publisher.declare_matching_listener()
    assert changes.recv().matching
    del subscriber
    gc.collect()
    assert not changes.recv().matching


def test_a_forgotten_subscriber_with_a_callback_goes_on(alone: zenlake.Session) -> None:
    came = threading.Event()
    alone.declare_subscriber("a", lambda sample: came.set())
    gc.collect()
    alone.put("a", "x")
    assert came.wait(SECONDS)


def test_a_callback_may_ask_and_publish(pair: Pair) -> None:
    here, there = pair
    answers: list[str] = []
    over = threading.Event()

    def callback(sample: zenlake.Sample) -> None:
        for reply in here.get("q"):
            assert reply.ok is not None
            answers.append(reply.ok.payload.to_string())
        here.put("echo", sample.payload, congestion_control=zenlake.CongestionControl.BLOCK)
        over.set()

    here.declare_queryable("q", lambda query: query.reply("q", "yes"))
    here.declare_subscriber("a", callback)
    echo = there.declare_subscriber("echo")
    until_matched(here.declare_publisher("echo"))
    publisher = there.declare_publisher("a")
    until_matched(publisher)
    publisher.put("x")
    assert over.wait(SECONDS)
    assert answers == ["yes"]
    assert echo.recv().payload == b"x"


def test_a_callback_that_waits_with_a_full_queue_holds_nobody_up(pair: Pair) -> None:
    here, there = pair
    answered: list[bool] = []
    over = threading.Event()

    def callback(sample: zenlake.Sample) -> None:
        if not answered:
            # The reply comes over the very link that feeds this callback.
            answered.append(any(reply.ok is not None for reply in here.get("q")))
        if sample.payload == b"last":
            over.set()

    there.declare_queryable("q", lambda query: query.reply("q", "yes"))
    until_matched(here.declare_querier("q"))
    subscriber = here.declare_subscriber("a", callback)
    subscriber.receiver.channel.queue.capacity = 1
    publisher = there.declare_publisher("a", congestion_control=zenlake.CongestionControl.BLOCK)
    until_matched(publisher)
    for _ in range(500):
        publisher.put(bytes(100))
    publisher.put("last")
    assert over.wait(SECONDS)
    assert answered == [True]
    assert subscriber.stats.delivered == 501


def test_a_slow_consumer_slows_its_publisher_and_loses_nothing(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("a", FifoChannel(2))
    publisher = there.declare_publisher("a", congestion_control=zenlake.CongestionControl.BLOCK)
    until_matched(publisher)
    count = 300
    payload = bytes(20_000)

    def publish() -> None:
        for n in range(count):
            publisher.put(n.to_bytes(4, "big") + payload)

    thread = threading.Thread(target=publish)
    thread.start()
    got = [int.from_bytes(subscriber.recv().payload.to_bytes()[:4], "big") for _ in range(count)]
    thread.join(SECONDS)
    assert got == list(range(count))
    assert subscriber.stats.dropped == {"oldest": 0, "full": 0, "cancelled": 0}


def test_a_ring_keeps_the_newest(alone: zenlake.Session) -> None:
    subscriber = alone.declare_subscriber("a", RingChannel(2))
    for n in range(5):
        alone.put("a", str(n))
    assert [subscriber.recv().payload.to_string() for _ in range(2)] == ["3", "4"]
    assert subscriber.try_recv() is None
    stats = subscriber.stats
    assert (stats.received, stats.delivered, stats.dropped["oldest"]) == (5, 2, 3)


def test_a_direct_callback_runs_on_the_thread_that_puts(alone: zenlake.Session) -> None:
    where: list[int] = []
    alone.declare_subscriber(
        "a", Callback(lambda sample: where.append(threading.get_ident()), indirect=False)
    )
    alone.put("a", "x")
    assert where == [threading.get_ident()]


def test_waiting_on_the_loop_thread_is_refused(pair: Pair) -> None:
    here, there = pair
    never = here.declare_subscriber("never")
    said: list[str] = []
    over = threading.Event()

    def callback(sample: zenlake.Sample) -> None:
        try:
            never.recv()
        except zenlake.ZError as error:
            said.append(str(error))
        over.set()

    here.declare_subscriber("a", Callback(callback, indirect=False))
    publisher = there.declare_publisher("a")
    until_matched(publisher)
    publisher.put("x")
    assert over.wait(SECONDS)
    assert "must not wait" in said[0]


def test_undeclaring_from_its_own_callback_ends_it_without_a_wait(alone: zenlake.Session) -> None:
    over = threading.Event()
    callback = Callback[zenlake.Sample](lambda sample: subscriber.undeclare(), over.set)
    subscriber = alone.declare_subscriber("a", callback)
    alone.put("a", "x")
    assert over.wait(SECONDS)
    with pytest.raises(zenlake.ZError, match="Undeclared subscriber"):
        subscriber.undeclare()


def test_the_shape_of_the_handler_is_what_the_program_gets(alone: zenlake.Session) -> None:
    channel = alone.declare_subscriber("a")
    assert isinstance(channel.handler, Handler)
    assert repr(channel.handler) == "Handler[Sample]"
    called = alone.declare_subscriber("a", lambda sample: None)
    assert called.handler is None
    with pytest.raises(AttributeError):
        called.recv()
    with pytest.raises(TypeError):
        iter(called)
    items: list[zenlake.Sample] = []
    beside = alone.declare_subscriber("a", (items.append, items))
    assert beside.handler is items
    with pytest.raises(ValueError, match="is no handler"):
        alone.declare_subscriber("a", 5)  # type: ignore[call-overload]


def test_a_subscriber_shows_what_it_is(alone: zenlake.Session) -> None:
    subscriber = alone.declare_subscriber("a/*")
    assert subscriber.key_expr == "a/*"
    assert subscriber.id.zid == alone.zid()
    assert repr(subscriber) == "<Subscriber a/*>"
    assert subscriber.id != alone.declare_subscriber("a/*").id
