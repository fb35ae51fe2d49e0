from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xrce.weather import Pair, Weather, payloads
from zenlake import xrce
from zenlake.errors import EncodeError
from zenlake.testing.strategies import messages
from zenlake.wire.message import Message
from zenlake.xrce.declared import PAGE
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.properties import number
from zenlake.xrce.session import CLOSED, CLOSING, OPEN, OPENING, XrceSession


def opening(version: int = 1, pid: bytes = b"p", lease: int = 0, bits: int = 14) -> xrce.Open:
    properties = (number(4, bits),) if bits != 14 else ()
    return xrce.Open(version=version, pid=pid, lease=lease, locators=(), properties=properties)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (opening(bits=6), 4), (opening(bits=64), 4), (opening(version=2), 2),
        (opening(version=0), 2), (opening(pid=b""), 5), (opening(pid=bytes(17)), 5),
        (opening(lease=1 << 30), 5), (opening(bits=6, version=9), 4), (opening(pid=bytes(16)), 0),
        (opening(bits=63), 0), (opening(bits=7), 0), (opening(bits=11), 0),
    ],
)  # fmt: skip
def test_an_open_is_checked_in_order(told: xrce.Open, reason: int) -> None:
    session = XrceSession(SessionOptions(b"broker"), False)
    assert session.accept(told, 0.0) == reason
    assert (session.state == OPEN) is (reason == 0)


def test_authentication_is_compared() -> None:
    session = XrceSession(SessionOptions(b"broker"), False)
    assert session.accept(opening(), 0.0, secret=b"\2\3") == 1
    pair = Pair(near={"authentication": b"\2\3"})
    (told,) = xrce.read_packet(pair.packets[0][1])
    assert isinstance(told, xrce.Open)
    assert session.accept(told, 0.0, secret=b"\2\3") == 0


def test_accept_echoes_the_length_of_numbers() -> None:
    session = XrceSession(SessionOptions(b"broker", lease=0, conduits=1), False)
    session.accept(opening(pid=b"p", bits=11), 0.0)
    (packet,) = session.packets(0.0)
    assert packet.hex() == "240170" + "0662726f6b6572" + "00" + "0104010b" + "4e00"
    assert session.conduit(0).mask == 2047


def test_a_sender_is_to_blame_for_a_conduit_that_was_not_agreed_on() -> None:
    pair = Pair(near={"conduits": 2}).opened()
    with pytest.raises(EncodeError, match="conduit 2: this session has 2, from 0 on"):
        pair.a.send(xrce.StreamData(reliable=True, sn=0, id=1, payload=b"x"), True, conduit=2)


def test_open_is_repeated_until_it_is_given_up() -> None:
    session = XrceSession(SessionOptions(b"me", open_tries=3), True)
    session.open(0.0)
    sent = len(session.packets(0.0))
    while session.state == OPENING:
        session.tick(session.deadline)
        sent += len(session.packets(0.0))
    assert (sent, session.state, session.why) == (4, CLOSED, "nobody answered Open")


def test_accept_is_sent_again_and_nothing_else_changes() -> None:
    pair = Pair().opened()
    pair.send(b"one")
    pair.run(0.1)
    told = opening(pid=b"near")
    before = pair.b.conduit(0).reliable_in.next
    for _ in range(9):
        pair.b.take([told], pair.now)
        (packet,) = pair.b.packets(pair.now)
        assert packet[0] & 0x1F == 4
    assert pair.b.conduit(0).reliable_in.next == before == 1
    for _ in range(3):
        pair.b.take([told], pair.now)
    assert pair.b.state == CLOSED
    assert "does not hear us" in pair.b.why


def test_an_accept_for_another_and_a_second_accept_are_passed_over() -> None:
    session = XrceSession(SessionOptions(b"me"), True)
    session.open(0.0)
    session.take([xrce.Accept(open_pid=b"you", accept_pid=b"b", lease=0)], 0.0)
    assert session.state == OPENING
    session.take([xrce.Accept(open_pid=b"me", accept_pid=b"b", lease=0)], 0.0)
    session.take([xrce.Accept(open_pid=b"me", accept_pid=b"c", lease=0)], 0.0)
    assert (session.state, session.peer, session.counters.ignored) == (OPEN, b"b", 2)


