"""What a node counts: by session, by lane, by key and by prefix."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.entities import Publication
from zenlake.node.sessions.counts import counts_of
from zenlake.node.traffic import KEYS, OTHER, Prefixes, Traffic, prefix_of
from zenlake.testing.network import Host, Network


def two() -> tuple[Network, Host, Host]:
    network = Network()
    sun = network.node("sun")
    earth = network.node("earth", connect=["sun"])
    network.settle()
    return network, sun, earth


def test_a_prefix_is_the_first_chunks() -> None:
    assert prefix_of("a/b/c", 2) == "a/b"
    assert prefix_of("a/b", 2) == "a/b"
    assert prefix_of("a", 2) == "a"
    assert prefix_of("a/b/c", 1) == "a"


def test_what_one_side_sends_the_other_receives_lane_by_lane() -> None:
    network, sun, earth = two()
    earth.subscribe("light/**")
    network.settle()
    before = counts_of(earth.node.neighbours[0])
    for number in range(10):
        sun.put("light/a", b"12345", qos=5)
        if number % 2:
            sun.put("light/b", b"123", qos=3)
    network.settle()
    sent = counts_of(sun.node.neighbours[0])
    heard = counts_of(earth.node.neighbours[0])
    assert sent.tx_messages == heard.rx_messages
    assert heard.rx_messages[11] - before.rx_messages[11] == 10
    assert heard.rx_messages[7] - before.rx_messages[7] == 5
    assert sent.tx_bytes == heard.rx_bytes
    assert sent.tx_batches == heard.rx_batches
    assert sent.tx_lane_bytes[3] > heard.rx_lane_bytes[3] > 15
    assert {
        way.key: (way.samples, way.size) for way in earth.node.neighbours[0].pushes.inbounds.all()
    } == {
        "light/a": (10, 50),
        "light/b": (5, 15),
    }
    own = sun.node.traffic.own
    assert {key: (tally.samples, tally.size) for key, tally in own.items()} == {
        "light/a": (10, 50),
        "light/b": (5, 15),
    }


def test_large_values_are_counted_once() -> None:
    network, sun, earth = two()
    earth.subscribe("light/**")
    network.settle()
    assert sun.put("light/a", bytes(200_000))
    network.settle()
    sent, heard = counts_of(sun.node.neighbours[0]), counts_of(earth.node.neighbours[0])
    assert sent.tx_messages == heard.rx_messages
    assert heard.rx_lane_bytes[5] >= 200_000
    assert [(way.samples, way.size) for way in earth.node.neighbours[0].pushes.inbounds.all()] == [
        (1, 200_000)
    ]


def test_what_is_passed_on_is_counted_on_both_sides_of_a_router() -> None:
    network = Network()
    router = network.node("r", mode="router")
    speaker = network.node("s", mode="client", connect=["r"])
    listener = network.node("l", mode="client", connect=["r"])
    network.settle()
    listener.subscribe("light/**")
    network.settle()
    for number in range(30):
        speaker.put(f"light/{number % 3}", b"12345")
    network.settle()
    came = {
        way.key: (way.samples, way.size) for way in router.node.neighbours[0].pushes.inbounds.all()
    }
    assert came == {f"light/{number}": (10, 50) for number in range(3)}
    sent = counts_of(router.node.neighbours[1])
    assert sent.tx_messages == counts_of(listener.node.neighbours[0]).rx_messages
    assert sent.tx_messages[11] == 30


def test_the_past_stays_counted() -> None:
    network, sun, earth = two()
    earth.subscribe("light/**")
    network.settle()
    for _ in range(7):
        sun.put("light/warm/red", b"1")
    network.settle()
    during = counts_of(earth.node.neighbours[0])
    sun.node.close(network.now)
    network.settle()
    past = earth.node.sessions.past
    assert past.many == 1
    assert past.sessions[0].zid == sun.node.zid
    assert past.total.rx_messages[11] == during.rx_messages[11]
    assert past.total.rx_bytes >= during.rx_bytes
    assert earth.node.traffic.heard.totals["light/warm"].samples == 7


def test_what_finds_no_room_is_counted_as_dropped() -> None:
    network, sun, earth = two()
    earth.subscribe("light/**")
    network.settle()
    publication = Publication(sun.node, sun.node.routes, 0, "light/a", 5, True, 0, b"", 2)
    refused = sum(not publication.put(bytes(30_000)) for _ in range(20))
    assert refused > 0
    assert counts_of(sun.node.neighbours[0]).dropped() == {
        "rx": {},
        "tx": {"congestion": refused},
    }


def test_nonsense_is_counted_as_ignored() -> None:
    _, sun, _ = two()
    face = sun.node.neighbours[0].face
    assert face is not None
    face.ignored += 3
    assert counts_of(sun.node.neighbours[0]).dropped()["rx"] == {"ignored": 3}


def test_too_many_keys_are_folded_and_nothing_is_lost() -> None:
    _, sun, _ = two()
    first = Publication(sun.node, sun.node.routes, 0, "x/first/one", 5, True, 0, b"", 2)
    first.put(b"1")
    for number in range(KEYS + 10):
        sun.put(f"x/{number}", b"12")
    first.put(b"1")
    assert len(sun.node.traffic.own) <= KEYS
    said = sun.node.traffic.said.copy()
    for key, tally in sun.node.traffic.own.items():
        said.add(key, tally.samples, tally.size)
    assert sum(tally.samples for tally in said.totals.values()) == KEYS + 12
    assert said.totals["x/first"].samples == 2


keys = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4).map("/".join)


@given(st.lists(st.tuples(keys, st.integers(1, 5))), st.integers(1, 3), st.integers(1, 5))
def test_prefixes_are_bounded_and_lose_nothing(
    said: list[tuple[str, int]], depth: int, limit: int
) -> None:
    prefixes = Prefixes(depth, limit)
    for key, size in said:
        prefixes.add(key, 1, size)
    assert len(prefixes.totals) <= limit + 1
    assert sum(tally.samples for tally in prefixes.totals.values()) == len(said)
    assert sum(tally.size for tally in prefixes.totals.values()) == sum(size for _, size in said)
    assert all(prefix == OTHER or prefix.count("/") < depth for prefix in prefixes.copy().totals)


def test_a_key_has_one_tally() -> None:
    traffic = Traffic(2, 4)
    assert traffic.tally("a") is traffic.tally("a")
    assert traffic.tally("a") is not traffic.tally("b")
