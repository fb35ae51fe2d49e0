from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import SECONDS
from zenlake.engine.channel import END, Channel, live
from zenlake.engine.delivery import MOST_OF_BATCH
from zenlake.engine.item_queue import BYTES
from zenlake.errors import ZError
from zenlake.transport.drops import FULL, OLDEST, DropLog


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads that change places far more often than they do at work."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class PausedLink:
    def __init__(self) -> None:
        self.resumed = threading.Event()

    def resume_soon(self) -> None:
        self.resumed.set()


def filled(*items: object, capacity: int = 8, ring: bool = False) -> Channel:
    channel = Channel(capacity, ring)
    for item in items:
        channel.push(item, 0)
    channel.commit()
    return channel


def called(callback: Callable[[object], object], **options: object) -> Channel:
    channel = Channel(int(str(options.get("capacity", 8))))
    drop = options.get("drop")
    channel.deliver(
        callback, drop if callable(drop) else None, bool(options.get("direct")), "a test"
    )
    return channel


def feed(channel: Channel, *items: object) -> None:
    for item in items:
        channel.push(item, 0)
    channel.commit()


# --- taking ------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.integers(0, 5), st.none()), max_size=60), st.integers(1, 4))
def test_a_ring_holds_what_a_bounded_deque_would(steps: list[int | None], capacity: int) -> None:
    from collections import deque

    channel = Channel(capacity, True)
    model: deque[int] = deque(maxlen=capacity)
    dropped = 0
    for step in steps:
        if step is None:
            assert channel.take(False) == (model.popleft() if model else None)
        else:
            dropped += len(model) == capacity
            model.append(step)
            channel.push(step, 0)
    assert list(channel.queue.items) == list(model)
    assert channel.queue.dropped_oldest == dropped
    assert channel.received == channel.delivered + channel.queue.dropped_oldest + len(
        channel.queue.items
    )


def test_items_come_out_in_the_order_they_went_in() -> None:
    channel = filled(1, 2, 3)
    assert [channel.take() for _ in range(3)] == [1, 2, 3]
    assert channel.take(False) is None


def test_what_is_inside_is_still_taken_after_the_end() -> None:
    channel = filled(1)
    channel.end()
    channel.end()
    channel.push(2, 0)
    assert channel.take() == 1
    assert channel.take() is END
    assert channel.take(False) is END
    assert channel.received == 1


def test_one_who_waits_is_woken_by_a_commit_and_by_nothing_before() -> None:
    channel = Channel()
    got: list[object] = []
    taker = threading.Thread(target=lambda: got.append(channel.take()))
    taker.start()
    while not channel.takers.wakers:
        os.sched_yield()
    channel.push("x", 0)
    assert channel.takers.wakers, "a push alone wakes nobody"
    channel.commit()
    taker.join(SECONDS)
    assert got == ["x"]


def test_the_end_wakes_all_who_wait() -> None:
    channel = Channel()
    got: list[object] = []
    takers = [threading.Thread(target=lambda: got.append(channel.take())) for _ in range(3)]
    for taker in takers:
        taker.start()
    while len(channel.takers.wakers) < 3:
        os.sched_yield()
    channel.end()
    for taker in takers:
        taker.join(SECONDS)
    assert got == [END] * 3


def test_the_loop_thread_may_look_but_not_wait() -> None:
    channel = Channel()
    channel.on_loop = lambda: True
    assert channel.take(False) is None
    with pytest.raises(ZError, match="must not wait"):
        channel.take()
    feed(channel, 1)
    assert channel.take() == 1


def test_many_who_feed_and_many_who_take_lose_nothing_and_double_nothing(impatient: None) -> None:
    channel = Channel(1 << 20)
    marked: list[Channel] = []
    channel.mark = marked.append
    count, feeders, takers = 2000, 4, 3
    got: list[list[object]] = [[] for _ in range(takers)]

    def put(base: int) -> None:
        for n in range(count):
            channel.push(base + n, 0)
            if n % 7 == 0:
                channel.commit()
        channel.commit()

    def take(mine: list[object]) -> None:
        while True:
            item = channel.take()
            if item is END:
                return
            mine.append(item)

    threads = [threading.Thread(target=take, args=(mine,)) for mine in got]
    feeding = [threading.Thread(target=put, args=(k * count,)) for k in range(feeders)]
    for thread in threads + feeding:
        thread.start()
    for thread in feeding:
        thread.join(SECONDS)
    channel.end()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(int(str(n)) for mine in got for n in mine) == list(range(count * feeders))
    assert marked