def test_close_is_answered_and_waited_for() -> None:
    pair = Pair().opened()
    pair.a.close(pair.now)
    assert pair.a.state == CLOSING
    pair.flush()
    pair.run(0.1)
    assert (pair.a.state, pair.b.state) == (CLOSED, CLOSED)
    assert pair.b.why == "closed by the other side: success"


def test_who_closes_does_not_wait_for_ever() -> None:
    pair = Pair().opened()
    pair.weather.loss = 1.0
    pair.a.close(pair.now)
    pair.run(1.01)
    assert pair.a.state == CLOSED


def test_keep_alive_keeps_a_silent_session_and_silence_ends_it() -> None:
    pair = Pair(near={"lease": 10}, far={"lease": 10}).opened()
    pair.run(30)
    assert pair.a.state == pair.b.state == OPEN
    pair.weather.loss = 1.0
    pair.run(1.2)
    assert pair.a.state == pair.b.state == CLOSED


def test_a_lease_of_nothing_lasts_for_ever() -> None:
    pair = Pair(near={"lease": 0}, far={"lease": 0}).opened()
    pair.run(1.0)
    count = len(pair.packets)
    pair.run(100_000)
    assert pair.a.state == OPEN
    assert len(pair.packets) == count


def test_the_round_trip_is_measured() -> None:
    pair = Pair(Weather(delay=0.1)).opened()
    pair.a.ping(pair.now)
    pair.flush()
    pair.run(1)
    assert pair.a.rtt == pytest.approx(0.2)


@pytest.mark.parametrize("pid", [b"1", b"0123456789abcdef"])
def test_pids_of_one_to_sixteen_bytes(pid: bytes) -> None:
    a, b = XrceSession(SessionOptions(pid), True), XrceSession(SessionOptions(b"b"), False)
    a.open(0.0)
    (told,) = xrce.read_packet(a.packets(0.0)[0])
    assert isinstance(told, xrce.Open)
    assert b.accept(told, 0.0) == 0
    a.receive(b.packets(0.0)[0], 0.0)
    assert (a.state, b.peer) == (OPEN, pid)


# ---------------------------------------------------------------------------------- conduits


def test_conduits_have_channels_of_their_own() -> None:
    pair = Pair().opened()
    for id in (0, 1, 4, 0):
        pair.send(b"%d" % id, conduit=id)
    pair.settle()
    found = pair.heard
    assert [(xrce.conduit_of(m), m.sn) for m in found if isinstance(m, xrce.StreamData)] == [
        (0, 0), (1, 0), (4, 0), (0, 1),
    ]  # fmt: skip


def test_conduit_zero_is_said_aloud_behind_another_one() -> None:
    pair = Pair().opened()
    pair.run(0.1)
    for id in (1, 0):
        pair.a.send(xrce.StreamData(sn=0, id=2, payload=b""), False, id)
    (packet,) = pair.a.packets(pair.now)
    assert packet.hex() == "9307000200" + "1300" + "07000200"


def test_an_acknowledgement_names_the_conduit_of_the_data() -> None:
    pair = Pair().opened()
    data = xrce.StreamData(synch=True, reliable=True, sn=0, id=2, payload=b"", markers=(
        xrce.Conduit(id=1),
    ))  # fmt: skip
    pair.b.take([data], pair.now)
    assert pair.b.packets(pair.now)[-1].hex().endswith("930f01")


def test_an_unsupported_conduit_ends_the_session() -> None:
    pair = Pair(far={"conduits": 2}).opened()
    assert (pair.a.usable, pair.b.usable) == (2, 2)
    data = xrce.StreamData(sn=0, id=2, payload=b"", markers=(xrce.Conduit(id=2),))
    pair.b.take([data], pair.now)
    assert (pair.b.state, pair.b.reason) == (CLOSED, 255)


@given(seed=st.integers(0, 1 << 30))
def test_order_survives_a_migration(seed: int) -> None:
    pair = Pair(Weather(0.2, 0.1, 0.005, 0.02), Random(seed), near={"lease": 0}).opened()
    for i in range(20):
        pair.send(b"%d" % i, conduit=0)
    pair.a.migrate(0, 1, pair.now)
    for i in range(20, 40):
        pair.send(b"%d" % i, conduit=1)
    pair.settle(120)
    pair.run(5)
    assert payloads(pair.heard) == [b"%d" % i for i in range(40)]
    assert not pair.a._moving  # the other side has shown that it knows


