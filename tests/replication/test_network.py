"""Replicas behind partitions, losses and wrong clocks, and what they have in the end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.newest.oracle import Said, answers
from tests.replication.simulated import BEGIN, Node, align, ntp64, round_of_digests
from zenlake.replication.messages import Discovery

KEYS = ["a", "a/b", "a/b/c", "a/d", "a/e/c"]
WIDE = ["a/**", "a/*", "a/**/c", "a/b/**", "**"]
#: Updates lie in the last twenty intervals: in the hot era, the warm one and the cold one.
PAST = 20_000


@st.composite
def updates(draw: st.DrawFn, most: int = 12) -> list[Said]:
    """Puts and deletions of keys and of many keys; no two have one timestamp."""
    times = draw(st.lists(st.integers(0, PAST), min_size=1, max_size=most, unique=True))
    said = []
    for number, time in enumerate(times):
        key = draw(st.sampled_from(KEYS * 2 + WIDE))
        value = f"v{number}" if draw(st.booleans()) else None
        said.append(Said(key, ntp64(BEGIN + time), bytes([1 + number % 3]), value))
    return said


class Bad:
    """A network that is cut in two, and loses every so many messages."""

    def __init__(self, side: set[int], every: int) -> None:
        self.side = side
        self.every = every
        self.sent = 0

    def reaches(self, one: int, other: int) -> bool:
        return (one in self.side) == (other in self.side)

    def arrives(self, _what: str) -> bool:
        self.sent += 1
        return self.sent % self.every != 0


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data(), number=st.integers(3, 5), said=updates())
def test_replicas_become_what_sorting_all_updates_gives(
    data: st.DataObject, number: int, said: list[Said]
) -> None:
    nodes = [Node(f"{i + 1:x}", skew=data.draw(st.integers(-2500, 2500))) for i in range(number)]
    everyone = st.sets(st.integers(0, number - 1), min_size=1, max_size=number)
    now = BEGIN + PAST
    for one in said:
        heard = data.draw(everyone)
        for at in sorted(heard):
            nodes[at].hear(one)
        happens = data.draw(st.sampled_from(["nothing", "nothing", "round", "restart", "empty"]))
        if happens == "round":
            # Some cannot reach each other, and what the others say may be lost.
            now += data.draw(st.integers(0, 3000))
            bad = Bad(data.draw(everyone), data.draw(st.integers(2, 9)))
            round_of_digests(nodes, now, bad.reaches, bad.arrives)
        elif happens == "restart":
            nodes[data.draw(st.integers(0, number - 1))].restart()
        elif happens == "empty":
            newcomer = Node(f"{len(nodes) + 1:x}", skew=data.draw(st.integers(-2500, 2500)))
            align(newcomer, nodes[0], Discovery(), now)
            nodes.append(newcomer)
            number += 1
    # The network heals; with each interval all digests are heard.
    expected = answers(said)
    for _ in range(8):
        now += 1000
        round_of_digests(nodes, now)
    for node in nodes:
        assert node.told() == expected
    newest = [node.replica.digest(now + 10_000_000) for node in nodes]
    assert all(digest == newest[0] for digest in newest)
    if all(node.skew == 0 for node in nodes):
        assert round_of_digests(nodes, now) == 0


@given(said=updates(most=20))
def test_an_empty_replica_has_everything_after_one_alignment(said: list[Said]) -> None:
    old, new = Node("1"), Node("2")
    for one in said:
        old.hear(one)
    align(new, old, Discovery(), BEGIN + PAST)
    assert new.told() == old.told() == answers(said)
    assert new.replica.digest(BEGIN + PAST) == old.replica.digest(BEGIN + PAST)
    assert round_of_digests([old, new], BEGIN + PAST) == 0


def test_an_update_in_any_era_is_found() -> None:
    for age in (0, 300, 1000, 2500, 4500, 7000, 100_000):
        one, other = Node("1"), Node("2")
        one.hear(Said("a/b", ntp64(BEGIN - age), b"\x01", "v"))
        one.hear(Said("a/**", ntp64(BEGIN - age + 1), b"\x01", "w"))
        one.hear(Said("a/gone", ntp64(BEGIN - age), b"\x01", None))
        # An update of the current interval is left for the next digest.
        assert round_of_digests([one, other], BEGIN) == (age > 0)
        round_of_digests([one, other], BEGIN + 1000)
        assert other.told() == {"a/b": (ntp64(BEGIN - age + 1), b"\x01", "w")}
        assert round_of_digests([one, other], BEGIN + 1000) == 0


def test_a_deletion_between_a_put_and_a_put_of_many_is_not_undone() -> None:
    one, other = Node("1"), Node("2")
    for node in (one, other):
        node.hear(Said("a/b", ntp64(BEGIN - 9000), b"\x01", "old"))
        node.hear(Said("a/**", ntp64(BEGIN - 7000), b"\x01", "all"))
    one.hear(Said("a/b", ntp64(BEGIN - 8000), b"\x01", None))
    assert (one.told(), len(other.told())) == ({}, 1)
    round_of_digests([one, other], BEGIN)
    round_of_digests([one, other], BEGIN)
    assert one.told() == other.told() == {}
    assert round_of_digests([one, other], BEGIN) == 0


def test_what_was_deleted_stays_deleted_where_the_deletion_of_many_was_forgotten() -> None:
    one, other = Node("1"), Node("2")
    one.hear(Said("a/b", ntp64(BEGIN - 9000), b"\x01", "old"))
    one.hear(Said("a/**", ntp64(BEGIN - 8000), b"\x01", None))
    one.contents.collect(ntp64(BEGIN - 7000))
    other.hear(Said("a/b", ntp64(BEGIN - 8500), b"\x01", "late"))
    one.hear(Said("a/b", ntp64(BEGIN - 8500), b"\x01", "late"))
    assert one.told() == {}
    round_of_digests([one, other], BEGIN)
    assert one.told() == other.told() == {}
