from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import SECONDS
from zenlake.engine.channel import Channel
from zenlake.engine.handlers import (
    FEW,
    BatchCallback,
    Callback,
    DefaultHandler,
    FifoChannel,
    Handler,
    HandlerStats,
    QueryQueue,
    Receiver,
    ReplyQueue,
    RingChannel,
    SampleQueue,
    StatusQueue,
    TokenQueue,
)
from zenlake.engine.item_queue import ITEMS, SLACK
from zenlake.errors import ZError
from zenlake.keys import KeyExpr
from zenlake.node.sample import Sample, sample_of
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Del, Err, Put


def sample(payload: bytes = b"x") -> Sample:
    return sample_of(KeyExpr("a"), Push(scope=0, body=Put(payload=payload)), True)


def lying(read: bytes, at: int) -> Sample:
    """A sample of 600 bytes somewhere in a read."""
    found = Sample(KeyExpr("a"), None, True, 0, b"", 0, 0, b"", 5, True, None)
    found.lies_in(read, at, 600)
    return found


def handler_of(receiver: Receiver) -> Handler[object]:
    handler = receiver.handler
    assert isinstance(handler, Handler)
    return handler


@pytest.mark.parametrize("given", [None, DefaultHandler(), FifoChannel(3), RingChannel(3)])
def test_a_channel_gives_the_end_to_take_from(given: object) -> None:
    receiver = Receiver(given, "Sample", "a test")
    handler = handler_of(receiver)
    assert repr(handler) == "Handler[Sample]"
    assert not receiver.is_callback
    assert handler.try_recv() is None
    receiver.channel.push(1, 0)
    receiver.channel.push(2, 0)
    assert handler.recv() == 1
    receiver.channel.end()
    assert list(handler) == [2]
    with pytest.raises(ZError, match="empty and closed"):
        handler.recv()
    with pytest.raises(ZError, match="empty and closed"):
        handler.try_recv()


def test_a_function_is_called_and_gives_no_handler() -> None:
    came = threading.Event()
    receiver = Receiver(lambda item: came.set(), "Sample", "a test")
    assert receiver.is_callback
    assert receiver.handler is None
    receiver.channel.push(1, 0)
    receiver.channel.commit()
    assert came.wait(SECONDS)
    receiver.channel.end()


def test_a_function_of_batches_is_given_lists() -> None:
    batches: list[list[object]] = []
    receiver = Receiver(BatchCallback(batches.append), "Sample", "a test")
    for item in (1, 2):
        receiver.channel.push(item, 0)
    receiver.channel.commit()
    receiver.channel.end()
    receiver.channel.join()
    assert receiver.is_callback
    assert batches == [[1, 2]]
    BatchCallback(batches.append)(3)
    assert batches[1:] == [[3]]


def test_an_object_beside_a_function_is_given_back() -> None:
    items: list[object] = []
    receiver = Receiver((Callback(items.append, indirect=False), items), "Sample", "a test")
    receiver.channel.push(1, 0)
    assert receiver.handler is items
    assert items == [1]


@pytest.mark.parametrize("given", [5, "text", (5, 6), (print, 1, 2), object()])
def test_anything_else_is_no_handler(given: object) -> None:
    with pytest.raises(ValueError, match="is no handler"):
        Receiver(given, "Sample", "a test")


def test_a_callback_shows_its_parts_and_can_be_called() -> None:
    callback = Callback(str, dict)
    assert (callback.callback, callback.drop, callback.indirect) == (str, dict, True)
    assert callback(5) == "5"
    assert "indirect=True" in repr(callback)
    with pytest.raises(TypeError, match="cannot be"):
        Callback(5)  # type: ignore[arg-type]


@given(st.integers(0, 1 << 30))
def test_a_channel_says_how_much_it_holds(capacity: int) -> None:
    for kind in (FifoChannel[int], RingChannel[int]):
        channel = kind(capacity)
        assert channel.capacity == capacity
        assert f"({capacity})" in repr(channel)
    assert repr(DefaultHandler[int]()) == "DefaultHandler()"


def test_a_capacity_is_a_number_that_makes_sense() -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        FifoChannel(-1)
    with pytest.raises(TypeError, match=r"a number of items|int object"):
        RingChannel("3")  # type: ignore[arg-type]


