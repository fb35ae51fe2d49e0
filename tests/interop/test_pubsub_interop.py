"""What is published on one side is seen on the other exactly as it was."""

from __future__ import annotations

import hashlib

import pytest

from tests.interop.conftest import Together, Way
from tests.interop.peer import Plain, large
from tests.interop.processes import meanwhile

pytestmark = pytest.mark.interop

PLAIN: Plain = {
    "kind": "PUT",
    "encoding": "zenoh/bytes",
    "timestamp": None,
    "congestion_control": "DROP",
    "priority": "DATA",
    "express": False,
    "attachment": None,
    "source": None,
}


def seen(sample: Plain, key: str, payload: str, **differences: object) -> bool:
    """Whether a sample is a plain one but for the differences, and its router's timestamp."""
    expected = {**PLAIN, "key": key, "payload": payload, **differences}
    if expected["timestamp"] is None:
        # A router on the way stamps what has no time.
        sample = {**sample, "timestamp": None}
    return sample == expected


def listened(way: Way, **options: object) -> None:
    """Have the listener hear what the speaker's publisher says."""
    way.listener.subscribe("s", f"{way.key}/**")
    way.speaker.publisher("p", f"{way.key}/p", **options)
    way.speaker.until("p")


ENCODINGS = [
    ("text/plain", "text/plain"),
    ("application/json;schema", "application/json;schema"),
    ("zenoh/serialized", "zenoh/serialized"),
    ("made/up", "made/up"),
]
PRIORITIES = [
    "REAL_TIME",
    "INTERACTIVE_HIGH",
    "INTERACTIVE_LOW",
    "DATA_HIGH",
    "DATA",
    "DATA_LOW",
    "BACKGROUND",
]


def test_every_option_of_a_put_is_seen_alike(way: Way) -> None:
    listened(way)
    key = f"{way.key}/k"
    cases: list[Plain] = [
        {},
        *({"encoding": encoding} for encoding, _ in ENCODINGS),
        *({"priority": priority} for priority in PRIORITIES),
        *({"congestion_control": word} for word in ("DROP", "BLOCK", "BLOCK_FIRST")),
        {"express": True},
        {"attachment": "beside"},
        {"attachment": ""},
        {"timestamp": True},
        {"source": 7},
        {
            "encoding": "text/plain;utf-8",
            "priority": "REAL_TIME",
            "congestion_control": "BLOCK",
            "express": True,
            "attachment": "all",
            "timestamp": True,
            "source": 4_000_000_000,
        },
    ]
    for number, options in enumerate(cases):
        said = way.speaker.put(key, f"v{number}", **options)
        # Lanes of other priorities overtake each other: one after the other is heard.
        [sample] = way.listener.take("s")
        expected = {**options, **{k: v for k, v in said.items() if v is not None}}
        assert seen(sample, key, f"v{number}", **expected), (options, sample)


def test_every_option_of_a_delete_is_seen_alike(way: Way) -> None:
    listened(way)
    key = f"{way.key}/k"
    cases: list[Plain] = [
        {},
        {"priority": "BACKGROUND"},
        {"congestion_control": "BLOCK"},
        {"express": True},
        {"attachment": "beside"},
        {"timestamp": True},
        {"source": 0},
    ]
    for options in cases:
        said = way.speaker.delete(key, **options)
        [sample] = way.listener.take("s")
        expected = {**options, **{k: v for k, v in said.items() if v is not None}}
        assert seen(sample, key, "", kind="DELETE", **expected), (options, sample)


def test_a_publisher_says_what_it_was_declared_with(way: Way) -> None:
    qos = {"priority": "INTERACTIVE_LOW", "congestion_control": "BLOCK", "express": True}
    listened(way, encoding="application/json", **qos)
    key = f"{way.key}/p"
    way.speaker.publish("p", "1")
    way.speaker.publish("p", "2", encoding="text/plain", attachment="beside")
    stamp = way.speaker.publish("p", "3", timestamp=True, source=3)
    way.speaker.publish_delete("p", attachment="gone")
    one, two, three, four = way.listener.take("s", 4)
    assert seen(one, key, "1", encoding="application/json", **qos)
    assert seen(two, key, "2", encoding="text/plain", attachment="beside", **qos)
    assert seen(three, key, "3", encoding="application/json", **stamp, **qos)
    assert seen(four, key, "", kind="DELETE", attachment="gone", **qos)


def test_a_best_effort_publisher_is_heard_too(way: Way) -> None:
    listened(way, reliability="BEST_EFFORT")
    way.speaker.publish("p", "x")
    assert way.listener.take("s")[0]["payload"] == "x"


@pytest.mark.parametrize(
    ("published", "subscribed"),
    [
        ("a/b/c", "a/b/c"),
        ("a/b/c", "a/*/c"),
        ("a/b/c", "**"),
        ("a/b/c", "a/**/c"),
        ("a/bcd/e", "a/b$*/e"),
        ("a/*/c", "a/b/*"),
        ("a/ü/☃", "a/*/☃"),
    ],
)
def test_every_kind_of_key_expression_matches(way: Way, published: str, subscribed: str) -> None:
    way.listener.subscribe("s", f"{way.key}/{subscribed}")
    way.speaker.publisher("p", f"{way.key}/{published}")
    way.speaker.until("p")
    way.speaker.publish("p", "x")
    assert way.listener.take("s")[0]["key"] == f"{way.key}/{published}"


