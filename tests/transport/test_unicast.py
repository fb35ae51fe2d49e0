from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transport.pair import CLIENT, COOKIE, ROUTER, ear, exchange, opened, side, taken
from zenlake.errors import ClosedError, DecodeError, HandshakeError, RemoteError
from zenlake.transport.handshake import UNRESPONSIVE, Offer
from zenlake.transport.unicast import CLOSED, OPEN, Unicast
from zenlake.wire import (
    Declare,
    DeclareToken,
    Fragment,
    Frame,
    KeepAlive,
    Message,
    Push,
    Put,
    write,
)

MASK = 0x0FFF_FFFF


def put(key: str, payload: bytes = b"") -> Push:
    return Push(scope=0, suffix=key, body=Put(payload=payload))


def framed(*messages: Message) -> bytes:
    batch = b"".join(write(message) for message in messages)
    return len(batch).to_bytes(2, "little") + batch


def first_sn(unicast: Unicast) -> int:
    terms = ear(unicast).terms
    assert terms is not None
    return terms.rx_initial_sn


def keys(unicast: Unicast) -> list[str]:
    return [m.suffix for m, _, _ in ear(unicast).messages if isinstance(m, Push)]


# ------------------------------------------------------------------------------------- frames


def test_a_message_arrives_with_its_lane() -> None:
    client, router = opened()
    client.outbox.send(put("a"), 2, False)
    client.outbox.send(put("b"), 5, True)
    exchange(client, router)
    assert ear(router).messages == [(put("a"), 2, False), (put("b"), 5, True)]
    assert router.received == 2


def test_a_batch_may_mix_frames_lanes_and_keep_alives() -> None:
    _, router = opened()
    sn = first_sn(router)
    router.receive(
        framed(
            Frame(sn=sn, reliable=True, messages=(put("data"),)),
            KeepAlive(),
            Frame(sn=sn, reliable=True, priority=1, messages=(put("real-time"),)),
            Frame(sn=sn, reliable=False, messages=(put("best-effort"),)),
        ),
        0.0,
    )
    assert ear(router).messages == [
        (put("data"), 5, True),
        (put("real-time"), 1, True),
        (put("best-effort"), 5, False),
    ]


def test_all_sixteen_lanes_begin_at_the_same_number_and_count_alone() -> None:
    client, router = opened()
    for round_ in range(3):
        for priority in range(8):
            for reliable in (True, False):
                client.outbox.send(put(f"{round_}/{priority}/{reliable}"), priority, reliable)
        exchange(client, router)
    assert len(keys(router)) == 48
    assert router.lanes.duplicates == 0


@pytest.mark.parametrize(
    ("gaps", "accepted"),
    [
        ([0], [True]),
        ([0, 0], [True, False]),  # the same again
        ([0, 5], [True, True]),  # a gap
        ([5, 3], [True, False]),  # older
        ([0, 0x07FF_FFFF], [True, True]),
        ([0, 0x0800_0000], [True, False]),
        ([0x0800_0000 - 2, 0x0800_0000 - 1], [True, True]),
        ([-1], [False]),  # before the first
    ],
)
def test_numbers_are_accepted_by_the_table(gaps: list[int], accepted: list[bool]) -> None:
    _, router = opened()
    for number, gap in enumerate(gaps):
        sn = (first_sn(router) + gap) & MASK
        router.receive(framed(Frame(sn=sn, reliable=True, messages=(put(str(number)),))), 0.0)
    assert keys(router) == [str(i) for i, taken_in in enumerate(accepted) if taken_in]
    assert router.lanes.duplicates == accepted.count(False)
    assert router.state == OPEN


def test_a_dropped_frame_is_passed_over_and_the_next_is_read() -> None:
    _, router = opened()
    sn = first_sn(router)
    frame = Frame(sn=sn, reliable=True, messages=(put("a"), put("b")))
    router.receive(framed(frame), 0.0)
    following = Frame(sn=sn + 1, reliable=True, messages=(put("c"),))
    router.receive(framed(frame, following), 0.0)
    assert keys(router) == ["a", "b", "c"]


def test_the_first_number_may_be_zero() -> None:
    _, router = opened()
    router.lanes.last = [MASK] * 16  # as if zero had been announced
    router.receive(framed(Frame(sn=0, reliable=True, messages=(put("zero"),))), 0.0)
    assert keys(router) == ["zero"]