def test_samples_are_counted_by_what_became_of_them() -> None:
    receiver = Receiver(RingChannel(2), "Sample", "a test")
    sink = SampleQueue(receiver.channel)
    for payload in (b"a", b"b", b"c"):
        sink.push(sample(payload))
    sink.commit()
    first = handler_of(receiver).recv()
    assert isinstance(first, Sample)
    assert first.payload == b"b"
    stats = HandlerStats(receiver.channel)
    assert (stats.received, stats.delivered, stats.queued) == (3, 1, 1)
    assert stats.dropped == {"oldest": 1, "full": 0, "cancelled": 0}
    assert "received=3" in repr(stats)
    sink.end()
    assert receiver.channel.ended


def test_large_samples_weigh() -> None:
    receiver = Receiver(None, "Sample", "a test")
    sink = SampleQueue(receiver.channel)
    sink.push(sample(bytes(5000)))
    assert receiver.channel.queue.held == 5000


def test_many_samples_of_a_read_weigh_as_much_as_the_read_they_keep() -> None:
    channel = Channel()
    queue = SampleQueue(channel)
    for read in (b"x" * 100_000, b"y" * 50_000):
        for at in range(FEW + 4):
            queue.push(lying(read, at))
    channel.commit()
    assert channel.queue.held == 150_000
    while channel.take(False) is not None:
        pass
    assert channel.queue.held == 0


def test_few_samples_of_a_read_do_not_keep_it() -> None:
    channel = Channel()
    queue = SampleQueue(channel)
    samples = [lying(b"x" * 100_000, at) for at in range(FEW)]
    for one in samples:
        queue.push(one)
    assert channel.queue.held == 0
    assert [one.chunk for one in samples] == [b""] * FEW


def test_who_is_called_at_once_keeps_no_read() -> None:
    channel = Channel()
    channel.deliver(lambda _: None, None, True, "a test")
    SampleQueue(channel).push(lying(b"x" * 100_000, 0))
    assert channel.delivered == 1
    assert channel.queue.chunk == b""


def test_a_ring_keeps_payloads_and_no_reads() -> None:
    channel = Channel(4, True)
    queue = SampleQueue(channel)
    one = lying(b"x" * 100_000, 5)
    queue.push(one)
    assert one.chunk == b""
    assert bytes(one.payload) == b"x" * 600


def test_news_of_tokens_wakes_by_itself() -> None:
    came = threading.Event()
    receiver = Receiver(lambda item: came.set(), "Sample", "a test")
    sink = TokenQueue(receiver.channel)
    sink.push(sample())
    assert came.wait(SECONDS)
    sink.commit()
    sink.end()


def test_replies_that_lie_in_memory_have_room_and_a_lost_one_is_told_of() -> None:
    receiver = Receiver(None, "Reply", "a test")
    replies = ReplyQueue(receiver.channel, lambda key, body, who, qos: (key, body))
    many = SLACK * ITEMS + 3
    replies.make_room(many)
    for _ in range(many):
        replies.push("a", Del(), None, 5)
    replies.end()
    assert list(handler_of(receiver)) == [("a", Del())] * many

    receiver = Receiver(None, "Reply", "a test")
    replies = ReplyQueue(receiver.channel, lambda key, body, who, qos: (key, body))
    for _ in range(many):
        replies.push("a", Del(), None, 5)
    replies.end()
    taken = list(handler_of(receiver))
    assert taken[:-1] == [("a", Del())] * (many - 3)
    why = b"3 replies came faster than they were taken, and are lost: ask for fewer"
    assert taken[-1] == ("", Err(encoding=1, payload=why))


def test_answers_and_statuses_take_the_form_that_programs_see() -> None:
    receiver = Receiver(None, "Reply", "a test")
    answers = ReplyQueue(receiver.channel, lambda key, body, who, qos: (key, body, qos))
    answers.push("a", Del(), None, 5)
    answers.push("b", Err(payload=b"no"), None, 13)
    answers.end()
    assert list(handler_of(receiver)) == [("a", Del(), 5), ("b", Err(payload=b"no"), 13)]

    receiver = Receiver(None, "MatchingStatus", "a test")
    statuses = StatusQueue(receiver.channel, lambda matching: f"matching {matching}")
    statuses.push(True)
    statuses.end()
    assert list(handler_of(receiver)) == ["matching True"]

    receiver = Receiver(None, "Query", "a test")
    questions = QueryQueue(receiver.channel, lambda incoming: incoming)
    questions.end()
    assert list(handler_of(receiver)) == []
