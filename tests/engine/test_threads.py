"""Many threads on one session: nothing is lost, doubled or forgotten, and nobody waits for ever.

Everything runs with threads that change places as often as the interpreter can, and everything
has a deadline.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import zenlake
from tests.api.sessions import (
    config,
    connected,
    connecting_to,
    joined,
    listening,
    until_matched,
    where,
)
from tests.waiting import SECONDS
from zenlake import CongestionControl, ConsolidationMode
from zenlake.handlers import Callback, FifoChannel, RingChannel

Pair = tuple[zenlake.Session, zenlake.Session]

BLOCK = CongestionControl.BLOCK
DROP = CongestionControl.DROP
THREADS = 8
DEADLINE = SECONDS


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Threads change places after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with joined() as sessions:
        yield sessions


def crowd(work: Callable[[int], object], count: int = THREADS) -> Callable[[], None]:
    """Have many threads work at once; gives what waits for them all, and raises what they did."""
    errors: list[BaseException] = []
    begin = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            begin.wait(DEADLINE)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()

    def wait() -> None:
        for thread in threads:
            thread.join(DEADLINE)
            assert not thread.is_alive(), "a thread waits for ever"
        if errors:
            raise errors[0]

    return wait


class Tally:
    """Counts what a callback is called with, and tells when it is enough."""

    def __init__(self, enough: int) -> None:
        self.heard: list[tuple[str, str]] = []
        self.enough = enough
        self.done = threading.Event()

    def __call__(self, sample: zenlake.Sample) -> None:
        self.heard.append((str(sample.key_expr), sample.payload.to_string()))
        if len(self.heard) == self.enough:
            self.done.set()

    def all(self) -> list[tuple[str, str]]:
        assert self.done.wait(DEADLINE), f"{len(self.heard)} of {self.enough} were heard"
        return self.heard


def test_what_many_threads_publish_on_their_own_keys_arrives_once_and_in_order(pair: Pair) -> None:
    here, there = pair
    each = 1500
    tally = Tally(THREADS * each)
    here.declare_subscriber("t/*", tally)
    publishers = [
        there.declare_publisher(f"t/{n}", congestion_control=BLOCK) for n in range(THREADS)
    ]
    for publisher in publishers:
        until_matched(publisher)

    def publish(number: int) -> None:
        for value in range(each):
            publishers[number].put(str(value))

    crowd(publish)()
    heard = tally.all()
    for number in range(THREADS):
        assert [v for k, v in heard if k == f"t/{number}"] == [str(v) for v in range(each)]


@pytest.mark.parametrize("size", [8, 3000, 100_000], ids=["small", "batches", "fragments"])
def test_one_publisher_may_be_used_by_many_threads(pair: Pair, size: int) -> None:
    here, there = pair
    each = {8: 1500, 3000: 300, 100_000: 16}[size]
    tally = Tally(THREADS * each)
    here.declare_subscriber("t", tally)
    publisher = there.declare_publisher("t", congestion_control=BLOCK)
    until_matched(publisher)

    def publish(number: int) -> None:
        for value in range(each):
            publisher.put(f"{number}/{value}/".ljust(size, "x"))

    crowd(publish)()
    heard = [value.rstrip("x") for _, value in tally.all()]
    assert sorted(heard) == sorted(f"{n}/{v}/" for n in range(THREADS) for v in range(each))


def test_every_neighbour_hears_every_thread() -> None:
    each = 800
    with listening() as middle, connected(middle) as one, connected(middle) as two:
        tallies = [Tally(THREADS * each), Tally(THREADS * each)]
        one.declare_subscriber("t/*", tallies[0])
        two.declare_subscriber("t/*", tallies[1])
        publishers = [
            middle.declare_publisher(f"t/{n}", congestion_control=BLOCK) for n in range(THREADS)
        ]
        for other, name in ((one, "one"), (two, "two")):
            other.declare_subscriber(f"ready/{name}", lambda sample: None)
            until_matched(middle.declare_publisher(f"ready/{name}"))

        def publish(number: int) -> None:
            for value in range(each):
                publishers[number].put(str(value))

        crowd(publish)()
        expected = Counter((f"t/{n}", str(v)) for n in range(THREADS) for v in range(each))
        for tally in tallies:
            assert Counter(tally.all()) == expected


def test_no_neighbour_is_forgotten_when_threads_ask_for_several_at_the_same_moment() -> None:
    with listening() as middle, ExitStack() as stack:
        for _ in range(THREADS):
            stack.enter_context(connected(middle))
        runtime = middle.runtime
        outboxes = [pump.outbox for pump in runtime.pumps]

        def ask(number: int) -> None:
            for _ in range(2000):
                runtime.flushing.soon(outboxes[number])

        crowd(ask)()
        heard = threading.Event()
        runtime.loop.soon(heard.set)
        assert heard.wait(DEADLINE)
        assert runtime.flushing.is_idle()


def test_many_threads_ask_at_once_and_each_gets_its_own_answers(pair: Pair) -> None:
    here, there = pair

    def answer(query: zenlake.Query) -> None:
        for part in ("a", "b"):
            query.reply(query.key_expr, f"{query.key_expr} {part}")

    here.declare_queryable("q/**", answer)
    until_matched(there.declare_querier("q/**"))

    def ask(number: int) -> None:
        for value in range(40):
            key = f"q/{number}/{value}"
            replies = list(there.get(key, consolidation=ConsolidationMode.NONE, timeout=DEADLINE))
            found = [reply.ok.payload.to_string() for reply in replies if reply.ok is not None]
            assert found == [f"{key} a", f"{key} b"]

    crowd(ask)()


def test_declaring_and_undeclaring_by_many_threads_leaves_nothing_behind(pair: Pair) -> None:
    here, there = pair

    def declare(number: int) -> None:
        session = pair[number % 2]
        for value in range(15):
            key = f"d/{number}/{value}"
            with (
                session.declare_subscriber(f"{key}/*"),
                session.declare_queryable(f"{key}/**"),
                session.declare_publisher(f"{key}/p") as publisher,
                session.declare_querier(f"{key}/q"),
                session.liveliness().declare_token(f"{key}/t"),
            ):
                publisher.put("x")
                session.put(f"d/{number + 1}/{value}/p", "y")

    crowd(declare)()
    for session, other in (pair, (there, here)):
        # The end of a question that was asked later: all that was undeclared has been heard.
        fence = other.declare_queryable("fence", lambda query: None)
        with session.declare_querier("fence") as querier:
            until_matched(querier)
        assert list(session.liveliness().get("d/**", timeout=SECONDS)) == []
        with session.declare_publisher("d/**") as publisher:
            assert not publisher.matching_status
        with session.declare_querier("d/**") as asking:
            assert not asking.matching_status
        fence.undeclare()


def test_publishing_while_subscribers_come_and_go_reaches_those_who_stay(pair: Pair) -> None:
    here, there = pair
    each = 300
    tally = Tally((THREADS - 2) * each)
    here.declare_subscriber("s/*", tally)
    publisher = there.declare_publisher("s/p", congestion_control=BLOCK)
    until_matched(publisher)

    def work(number: int) -> None:
        if number < 2:
            for _ in range(60):
                pair[number].declare_subscriber("s/**", lambda sample: None).undeclare()
        else:
            for value in range(each):
                publisher.put(f"{number}/{value}")

    crowd(work)()
    assert Counter(value for _, value in tally.all()) == Counter(
        f"{n}/{v}" for n in range(2, THREADS) for v in range(each)
    )


def test_a_slow_subscriber_slows_its_publishers_and_loses_nothing(pair: Pair) -> None:
    here, there = pair
    capacity, each = 16, 500
    subscriber = here.declare_subscriber("slow", FifoChannel[zenlake.Sample](capacity))
    publisher = there.declare_publisher("slow", congestion_control=BLOCK)
    until_matched(publisher)

    def publish(number: int) -> None:
        for value in range(each):
            publisher.put(f"{number}/{value}".ljust(5000))

    wait = crowd(publish)
    heard: Counter[str] = Counter()
    most = 0
    for _ in range(THREADS * each):
        most = max(most, subscriber.stats.queued)
        heard[subscriber.recv().payload.to_string().rstrip()] += 1
    wait()
    assert heard == Counter(f"{n}/{v}" for n in range(THREADS) for v in range(each))
    # Full, it holds what it may and what came in the same chunk; everybody else waits outside.
    assert most <= capacity + (1 << 20) // 5000
    stats = subscriber.stats
    assert (stats.received, stats.delivered) == (THREADS * each, THREADS * each)
    assert sum(stats.dropped.values()) == 0


def test_every_sample_that_is_dropped_is_counted(pair: Pair) -> None:
    here, there = pair
    each = 1000
    subscriber = here.declare_subscriber("drop", FifoChannel[zenlake.Sample](1))
    publisher = there.declare_publisher("drop", congestion_control=DROP)
    last = there.declare_publisher("drop", congestion_control=BLOCK)
    until_matched(publisher)
    outcomes: list[zenlake.PutOutcome] = []

    def publish(number: int) -> None:
        outcomes.extend([publisher.try_put(b"x" * 10_000) for _ in range(each)])

    crowd(publish)()
    ending = threading.Thread(target=last.put, args=(b"last",), daemon=True)
    ending.start()
    received = 0
    while subscriber.recv().payload != b"last":
        received += 1
    ending.join(DEADLINE)
    assert not ending.is_alive()
    dropped = sum(not outcome for outcome in outcomes)
    assert dropped > 0
    assert received == THREADS * each - dropped
    [pump] = there.runtime.pumps
    assert sum(pump.outbox.drops) == dropped


def test_a_ring_accounts_for_all_that_many_threads_put_in() -> None:
    each = 500
    with listening() as session:
        subscriber = session.declare_subscriber("ring", RingChannel[zenlake.Sample](10))

        def publish(number: int) -> None:
            for value in range(each):
                session.put("ring", f"{number}/{value}")

        crowd(publish)()
        stats = subscriber.stats
        assert stats.received == THREADS * each
        assert stats.queued == 10
        assert stats.dropped["oldest"] == THREADS * each - 10


def test_callbacks_that_publish_and_ask_with_full_queues_do_not_wait_for_each_other(
    pair: Pair,
) -> None:
    here, there = pair
    count = 300
    done = threading.Event()
    echoed: list[str] = []

    def answer(query: zenlake.Query) -> None:
        query.reply(query.key_expr, query.parameters["n"] or "")

    here.declare_queryable("ask", answer)

    def back(sample: zenlake.Sample) -> None:
        echoed.append(sample.payload.to_string().rstrip())
        if len(echoed) == count:
            done.set()

    there.declare_subscriber("pong", back)
    pong = here.declare_publisher("pong", congestion_control=BLOCK)

    def echo(sample: zenlake.Sample) -> None:
        text = sample.payload.to_string()
        if int(text) % 10 == 0:
            [reply] = here.get(f"ask?n={text.strip()}", timeout=DEADLINE)
            assert reply.ok is not None
            assert reply.ok.payload == text.strip()
        pong.put(text)

    here.declare_subscriber("ping", Callback[zenlake.Sample](echo))
    ping = there.declare_publisher("ping", congestion_control=BLOCK)
    until_matched(ping)
    until_matched(pong)
    for number in range(count):
        ping.put(str(number).ljust(20_000))
    assert done.wait(DEADLINE), f"{len(echoed)} of {count} came back"
    assert echoed == [str(number) for number in range(count)]


def test_sessions_are_opened_and_closed_by_many_threads_at_once() -> None:
    with listening() as middle:
        events = middle.info.declare_transport_events_listener()

        # Made beforehand: what is said of warnings holds for all threads.
        settings = config(**connecting_to(where(middle)))

        def live(number: int) -> None:
            for _ in range(4):
                with zenlake.open(settings) as session:
                    session.declare_subscriber(f"life/{number}", lambda sample: None)
                    assert session.info.peers_zid() == [middle.zid()]

        crowd(live)()
        kinds = Counter(events.recv().kind for _ in range(THREADS * 8))
        assert set(kinds.values()) == {THREADS * 4}
        assert middle.info.transports() == []


def test_a_session_that_is_closed_under_many_threads_lets_them_all_go(pair: Pair) -> None:
    here, there = pair
    subscriber = here.declare_subscriber("c", FifoChannel[zenlake.Sample](1))
    publisher = there.declare_publisher("c", congestion_control=BLOCK)
    until_matched(publisher)
    waiting = there.declare_subscriber("nothing")
    started = threading.Semaphore(0)

    def publish_on() -> None:
        while True:
            publisher.put(b"x" * 50_000)

    def use(number: int) -> None:
        started.release()
        with pytest.raises(zenlake.ZError):
            publish_on() if number % 2 else waiting.recv()

    wait = crowd(use)
    for _ in range(THREADS):
        assert started.acquire(timeout=DEADLINE)
    subscriber.recv()  # now they are at work
    there.close()
    wait()