def test_a_number_beyond_the_resolution_ends_the_session() -> None:
    _, router = opened()
    with pytest.raises(DecodeError, match="above"):
        router.receive(framed(Frame(sn=MASK + 1, reliable=True, messages=())), 0.0)


def test_eight_bit_numbers_wrap_around_many_times() -> None:
    client, router = opened(Offer(b"\x01", CLIENT, resolution=0x08))
    for number in range(300):
        client.outbox.send(put(str(number)), 5, True)
        exchange(client, router)
    assert keys(router) == [str(number) for number in range(300)]


def test_a_lane_that_was_not_agreed_ends_the_session() -> None:
    _, router = opened(Offer(b"\x01", CLIENT, qos=False))
    frame = Frame(sn=first_sn(router), reliable=True, priority=3, messages=(put("a"),))
    with pytest.raises(DecodeError, match="no lanes agreed"):
        router.receive(framed(frame), 0.0)


def test_messages_before_a_broken_one_are_delivered() -> None:
    _, router = opened()
    batch = write(Frame(sn=first_sn(router), reliable=True, messages=(put("good"),)))
    batch += b"\x7d\x00\xff"
    with pytest.raises(DecodeError) as caught:
        router.receive(len(batch).to_bytes(2, "little") + batch, 0.0)
    router.fail(caught.value, 0.0)
    assert keys(router) == ["good"]
    assert taken(router) == []  # an open session is cut without a word
    assert ear(router).endings == [caught.value]


def test_unknown_optional_extensions_of_a_frame_are_passed_over() -> None:
    _, router = opened()
    sn = write(Frame(sn=first_sn(router), reliable=True, messages=()))[1:]
    body = write(put("a"))
    batch = b"\xa5" + sn + b"\x8e" + b"\x2d\x05" + body  # a unit, then an integer
    router.receive(len(batch).to_bytes(2, "little") + batch, 0.0)
    assert keys(router) == ["a"]


def test_an_unknown_mandatory_extension_of_a_frame_ends_the_session() -> None:
    _, router = opened()
    sn = write(Frame(sn=first_sn(router), reliable=True, messages=()))[1:]
    batch = b"\xa5" + sn + b"\x1e" + write(put("a"))
    with pytest.raises(DecodeError):
        router.receive(len(batch).to_bytes(2, "little") + batch, 0.0)


@pytest.mark.parametrize("header", [0x08, 0x10, 0x18])
def test_an_unknown_transport_message_ends_the_session(header: int) -> None:
    _, router = opened()
    with pytest.raises(DecodeError):
        router.receive(bytes((1, 0, header)), 0.0)


# ---------------------------------------------------------------------------------- fragments


def train(
    sn: int, data: bytes, size: int, *, marked: bool = True, priority: int = 5
) -> list[bytes]:
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    return [
        framed(
            Fragment(
                sn=(sn + i) & MASK,
                reliable=True,
                more=i < len(pieces) - 1,
                first=marked and i == 0,
                priority=priority,
                payload=piece,
            )
        )
        for i, piece in enumerate(pieces)
    ]


def test_a_train_without_its_first_mark_is_dropped_and_the_link_stays() -> None:
    _, router = opened()
    sn = first_sn(router)
    for batch in train(sn, write(put("lost", b"x" * 100)), 30, marked=False):
        router.receive(batch, 0.0)
    for batch in train(sn + 10, write(put("found", b"x" * 100)), 30):
        router.receive(batch, 0.0)
    assert keys(router) == ["found"]


def test_a_neighbour_without_marks_is_understood() -> None:
    _, router = opened(Offer(b"\x01", CLIENT, patch=0))
    for batch in train(first_sn(router), write(put("plain", b"x" * 100)), 30, marked=False):
        router.receive(batch, 0.0)
    assert keys(router) == ["plain"]


def test_a_dropped_train_leaves_nothing() -> None:
    _, router = opened()
    sn = first_sn(router)
    pieces = train(sn, write(put("abandoned", b"x" * 100)), 30)
    router.receive(pieces[0], 0.0)
    router.receive(framed(Fragment(sn=sn + 1, reliable=True, drop=True, payload=b"")), 0.0)
    router.receive(pieces[2], 0.0)
    router.receive(pieces[3], 0.0)
    assert keys(router) == []
    assert router.lanes.collecting == 0
    assert router.state == OPEN


