from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.transport.framing import vle
from zenlake.transport.outbox import Outbox
from zenlake.wire import Fragment, Frame, KeepAlive, Push, Put, TransportMessage, read_batch, write

MASK = 0x0FFF_FFFF


def outbox(batch_size: int = 1024, qos: bool = True, sn: int = 7, depth: int = 2) -> Outbox:
    return Outbox(batch_size, 2, MASK, sn, qos, depth)


def put(key: str, payload: bytes) -> Push:
    return Push(scope=0, suffix=key, body=Put(payload=payload))


def head(key: str) -> bytes:
    """All of a put up to its payload."""
    return write(put(key, b""))[:-1]


def said(box: Outbox) -> list[list[TransportMessage]]:
    """What each batch says; its length must be true and within what was agreed."""
    batches: list[list[TransportMessage]] = []
    while batch := box.take():
        assert int.from_bytes(batch[:2], "little") == len(batch) - 2
        assert len(batch) <= box.framing.limit + 2
        batches.append(read_batch(batch[2:]))
    return batches


def test_many_messages_share_a_frame() -> None:
    box = outbox()
    for number in range(3):
        assert box.push(head("a"), bytes((number,)), 5, True)
    assert box.waiting()
    assert said(box) == [
        [Frame(sn=7, reliable=True, messages=tuple(put("a", bytes((n,))) for n in range(3)))]
    ]
    assert not box.waiting()
    assert (box.messages_sent, box.pending) == (3, 0)


def test_a_publication_is_written_as_its_message_would_be() -> None:
    one, other = outbox(), outbox()
    for payload in (b"", b"x", b"y" * 200, b"z" * 20_000):
        one.push(head("demo/a"), payload, 5, True)
        other.send(put("demo/a", payload), 5, True)
    assert said(one) == said(other)


def test_another_reliability_begins_another_frame_with_its_own_number() -> None:
    box = outbox()
    for reliable in (True, False, False, True):
        box.push(head("a"), b"", 5, reliable)
    push = put("a", b"")
    assert said(box) == [
        [
            Frame(sn=7, reliable=True, messages=(push,)),
            Frame(sn=7, reliable=False, messages=(push, push)),
            Frame(sn=8, reliable=True, messages=(push,)),
        ]
    ]


def test_priorities_have_their_own_lanes_and_the_most_urgent_goes_first() -> None:
    box = outbox()
    for priority in (7, 5, 0, 3):
        box.push(head(str(priority)), b"", priority, True)
    frames = [batch[0] for batch in said(box)]
    assert all(isinstance(frame, Frame) and frame.sn == 7 for frame in frames)
    assert [frame.priority for frame in frames if isinstance(frame, Frame)] == [0, 3, 5, 7]


def test_without_lanes_everything_stays_in_order() -> None:
    box = outbox(qos=False)
    for priority in (7, 5, 0):
        box.push(head(str(priority)), b"", priority, True)
    [[frame]] = said(box)
    assert isinstance(frame, Frame)
    assert frame.priority == 5  # not said: there are no lanes
    assert frame.messages == tuple(put(key, b"") for key in "750")


def test_the_agreed_size_includes_the_length() -> None:
    box = outbox(batch_size=1024, depth=100)
    for _ in range(100):
        box.push(head("a"), b"x" * 100, 5, True)
    batches = []
    while batch := box.take():
        batches.append(batch)
    assert max(len(batch) for batch in batches) <= 1024
    assert len(batches) > 10


def test_a_large_message_goes_in_fragments_of_its_lane() -> None:
    box = outbox(batch_size=1024)
    box.push(head("r/a"), b"z" * 3000, 4, True)
    box.push(head("r/a"), b"after", 4, True)
    *train, [frame] = said(box)
    fragments = [batch[0] for batch in train]
    assert all(len(batch) == 1 for batch in train)
    assert [
        (f.sn, f.more, f.first, f.reliable, f.priority)
        for f in fragments
        if isinstance(f, Fragment)
    ] == [(7, True, True, True, 4), (8, True, False, True, 4), (9, False, False, True, 4)]
    whole = b"".join(f.payload for f in fragments if isinstance(f, Fragment))
    assert whole == write(put("r/a", b"z" * 3000))
    assert frame == Frame(sn=10, reliable=True, priority=4, messages=(put("r/a", b"after"),))


def test_urgent_lanes_go_between_fragments() -> None:
    box = outbox(batch_size=1024)
    box.push(head("r/a"), b"z" * 3000, 5, True)
    first = read_batch(box.take()[2:])[0]
    box.push(head("now"), b"", 1, True)
    second = read_batch(box.take()[2:])[0]
    assert isinstance(first, Fragment)
    assert isinstance(second, Frame)
    assert len(said(box)) == 2


def test_numbers_wrap_around_in_frames_and_trains() -> None:
    box = Outbox(1024, 2, 0x7F, 126, True, 1000)
    sns = []
    for _ in range(5):
        box.push(head("a"), b"z" * 3000, 5, True)
        for batch in said(box):
            fragment = batch[0]
            assert isinstance(fragment, Fragment)
            sns.append(fragment.sn)
    assert sns == [(126 + i) & 0x7F for i in range(15)]


def test_a_full_lane_takes_no_more_and_leaves_the_others_alone() -> None:
    box = outbox(batch_size=128, depth=2)
    taken = 0
    while box.push(head("a"), b"x" * 50, 5, True):
        taken += 1
        assert taken < 10
    assert box.full(5)
    assert not box.push(head("a"), b"x" * 5000, 5, True)
    assert box.push(head("a"), b"x" * 50, 6, True)
    assert not box.full(6)
    assert box.send(put("a", b"x" * 50), 5, True, force=True)
    box.take()
    box.take()
    assert box.push(head("a"), b"x" * 50, 5, True)


