"""What is not taken from others is counted, and told in a line that cannot flood a log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.rejections import KEY, LINES, PERIOD, REASONS, UNDECODABLE, Rejections, host_of
from zenlake.testing.network import Host, Network
from zenlake.transport.auth import Credentials
from zenlake.wire import Declare, DeclareSubscriber, Interest, Push, Put, Request
from zenlake.wire.codec_zenoh import Query


def listened(host: Host) -> list[str]:
    lines: list[str] = []
    host.node.rejections.warn = lines.append
    return lines


def test_a_line_names_the_peer_and_the_reason_and_the_next_one_counts_the_silence() -> None:
    rejections, lines = Rejections(), list[str]()
    rejections.warn = lines.append
    for port in range(5):
        rejections.add(KEY, f"tcp/10.0.0.1:{port}", "no", 0.0)
    rejections.add(KEY, "tcp/10.0.0.2:1", "no", 0.0)
    rejections.add(UNDECODABLE, "tcp/10.0.0.1:9", "nonsense", PERIOD / 2)
    rejections.add(KEY, "tcp/10.0.0.1:7", "again", PERIOD)
    assert lines == [
        "tcp/10.0.0.1:0: no",
        "tcp/10.0.0.2:1: no",
        "tcp/10.0.0.1:9: nonsense",
        "tcp/10.0.0.1:7: again (4 more since the last such line)",
    ]
    assert rejections.counts[KEY] == 7
    assert rejections.counts[UNDECODABLE] == 1


@given(
    st.lists(
        st.tuples(st.floats(0, 30), st.integers(0, 60), st.sampled_from(REASONS)), max_size=300
    )
)
def test_no_crowd_of_hosts_gets_more_lines_than_a_period_has(
    events: list[tuple[float, int, str]],
) -> None:
    now, rejections, told = 0.0, Rejections(), list[float]()
    rejections.warn = lambda _: told.append(now)
    for step, host, reason in events:
        now += step
        rejections.add(reason, f"udp/[fd::{host}]:7447", "no", now)
    assert sum(rejections.counts.values()) == len(events)
    assert len(told) <= LINES * (now // PERIOD + 1)


def test_the_host_of_a_locator_is_what_stays_when_it_connects_again() -> None:
    assert host_of("tcp/10.0.0.1:4711") == "10.0.0.1"
    assert host_of("tcp/[fd::1]:4711") == "[fd::1]"
    assert host_of("unixsock-stream/tmp/a") == "tmp/a"
    assert host_of("name") == "name"


def test_illegal_keys_of_a_neighbour_are_told_in_whatever_they_come() -> None:
    network = Network()
    router = network.node("r", "router")
    client = network.node("c", "client", connect=["r"])
    network.settle()
    lines = listened(router)
    [near] = client.node.by_zid.values()
    assert near.face is not None
    for message in (
        Push(scope=0, suffix="a//b", body=Put(payload=b"")),
        Push(scope=77, suffix="a", body=Put(payload=b"")),
        Declare(body=DeclareSubscriber(id=1, scope=0, suffix="a/*b")),
        Interest(mode=3, id=9, subscribers=True, restricted=True, scope=0, suffix="a//"),
        Request(id=5, scope=0, suffix="a/$*/b", body=Query()),
    ):
        near.face.send(message)
    network.settle()
    assert router.node.rejections.counts[KEY] == 5
    [line] = lines  # one a minute about one host
    assert line.startswith("c: ignored: ")
    assert "a//b" in line
    network.run(PERIOD)
    near.face.send(Declare(body=DeclareSubscriber(id=1, scope=0, suffix="a/*b")))
    network.settle()
    assert "a/*b" in lines[1]
    assert "4 more" in lines[1]


def test_random_bytes_are_told_with_their_peer() -> None:
    network = Network()
    router = network.node("r", "router")
    lines = listened(router)
    network.stranger(router).say(bytes(range(200, 250)))
    network.settle()
    assert router.node.rejections.counts[UNDECODABLE] == 1
    assert len(lines) == 1
    assert "no session: " in lines[0]
    browser = network.stranger(router)
    browser.send(b"GET / HTTP/1.1\r\n\r\n")  # which is the length of a batch, and its beginning
    network.run(1.0)
    browser.hang_up()
    network.settle()
    assert router.node.rejections.counts[UNDECODABLE] == 2
    assert "18 bytes" in lines[1]
    silent = network.stranger(router)
    silent.send(b"\xff")
    network.run(30.0)
    assert silent.closed
    assert router.node.rejections.counts["silent"] == 1


def test_a_refused_login_and_a_batch_too_small_name_themselves_on_both_sides() -> None:
    network = Network()
    users = Credentials(users={b"u": b"right"})
    router = network.node("r", "router", credentials=users)
    lines = listened(router)
    wrong = network.node(
        "wrong", "client", connect=["r"], credentials=Credentials(user=b"u", password=b"wrong")
    )
    nobody = network.node("nobody", "client", connect=["r"])
    small = network.node("small", "client", connect=["r"], batch_size=40)
    network.run(0.5)
    counts = router.node.rejections.counts
    assert (counts["login"], counts["batch-size"]) == (2, 1)
    assert any("user or password is wrong (user 'u')" in line for line in lines)
    assert any("it has no user and password" in line for line in lines)
    assert any("batches of 40 bytes are too small" in line for line in lines)
    assert "user 'u' or its password is wrong" in wrong.node.plan.endpoints[0].error
    assert "none is configured here" in nobody.node.plan.endpoints[0].error
    assert "batches of 40 bytes" in small.node.plan.endpoints[0].error


def test_too_many_who_open_at_once_are_counted() -> None:
    network = Network()
    router = network.node("r", "router", accept_pending=2)
    lines = listened(router)
    strangers = [network.stranger(router) for _ in range(4)]
    network.run(0.1)
    assert [each.closed for each in strangers] == [False, False, True, True]
    assert router.node.rejections.counts["pending"] == 2
    assert "2 others are opening" in lines[0]