def test_trains_of_different_lanes_may_mingle() -> None:
    _, router = opened()
    sn = first_sn(router)
    one = train(sn, write(put("one", b"x" * 100)), 40)
    two = train(sn, write(put("two", b"y" * 100)), 40, priority=2)
    for a, b in zip(one, two, strict=True):
        router.receive(a, 0.0)
        router.receive(b, 0.0)
    assert keys(router) == ["one", "two"]


def test_what_sixteen_lanes_collect_together_is_bounded() -> None:
    _, router = opened(max_message=10_000)
    sn = first_sn(router)
    for priority in range(8):
        for number in range(5):
            piece = Fragment(
                sn=(sn + number) & MASK, reliable=True, more=True, first=number == 0,
                priority=priority, payload=b"x" * 1000,
            )  # fmt: skip
            router.receive(framed(piece), 0.0)
            held = sum(lane.size for lane in router.lanes.reassemblies)
            assert held == router.lanes.collecting <= 10_000
    assert router.state == OPEN


def test_a_train_that_is_no_message_costs_itself_alone() -> None:
    _, router = opened()
    sn = first_sn(router)
    for batch in train(sn, b"\x7d\x00\xff" * 20, 30):
        router.receive(batch, 0.0)
    assert router.lanes.undecodable == 1
    router.receive(framed(Frame(sn=sn + 2, reliable=True, messages=(put("next"),))), 0.0)
    assert keys(router) == ["next"]


# -------------------------------------------------------------------------- leases and closing


def ticking(unicast: Unicast, until: float) -> list[float]:
    """When a side says something of its own, up to a time."""
    times = []
    while unicast.deadline <= until:
        now = unicast.deadline
        unicast.tick(now)
        if taken(unicast):
            times.append(now)
    return times


def test_a_quiet_side_keeps_its_lease_alive_four_times_a_lease() -> None:
    client, _ = opened(Offer(b"\x01", CLIENT, lease=1500))
    assert ticking(client, 1.6) == pytest.approx([0.375, 0.75, 1.125, 1.5])


@pytest.mark.parametrize(
    ("low_latency", "compression"), [(True, False), (False, True), (True, True)]
)
def test_other_modes_keep_alive_as_often(low_latency: bool, compression: bool) -> None:
    offer = Offer(
        b"\x01", CLIENT, lease=1500, qos=not low_latency, low_latency=low_latency,
        compression=compression,
    )  # fmt: skip
    theirs = Offer(
        b"\x02", ROUTER, qos=not low_latency, low_latency=low_latency, compression=compression
    )
    client, router = opened(offer, theirs)
    assert ticking(client, 1.6) == pytest.approx([0.375, 0.75, 1.125, 1.5])
    client.outbox.send(put("a", b"x" * 1000), 5, True)
    exchange(client, router)
    assert keys(router) == ["a"]


def test_a_side_that_talks_needs_no_keep_alives() -> None:
    client, _ = opened(Offer(b"\x01", CLIENT, lease=1500))
    client.outbox.send(put("a"), 5, True)
    taken(client)
    client.tick(0.375)
    assert taken(client) == []
    client.tick(0.75)
    assert taken(client) == [b"\x01\x00\x04"]


def test_silence_is_cut_exactly_at_the_lease() -> None:
    _, router = opened(Offer(b"\x01", CLIENT, lease=1500))
    router.tick(1.499)
    assert router.deadline == pytest.approx(1.5)
    with pytest.raises(RemoteError, match=r"nothing heard for its lease of 1\.5 s") as caught:
        router.tick(1.5)
    taken(router)
    router.fail(caught.value, 1.5)
    assert taken(router) == []


def test_any_byte_renews_the_lease() -> None:
    _, router = opened(Offer(b"\x01", CLIENT, lease=1500))
    router.receive(b"\x01\x00\x04", 1.4)
    router.tick(2.0)
    with pytest.raises(RemoteError):
        router.tick(2.9)