def test_what_must_not_be_dropped_is_bounded_all_the_same() -> None:
    box = outbox(batch_size=1024, depth=2)
    box.forced = 20_000
    for _ in range(100):
        box.send(put("a", b"x" * 1000), 0, True, force=True)
    assert box.overflowed
    assert box.held <= 21_000 + 1024
    while box.take():
        pass
    assert box.held == 0


def test_the_closing_word_goes_behind_everything_that_waits() -> None:
    box = outbox()
    box.push(head("a"), b"x" * 3000, 5, True)
    box.push(head("b"), b"last", 7, True)
    box.send_close(b"\x03\x00")
    assert not box.push(head("c"), b"", 5, True)
    assert not box.send(put("c", b""), 0, True, force=True)
    batches = []
    while batch := box.take():
        batches.append(batch)
    assert len(batches) == 5
    assert batches[-1] == b"\x02\x00\x03\x00"
    assert not box.waiting()


def test_what_is_urgent_goes_before_everything() -> None:
    box = outbox()
    box.push(head("a"), b"", 0, True)
    box.send_transport(b"\x04")
    assert [type(batch[0]) for batch in said(box)] == [KeepAlive, Frame]


def test_a_datagram_has_no_length_in_front() -> None:
    box = Outbox(1024, 0, MASK, 7, True, 2)
    box.push(head("a"), b"x", 5, False)
    assert read_batch(box.take()) == [Frame(sn=7, reliable=False, messages=(put("a", b"x"),))]
    box.send_transport(b"\x04")
    assert box.take() == b"\x04"


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (127, "7f"), (128, "8001"), (16383, "ff7f"), (2**28 - 1, "ffffff7f")],
)
def test_lengths_are_written_as_integers_are(value: int, data: str) -> None:
    assert vle(value).hex() == data


def test_a_stream_is_given_as_many_batches_as_it_has_room_for() -> None:
    box = outbox(batch_size=100, depth=20)
    for number in range(12):
        box.push(head("a"), bytes((number,)) * 60, 5, True)
    one = box.take()
    assert len(one) < 100
    several = box.take(room=3 * len(one))
    assert [several[at] for at in range(len(one) - 1, len(several), len(one))] == [1, 2, 3]
    assert box.batches_sent == 4
    rest = box.take(room=1 << 20)
    assert len(rest) == 8 * len(one)
    assert not box.waiting()


def test_a_batch_that_is_being_filled_stays_behind_those_that_are_full() -> None:
    box = outbox(batch_size=100)
    box.push(head("a"), b"x" * 60, 5, True)
    box.push(head("a"), b"y" * 60, 5, True)
    assert b"y" not in box.take(1 << 20, closed_only=True)
    assert box.waiting()
    assert b"y" in box.take(1 << 20)


def test_fragments_of_a_train_go_together_too() -> None:
    one, other = outbox(), outbox()
    for box in (one, other):
        box.push(head("a"), b"z" * 5000, 5, True)
    apart = b"".join(iter(one.take, b""))
    assert other.take(room=1 << 20) == apart
    assert other.held == 0


messages = st.tuples(
    st.integers(0, 7), st.booleans(), st.integers(0, 3000), st.booleans(), st.booleans()
)


@given(
    st.lists(messages, max_size=40), st.integers(64, 2048), st.booleans(), st.integers(0, 10_000)
)
def test_every_lane_says_everything_once_in_order(
    sent: list[tuple[int, bool, int, bool, bool]], size: int, qos: bool, room: int
) -> None:
    """Whatever is pushed, with the link taking a batch now and then."""
    box = Outbox(size, 2, MASK, MASK - 3, qos, 10_000)
    expected: dict[int, list[bytes]] = {}
    found: dict[int, list[bytes]] = {}
    trains: dict[tuple[int, bool], bytes] = {}
    numbers: dict[tuple[int, bool], int] = {}

    def take() -> bool:
        taken = box.take(room)
        assert len(taken) <= max(room, size)
        said: list[TransportMessage] = []
        rest = taken
        while rest:
            length = int.from_bytes(rest[:2], "little")
            assert length + 2 <= size
            said.extend(read_batch(rest[2 : 2 + length]))
            rest = rest[2 + length :]
        for message in said:
            assert isinstance(message, Frame | Fragment)
            lane = (message.priority, message.reliable)
            assert message.sn == numbers.get(lane, MASK - 3)
            numbers[lane] = (message.sn + 1) & MASK
            if isinstance(message, Frame):
                found.setdefault(lane[0], []).extend(write(each) for each in message.messages)
            else:
                trains[lane] = (b"" if message.first else trains[lane]) + message.payload
                if not message.more:
                    found.setdefault(lane[0], []).append(trains.pop(lane))
        return bool(taken)

    for number, (priority, reliable, length, encoded, taking) in enumerate(sent):
        message = put(f"key/{number}", b"p" * length)
        if encoded:
            assert box.send(message, priority, reliable)
        else:
            assert box.push(head(f"key/{number}"), b"p" * length, priority, reliable)
        expected.setdefault(priority if qos else 5, []).append(write(message))
        if taking:
            take()
    while take():
        pass
    assert found == expected
    assert not trains
    assert box.held == 0