def test_only_the_resource_that_moves_waits() -> None:
    pair = Pair().opened()
    b = pair.b
    marker = (xrce.Conduit(id=1),)
    b.take([xrce.Migrate(ocid=0, id=2, rch_last_sn=0, bech_last_sn=16383, markers=marker)], 0.0)
    moved = xrce.StreamData(reliable=True, sn=0, id=2, payload=b"moved", markers=marker)
    other = xrce.StreamData(reliable=True, sn=1, id=4, payload=b"other", markers=marker)
    assert payloads(b.take([moved, other], 0.0)) == [b"other"]
    old = xrce.StreamData(reliable=True, sn=0, id=2, payload=b"old")
    assert payloads(b.take([old], 0.0)) == [b"old", b"moved"]


def test_best_effort_messages_that_stayed_behind_are_dropped() -> None:
    pair = Pair().opened()
    marker = (xrce.Conduit(id=1),)
    told = xrce.Migrate(ocid=0, rch_last_sn=16383, bech_last_sn=4, markers=marker)
    late = [xrce.StreamData(sn=sn, id=2, payload=b"%d" % sn) for sn in (4, 5)]
    assert payloads(pair.b.take([told, *late], 0.0)) == [b"4"]


# ------------------------------------------------------------------------------------ packets


def test_packets_are_filled_up_to_the_mtu() -> None:
    pair = Pair(near={"mtu": 40}).opened()
    pair.run(0.1)
    for _ in range(20):
        pair.a.send(xrce.StreamData(sn=0, id=2, payload=b"12345"), False)
    assert [len(packet) for packet in pair.a.packets(pair.now)] == [36] * 5


def test_a_stream_to_an_old_peer_has_one_message_in_each_packet() -> None:
    session = XrceSession(SessionOptions(b"broker", lossless=True, lease=0), False)
    session.accept(opening(), 0.0)
    for _ in range(3):
        session.send(xrce.StreamData(reliable=True, sn=0, id=2, payload=b"x"), True)
    packets = session.packets(0.0)
    assert [len(xrce.read_packet(packet)) for packet in packets] == [1, 1, 1, 1]
    assert session.quiet  # a stream loses nothing: nothing is kept
    assert session.deadline == float("inf")


def test_numbers_that_never_begin_again_are_a_habit_of_streams() -> None:
    session = XrceSession(SessionOptions(b"broker", lossless=True), False)
    session.accept(opening(), 0.0)
    for sn in (16383, 16384, 16385, 1 << 40):
        data = xrce.StreamData(sn=sn, id=2, payload=b"x")
        assert len(session.take([data], 0.0)) == 1
    assert session.habits.endless
    pair = Pair().opened()
    pair.b.take([xrce.StreamData(sn=16384, id=2, payload=b"x")], 0.0)
    assert (pair.b.state, pair.b.reason) == (CLOSED, 255)


def test_an_open_that_does_not_fit_says_what_to_shorten() -> None:
    with pytest.raises(EncodeError, match="shorten the pid"):
        XrceSession(SessionOptions(bytes(16), mtu=20), True).open(0.0)


# ------------------------------------------------------------------------------------ hostile


@given(
    st.lists(st.binary(max_size=60) | messages(PAGE).map(xrce.write), max_size=5),
    st.sampled_from(["opening", "initiator", "acceptor", "closing", "closed"]),
)
def test_whatever_comes_a_session_goes_on_or_closes(packets: list[bytes], state: str) -> None:
    session = XrceSession(SessionOptions(b"me", room=4096), state in ("opening", "initiator"))
    if state == "opening":
        session.open(0.0)
    elif state == "initiator":
        session.open(0.0)
        session.take([xrce.Accept(open_pid=b"me", accept_pid=b"you", lease=0)], 0.0)
    else:
        session.accept(opening(), 0.0)
        if state == "closing":
            session.close(0.0)
        elif state == "closed":
            session.fail(255, "over")
    for packet in packets:
        session.receive(packet, 0.0)
        session.tick(0.1)
        for one in session.packets(0.1):
            xrce.read_packet(one)
    assert session.state != CLOSED or session.why


@given(st.lists(messages(PAGE), max_size=6))
def test_any_messages_in_any_order_are_survived(given_: list[Message]) -> None:
    pair = Pair(far={"room": 4096}).opened()
    wanted = [m for m in given_ if hasattr(m, "markers")]
    pair.b.take(wanted, pair.now)  # type: ignore[arg-type]
    pair.b.packets(pair.now)