def test_what_nobody_asked_for_does_not_come(way: Way) -> None:
    listened(way)
    way.listener.subscribe("other", f"{way.key}/only")
    way.speaker.publisher("q", f"{way.key}/only")
    way.speaker.until("q")
    way.speaker.put(f"{way.key}/p", "not for the other")
    way.speaker.put(f"{way.key}/only/deeper", "nor this")
    way.speaker.put(f"{way.key}/only", "this")
    assert [one["payload"] for one in way.listener.take("other")] == ["this"]


def test_after_undeclaring_nothing_comes(way: Way) -> None:
    listened(way)
    way.speaker.publish("p", "before")
    way.listener.take("s")
    way.listener.subscribe("fence", f"{way.key}/fence")
    way.listener.undeclare("s")
    way.speaker.until("p", False)
    way.speaker.publish("p", "after")
    way.speaker.publisher("f", f"{way.key}/fence")
    way.speaker.until("f")
    way.speaker.publish("f", "fence")
    way.listener.take("fence")
    assert way.listener.heard_by("s") == 0


def test_locality_keeps_samples_at_home(way: Way) -> None:
    origins = {"all": "ANY", "remote": "REMOTE", "local": "SESSION_LOCAL"}
    for peer in (way.listener, way.speaker):
        for name, origin in origins.items():
            peer.subscribe(name, f"{way.key}/**", allowed_origin=origin)
        peer.publisher("p", f"{way.key}/p", allowed_destination="REMOTE")
    for peer in (way.listener, way.speaker):
        peer.until("p")
    way.speaker.put(f"{way.key}/p", "out", allowed_destination="REMOTE")
    way.speaker.put(f"{way.key}/p", "in", allowed_destination="SESSION_LOCAL")
    way.speaker.put(f"{way.key}/p", "both")
    for name in ("all", "remote"):
        assert [one["payload"] for one in way.listener.take(name, 2)] == ["out", "both"]
    for name in ("all", "local"):
        assert [one["payload"] for one in way.speaker.take(name, 2)] == ["in", "both"]
    way.listener.put(f"{way.key}/p", "last")
    assert way.listener.take("local")[0]["payload"] == "last"
    assert way.speaker.take("remote")[0]["payload"] == "last"


def test_a_stream_arrives_complete_and_in_order(way: Way) -> None:
    listened(way, congestion_control="BLOCK")
    count = 3000
    publishing = meanwhile(way.speaker.publish_many, "p", count)
    heard = way.listener.take("s", count)
    publishing.result()
    assert [one["payload"] for one in heard] == [str(number) for number in range(count)]


@pytest.mark.parametrize("size", [65_000, 65_536, 1 << 20, 64 << 20])
def test_large_payloads_arrive_whole(way: Way, size: int) -> None:
    listened(way, congestion_control="BLOCK")
    publishing = meanwhile(way.speaker.publish, "p", size)
    [sample] = way.listener.take("s")
    publishing.result()
    assert sample["payload"] == [size, hashlib.md5(large(size)).hexdigest()]


def test_large_payloads_of_several_lanes_do_not_mix(way: Way) -> None:
    way.listener.subscribe("s", f"{way.key}/**")
    sizes = {"REAL_TIME": 300_001, "DATA": 2_000_003, "BACKGROUND": 1_000_007}
    for priority in sizes:
        way.speaker.publisher(
            priority, f"{way.key}/{priority}", priority=priority, congestion_control="BLOCK"
        )
        way.speaker.until(priority)
    publishing = [meanwhile(way.speaker.publish, name, size) for name, size in sizes.items()]
    heard = {one["priority"]: one["payload"] for one in way.listener.take("s", len(sizes))}
    for future in publishing:
        future.result()
    assert heard == {
        name: [size, hashlib.md5(large(size)).hexdigest()] for name, size in sizes.items()
    }


def test_a_publisher_knows_whether_somebody_listens(way: Way) -> None:
    way.speaker.publisher("p", f"{way.key}/p")
    way.speaker.watch_matching("changes", "p")
    assert not way.speaker.matches("p")
    way.listener.subscribe("s", f"{way.key}/*")
    assert way.speaker.take("changes") == [True]
    assert way.speaker.matches("p")
    way.listener.subscribe("t", f"{way.key}/p")
    way.listener.undeclare("s")
    way.listener.undeclare("t")
    assert way.speaker.take("changes") == [False]
    assert not way.speaker.matches("p")


def test_what_matches_elsewhere_is_nothing_to_a_publisher_that_stays_at_home(way: Way) -> None:
    way.speaker.publisher("home", f"{way.key}/p", allowed_destination="SESSION_LOCAL")
    way.speaker.publisher("p", f"{way.key}/p")
    way.listener.subscribe("s", f"{way.key}/p")
    way.speaker.until("p")
    assert not way.speaker.matches("home")
    way.speaker.subscribe("own", f"{way.key}/p")
    way.speaker.until("home")


def test_both_speak_at_once(together: Together) -> None:
    ours, theirs, key = together.ours, together.theirs, together.key
    for here, there in ((ours, theirs), (theirs, ours)):
        here.subscribe("s", f"{key}/**", allowed_origin="REMOTE")
        there.publisher("p", f"{key}/p", congestion_control="BLOCK", allowed_destination="REMOTE")
    for peer in (ours, theirs):
        peer.until("p")
    speaking = [meanwhile(peer.publish_many, "p", 1000) for peer in (ours, theirs)]
    for peer in (ours, theirs):
        assert [one["payload"] for one in peer.take("s", 1000)] == [str(n) for n in range(1000)]
    for future in speaking:
        future.result()