# --- bounds ------------------------------------------------------------------------------------


def test_a_full_channel_pauses_its_link_until_it_is_half_empty() -> None:
    channel, link = filled(1, 2, 3, 4, capacity=4), PausedLink()
    assert channel.is_full()
    assert channel.add_paused(link)
    channel.take()
    assert not link.resumed.is_set()
    channel.take()
    assert link.resumed.is_set()
    assert not channel.is_full()


def test_a_link_is_not_paused_for_a_channel_that_has_room_again() -> None:
    channel = filled(1, capacity=1)
    channel.take()
    assert not channel.add_paused(PausedLink())


def test_few_large_items_fill_a_channel_too() -> None:
    channel, link = Channel(), PausedLink()
    for _ in range(2):
        channel.push("large", BYTES // 2)
    assert channel.is_full()
    assert channel.add_paused(link)
    assert channel.take() == "large"
    assert link.resumed.is_set()
    assert channel.queue.held == BYTES // 2
    channel.discard()
    assert channel.queue.held == 0
    assert channel.queue.dropped_cancelled == 1


def test_a_ring_that_drops_a_large_item_forgets_its_weight() -> None:
    channel = Channel(1, True)
    channel.push("large", 5000)
    channel.push("small", 1)
    assert channel.queue.held == 0
    assert not channel.is_full()
    assert channel.take() == "small"


def test_beyond_all_bounds_items_are_dropped_and_counted() -> None:
    channel = Channel(1)
    for n in range(channel.queue.limit + 5):
        channel.push(n, 0)
    assert channel.queue.dropped_full == 5
    assert len(channel.queue.items) == channel.queue.limit


class Keyed:
    def __init__(self, key_expr: str) -> None:
        self.key_expr = key_expr


def test_what_a_channel_drops_is_counted_by_key_here_and_for_the_node() -> None:
    total = DropLog()
    ring, queue = Channel(2, True), Channel(1)
    ring.queue.total = queue.queue.total = total
    for n in range(6):
        ring.push(Keyed(f"robot/{n % 2}"), 5000 * (n % 2))
    for _ in range(queue.queue.limit + 3):
        queue.push(Keyed("slow"), 0)
    assert ring.queue.lost is not None
    assert ring.queue.lost.tallies[OLDEST].rows == {"robot/0": 2, "robot/1": 2}
    assert {reason: tally.rows for reason, tally in total.tallies.items()} == {
        OLDEST: {"robot/0": 2, "robot/1": 2},
        FULL: {"slow": 3},
    }


def test_the_end_of_a_full_channel_lets_its_link_be_read() -> None:
    channel, link = filled(1, capacity=1), PausedLink()
    channel.add_paused(link)
    channel.end()
    assert link.resumed.is_set()


def test_who_feeds_its_own_full_channel_waits_for_room() -> None:
    channel = filled(1, 2, capacity=2)
    waited = threading.Event()

    def feeder() -> None:
        channel.wait_for_room()
        waited.set()

    thread = threading.Thread(target=feeder)
    thread.start()
    while not channel.back_pressure.wakers:
        os.sched_yield()
    channel.take()
    assert waited.wait(SECONDS)
    thread.join(SECONDS)
    assert not channel.back_pressure.stuck


def test_who_is_also_the_one_that_takes_waits_once_at_most() -> None:
    channel = filled(1, 2, capacity=2)
    channel.wait_for_room(0.001)
    assert channel.back_pressure.stuck
    channel.wait_for_room(1e6)
    channel.take()
    assert not channel.back_pressure.stuck, "there was room again: the next time it waits"


def test_neither_the_loop_nor_a_callback_waits_for_room() -> None:
    channel = filled(1, capacity=1)
    channel.on_loop = lambda: True
    channel.wait_for_room(1e6)
    channel.on_loop = None
    over = threading.Event()
    other = called(lambda item: channel.wait_for_room(1e6), drop=over.set)
    feed(other, 1)
    other.end()
    assert over.wait(SECONDS)


# --- delivering --------------------------------------------------------------------------------


def test_a_callback_runs_on_one_thread_of_its_own_in_order_and_drop_comes_last() -> None:
    got: list[object] = []
    threads: set[str] = set()
    over = threading.Event()

    def callback(item: object) -> None:
        got.append(item)
        threads.add(threading.current_thread().name)

    channel = called(callback, drop=over.set)
    feed(channel, 1, 2)
    feed(channel, 3)
    channel.end()
    assert over.wait(SECONDS)
    channel.join()
    assert got == [1, 2, 3]
    assert threads == {"a test"}
    assert channel.delivered == 3


def test_a_callback_that_fails_is_logged_and_called_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    got: list[object] = []

    def callback(item: object) -> None:
        if item == 1:
            raise RuntimeError("not this one")
        got.append(item)

    def drop() -> None:
        raise SystemExit("nor this")

    channel = called(callback, drop=drop)
    with caplog.at_level(logging.ERROR, "zenlake"):
        feed(channel, 1, 2)
        channel.end()
        channel.join()
    assert got == [2]
    assert "not this one" in caplog.text
    assert "nor this" in caplog.text


def test_a_direct_callback_runs_where_it_is_fed() -> None:
    where: list[int] = []
    dropped: list[int] = []
    channel = called(
        lambda _: where.append(threading.get_ident()),
        drop=lambda: dropped.append(threading.get_ident()),
        direct=True,
    )
    feed(channel, 1)
    channel.end()
    channel.join()
    assert where == dropped == [threading.get_ident()]


def test_a_callback_may_end_its_own_channel() -> None:
    over = threading.Event()
    channels: list[Channel] = []

    def callback(item: object) -> None:
        channels[0].end()
        channels[0].join()

    channels.append(called(callback, drop=over.set))
    feed(channels[0], 1)
    assert over.wait(SECONDS)


def test_drop_is_called_even_if_nothing_ever_came() -> None:
    over = threading.Event()
    called(lambda item: None, drop=over.set).end()
    assert over.wait(SECONDS)
    silent = called(lambda item: None)
    silent.end()
    silent.join()
    assert not silent.delivery.started


def test_a_callback_that_waits_for_another_channel_lifts_the_pause_of_its_own() -> None:
    other, link = Channel(), PausedLink()
    entered = threading.Event()
    got: list[object] = []

    def callback(item: object) -> None:
        entered.set()
        got.append(other.take())

    channel = called(callback, capacity=1)
    feed(channel, 1)
    assert entered.wait(SECONDS)
    feed(channel, 2, 3)
    paused = channel.add_paused(link)
    # Either the callback sleeps already and nobody is paused for it, or it resumes them first.
    while not other.takers.wakers:
        os.sched_yield()
    assert link.resumed.is_set() if paused else not channel.is_full()
    feed(other, "a", "b", "c")
    channel.end()
    channel.join()
    assert got == ["a", "b", "c"]
    assert channel.back_pressure.lifted == 0


def test_an_item_is_let_go_of_before_the_next_one_is_waited_for() -> None:
    class Item:
        def __del__(self) -> None:
            gone.set()

    gone = threading.Event()
    channel = called(lambda item: None)
    feed(channel, Item())
    gc.collect()
    assert gone.wait(SECONDS)
    channel.end()


def test_delivery_loses_nothing_however_threads_change_places(impatient: None) -> None:
    got: list[object] = []
    channel = called(got.append, capacity=1 << 20)

    def put(base: int) -> None:
        for n in range(1000):
            feed(channel, base + n)

    feeders = [threading.Thread(target=put, args=(k * 1000,)) for k in range(3)]
    for feeder in feeders:
        feeder.start()
    for feeder in feeders:
        feeder.join(SECONDS)
    channel.end()
    channel.join()
    assert sorted(int(str(n)) for n in got) == list(range(3000))


def in_batches(callback: Callable[[list[object]], object], capacity: int = 8) -> Channel:
    def take(batch: object) -> None:
        assert isinstance(batch, list)
        callback(batch)

    channel = called(take, capacity=capacity)
    channel.delivery.batches = True
    return channel


def test_batches_have_all_that_is_there_up_to_a_bound_and_their_weight_is_let_go() -> None:
    got: list[list[object]] = []
    channel = in_batches(got.append)
    items = list(range(MOST_OF_BATCH + 2))
    for item in items:
        channel.push(item, 2000)
    channel.push("light", 0)
    channel.commit()
    channel.end()
    channel.join()
    assert got == [items[:MOST_OF_BATCH], [*items[MOST_OF_BATCH:], "light"]]
    assert channel.delivered == channel.received == len(items) + 1
    assert channel.queue.held == 0


def test_a_batch_that_fails_is_logged_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    got: list[list[object]] = []

    def callback(batch: list[object]) -> None:
        if 0 in batch:
            raise RuntimeError("not these")
        got.append(batch)

    channel = in_batches(callback)
    with caplog.at_level(logging.ERROR, "zenlake"):
        feed(channel, *range(MOST_OF_BATCH + 1))
        channel.end()
        channel.join()
    assert got == [[MOST_OF_BATCH]]
    assert "not these" in caplog.text


def test_batches_lose_nothing_however_threads_change_places(impatient: None) -> None:
    got: list[object] = []
    link = PausedLink()
    channel = in_batches(got.extend, capacity=64)

    def put(base: int) -> None:
        for n in range(1000):
            feed(channel, base + n)

    feeders = [threading.Thread(target=put, args=(k * 1000,)) for k in range(3)]
    for feeder in feeders:
        feeder.start()
    paused = channel.add_paused(link)
    for feeder in feeders:
        feeder.join(SECONDS)
    channel.end()
    channel.join()
    assert sorted(int(str(n)) for n in got) == list(range(3000))
    assert [n for n in got if int(str(n)) < 1000] == list(range(1000)), "in the order of each"
    assert not paused or link.resumed.wait(SECONDS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_a_child_process_a_channel_is_at_its_end() -> None:
    channel = filled(1)
    live(channel)
    child = os.fork()
    if child == 0:
        fine = channel.take() == 1 and channel.take() is END
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not channel.ended
    channel.end()


@pytest.mark.parametrize("batches", [False, True])
def test_a_settled_channel_has_called_for_all_that_was_pushed_before(
    batches: bool, impatient: None
) -> None:
    heard: list[object] = []

    def take(item: object) -> None:
        if isinstance(item, list):
            heard.extend(item)
        else:
            heard.append(item)

    channel = called(take, capacity=64)
    channel.delivery.batches = batches
    for round in range(200):
        channel.push(round, 0)
        channel.commit()
        assert channel.settle(SECONDS)
        assert heard == list(range(round + 1))
    assert channel.delivered == 200
    channel.end()
    channel.join()


def test_an_idle_channel_is_settled_without_a_thread() -> None:
    channel = called(lambda _: None)
    assert channel.settle(0.0)
    assert not channel.delivery.started


def test_a_channel_is_not_settled_while_its_callback_runs() -> None:
    free = threading.Event()
    channel = called(lambda _: free.wait(SECONDS))
    feed(channel, 1)
    assert not channel.settle(0.01)
    free.set()
    assert channel.settle(SECONDS)
    channel.end()
    channel.join()


def test_a_callback_may_settle_its_own_channel() -> None:
    said: list[bool] = []
    channel = called(lambda _: said.append(channel.settle(0.0)))
    feed(channel, 1)
    channel.end()
    channel.join()
    assert said == [True]


def test_marks_are_released_when_items_are_discarded_or_the_channel_has_ended() -> None:
    channel = called(lambda _: None)
    passage = channel.queue.mark()
    channel.discard()
    assert passage.passed.acquire(blocking=False)
    assert channel.queue.dropped_cancelled == 0
    channel.end()
    channel.join()
    channel.queue.add(1)  # came too late to be delivered
    assert channel.settle(0.0)