def test_a_goodbye_is_heard_with_its_reason() -> None:
    client, router = opened()
    client.outbox.send(put("last words"), 5, True)
    client.close(1.0, UNRESPONSIVE)
    assert client.state == CLOSED
    assert ear(client).endings == [None]
    exchange(client, router, 1.0)
    assert keys(router) == ["last words"]
    [error] = ear(router).endings
    assert isinstance(error, ClosedError)
    assert error.reason == UNRESPONSIVE
    router.receive(framed(Frame(sn=0, reliable=True, messages=(put("late"),))), 1.0)
    assert keys(router) == ["last words"]


def test_a_plain_goodbye_is_the_recorded_one() -> None:
    client, _ = opened()
    client.close(1.0)
    assert taken(client) == [b"\x02\x00\x03\x00"]


def test_a_lost_link_ends_the_session_once() -> None:
    client, _ = opened()
    client.lost(None, 1.0)
    client.lost(None, 1.0)
    client.close(1.0)
    client.fail(RemoteError("late"), 1.0)
    assert ear(client).endings == [None]


def test_an_opening_that_takes_too_long_ends() -> None:
    router = side(Offer(b"\x02", ROUTER))
    router.listen(5.0, COOKIE)
    assert router.deadline == 15.0
    router.tick(14.9)
    with pytest.raises(HandshakeError, match="no session after 10 s"):
        router.tick(15.0)


def test_bytes_do_not_prolong_an_opening() -> None:
    router = side(Offer(b"\x02", ROUTER))
    router.listen(0.0, COOKIE)
    for second in range(10):
        router.receive(b"\xff" if second == 0 else b"\x7f" if second == 1 else b"\x00", second)
    with pytest.raises(HandshakeError):
        router.tick(10.0)


def test_a_neighbour_that_does_not_take_what_it_is_told_is_given_up() -> None:
    _, router = opened()
    router.outbox.forced = 1000
    token = Declare(qos=8, body=DeclareToken(id=1, scope=0, suffix="t" * 30_000))
    while router.outbox.send(token, 0, True, force=True):
        pass
    with pytest.raises(RemoteError, match="does not take"):
        router.tick(1.0)


# --------------------------------------------------------------------------------- properties


def test_datagrams_carry_one_batch_each() -> None:
    client, router = opened(stream=False)
    client.outbox.send(put("a", b"x" * 100_000), 5, True)
    client.outbox.send(put("b"), 5, False)
    exchange(client, router)
    assert keys(router) == ["a", "b"]


lanes = st.tuples(st.integers(0, 7), st.booleans(), st.integers(0, 5000))


@given(
    st.lists(lanes, max_size=30),
    st.integers(64, 4096),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_messages_arrive_intact_and_in_order_however_the_stream_is_cut(
    sent: list[tuple[int, bool, int]], size: int, qos: bool, random: Random
) -> None:
    client, router = opened(Offer(b"\x01" * 16, CLIENT, 0x09, size, qos=qos), depth=10_000)
    expected: dict[tuple[int, bool], list[bytes]] = {}
    for number, (priority, reliable, length) in enumerate(sent):
        message = put(f"k/{number}", b"v" * length)
        assert client.outbox.send(message, priority, reliable)
        lane = (priority if qos else 5, reliable)
        expected.setdefault(lane, []).append(write(message))
    stream = b"".join(taken(client))
    while stream:
        cut = random.randint(1, max(1, min(len(stream), 3000)))
        router.receive(stream[:cut], 0.0)
        stream = stream[cut:]
    found: dict[tuple[int, bool], list[bytes]] = {}
    for message_, priority, reliable in ear(router).messages:
        found.setdefault((priority, reliable), []).append(write(message_))
    assert found == expected
    assert router.lanes.collecting == 0


@given(st.binary(max_size=200), st.integers(0, 3), st.booleans())
def test_any_bytes_after_the_opening_are_refused_or_understood(
    data: bytes, kind: int, stream: bool
) -> None:
    """Nothing but a remote error leaves a conversation, whatever a stranger says."""
    _, router = opened(stream=stream)
    sn = write(Frame(sn=first_sn(router), reliable=True, messages=()))[1:]
    data = (b"", b"\x25" + sn, b"\x26" + sn, b"\xa6" + sn)[kind] + data
    try:
        router.receive(len(data).to_bytes(2, "little") + data if stream else data, 0.0)
    except RemoteError as error:
        router.fail(error, 0.0)
        assert router.state == CLOSED
        assert len(ear(router).endings) == 1
