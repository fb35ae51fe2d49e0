from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.scouting import DiscoveredNode, HelloResponder, ScoutSender, is_loopback
from zenlake.scouting.scout import MAX_HELLO_BYTES
from zenlake.wire import Hello, Scout, read_scouting, write

ME = bytes(range(1, 17))
OTHER = b"\xaa\xbb"
ROUTER, PEER, CLIENT = 1, 2, 4


def scouting(matcher: int = 7) -> ScoutSender:
    return ScoutSender(ME, PEER, matcher)


def hello(zid: bytes = OTHER, code: int = 0, locators: tuple[str, ...] = ("tcp/a:1",)) -> bytes:
    return write(Hello(version=9, whatami=code, zid=zid, locators=locators))


def test_nothing_is_asked_before_the_start_and_after_the_end() -> None:
    machine = scouting()
    assert machine.deadline is None
    assert machine.tick(0.0) is None
    machine.start(5.0)
    machine.stop()
    assert machine.deadline is None
    assert machine.tick(9.0) is None


def test_the_question_is_the_one_that_real_nodes_send() -> None:
    machine = scouting()
    machine.start(0.0)
    assert machine.tick(0.0) == bytes.fromhex("010907")


def test_the_interval_doubles_to_its_longest() -> None:
    machine = scouting()
    machine.start(100.0)
    asked = []
    while (due := machine.deadline) is not None and due < 150:
        assert machine.tick(due - 0.001) is None
        assert machine.tick(due) is not None
        asked.append(due - 100)
    assert asked == [0, 1, 3, 7, 15, 23, 31, 39, 47]


def test_a_new_start_begins_with_the_short_interval() -> None:
    machine = scouting()
    machine.start(0.0)
    for now in (0.0, 1.0, 3.0):
        assert machine.tick(now)
    machine.start(4.0)
    assert machine.tick(4.0)
    assert machine.deadline == 5.0


@pytest.mark.parametrize(("code", "role"), [(0, ROUTER), (1, PEER), (2, CLIENT)])
def test_an_answer_tells_who_is_where(code: int, role: int) -> None:
    found = scouting().received(hello(code=code, locators=("tcp/a:1", "udp/b:2")), 0.0)
    assert found == [DiscoveredNode(OTHER, role, ("tcp/a:1", "udp/b:2"))]


def test_the_golden_hello_is_understood() -> None:
    golden = "2209f0a6629724b97f9424f4992edd7cfeadbc01137463702f3132372e302e302e313a3330303030"
    (found,) = scouting().received(bytes.fromhex(golden), 0.0)
    assert found.role == ROUTER
    assert found.locators == ("tcp/127.0.0.1:30000",)


def test_ones_own_answer_is_ignored() -> None:
    assert scouting().received(hello(zid=ME), 0.0) == []


def test_an_answer_without_locators_is_ignored() -> None:
    assert scouting().received(hello(locators=()), 0.0) == []


def test_a_question_is_no_answer() -> None:
    machine = scouting()
    assert machine.received(bytes.fromhex("010907"), 0.0) == []
    assert machine.undecodable == 0


def test_what_cannot_be_decoded_is_counted() -> None:
    machine = scouting()
    for datagram in (b"", b"\xff", hello()[:-1], hello() + b"\0"):
        assert machine.received(datagram, 0.0) == []
    assert machine.undecodable == 4


@given(st.binary(max_size=200))
def test_no_datagram_can_hurt(datagram: bytes) -> None:
    machine = scouting()
    answering = HelloResponder(ME, PEER, lambda: ["tcp/1.2.3.4:5"])
    assert len(machine.received(datagram, 0.0)) <= 1
    answer = answering.received(datagram, True)
    assert answer is None or isinstance(read_scouting(answer), Hello)
    assert machine.undecodable == answering.undecodable


@given(
    st.lists(st.floats(0, 20), max_size=40),
    st.floats(0.1, 4),
    st.floats(4, 30),
)
def test_it_never_asks_sooner_than_the_interval_allows(
    steps: list[float], period: float, longest: float
) -> None:
    machine = ScoutSender(ME, PEER, 7, period=period, max_period=longest)
    now, last = 0.0, None
    machine.start(now)
    for step in steps:
        now += step
        if machine.tick(now) is not None:
            assert last is None or now - last >= period * 0.999
            last = now
        assert machine.deadline is not None
        assert machine.deadline <= now + longest * 1.001


@given(st.integers(0, 7), st.sampled_from([ROUTER, PEER, CLIENT]), st.integers(0, 255))
def test_only_those_who_look_for_the_role_are_answered(
    matcher: int, role: int, version: int
) -> None:
    answering = HelloResponder(ME, role, lambda: ["tcp/1.2.3.4:5"])
    answer = answering.received(write(Scout(version=version, what=matcher, zid=OTHER)), False)
    assert (answer is not None) == (matcher & role != 0)
    if answer is not None:
        assert scouting_of_other().received(answer, 0.0) == [
            DiscoveredNode(ME, role, ("tcp/1.2.3.4:5",))
        ]


def scouting_of_other() -> ScoutSender:
    return ScoutSender(OTHER, PEER, 7)


def test_loopback_is_told_to_this_machine_only() -> None:
    places = [
        "tcp/10.0.0.1:1",
        "tcp/127.0.0.1:1",
        "tcp/[::1]:1",
        "unixsock-stream/a",
        "tcp/[fd::2]:1",
    ]
    answering = HelloResponder(ME, PEER, lambda: places)
    near = answering.received(bytes.fromhex("010907"), True)
    far = answering.received(bytes.fromhex("010907"), False)
    assert near is not None
    assert far is not None
    assert scouting_of_other().received(near, 0.0)[0].locators == tuple(places)
    assert scouting_of_other().received(far, 0.0)[0].locators == ("tcp/10.0.0.1:1", "tcp/[fd::2]:1")


def test_a_node_that_has_nothing_to_tell_is_silent() -> None:
    assert HelloResponder(ME, PEER, list).received(bytes.fromhex("010907"), True) is None
    only_near = HelloResponder(ME, PEER, lambda: ["tcp/127.0.0.1:1"])
    assert only_near.received(bytes.fromhex("010907"), False) is None


def test_an_answer_fits_one_packet() -> None:
    answering = HelloResponder(ME, PEER, lambda: [f"tcp/10.0.0.{i}:7447" for i in range(255)])
    answer = answering.received(bytes.fromhex("010907"), False)
    assert answer is not None
    assert len(answer) <= MAX_HELLO_BYTES
    assert len(scouting_of_other().received(answer, 0.0)[0].locators) > 50


@pytest.mark.parametrize(
    ("locator", "loopback"),
    [
        ("tcp/127.0.0.1:1", True),
        ("udp/127.9.9.9:1", True),
        ("tcp/[::1]:7447", True),
        ("tcp/localhost:1", True),
        ("unixsock-stream/tmp/a", True),
        ("tcp/128.0.0.1:1", False),
        ("tcp/[::]:1", False),
        ("serial/dev/ttyUSB0", False),
        ("nonsense", False),
    ],
)
def test_loopback_is_seen(locator: str, loopback: bool) -> None:
    assert is_loopback(locator) is loopback
