"""The trees of routers: weights to the last bit, and ways that never loop."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.clock import ZenohId
from zenlake.routing.trees import (
    AT_ONCE,
    Recomputation,
    Trees,
    _Tree,
    effective_weight,
    siphash13,
)

Links = dict[bytes, dict[bytes, int]]


def zid(text: str) -> bytes:
    return bytes(ZenohId.parse(text))


@pytest.mark.parametrize(
    ("one", "other", "weight"),
    [
        (
            "3bfea71d7dbf41c23b2bb06309b33dea",
            "8d188a06f05c9fdc404966bcadb0c08c",
            100.08272247344318,
        ),
        (
            "1024f25c4421f51e25eb17a170c1ead5",
            "e5bbd5a1249d18e91ff3aa43f915d79d",
            100.40086578214562,
        ),
    ],
)
def test_weights_are_those_of_real_routers_from_both_ends(
    one: str, other: str, weight: float
) -> None:
    assert effective_weight(zid(one), zid(other), 0, 0) == weight
    assert effective_weight(zid(other), zid(one), 0, 0) == weight


def test_the_larger_of_two_weights_counts_and_one_alone_counts_too() -> None:
    one, other = b"\x01", b"\x02"
    unit = effective_weight(one, other, 1, 1)
    assert 1.0 <= unit <= 1.01
    assert effective_weight(one, other, 0, 0) == 100 * unit
    assert effective_weight(one, other, 7, 0) == effective_weight(one, other, 0, 7)
    assert effective_weight(one, other, 7, 0) == effective_weight(one, other, 7, 7)
    assert effective_weight(one, other, 3, 9) == effective_weight(one, other, 9, 9)


def test_short_ids_weigh_as_if_they_had_sixteen_bytes() -> None:
    assert effective_weight(b"\x05", b"\x06", 0, 0) == effective_weight(
        b"\x05" + b"\0" * 15, b"\x06" + b"\0" * 15, 0, 0
    )


@pytest.mark.skipif(
    sys.hash_info.algorithm != "siphash13" or sys.hash_info.cutoff != 0,
    reason="this Python hashes bytes differently",
)
def test_the_hash_is_the_one_python_itself_uses_with_a_seed_of_zero() -> None:
    lengths = range(1, 40)
    script = (
        "for n in range(1, 40): print(hash(bytes((7 * i + n) & 255 for i in range(n))) % 2**64)"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    ours = [siphash13(bytes((7 * i + n) & 255 for i in range(n))) for n in lengths]
    assert ours == [int(number) for number in told]


# ------------------------------------------------------------------------------------ by hand


def names(count: int) -> list[bytes]:
    return [bytes((i + 1,)) for i in range(count)]


def joined(*pairs: tuple[bytes, bytes]) -> Links:
    links: Links = {}
    for one, other in pairs:
        links.setdefault(one, {})[other] = 0
        links.setdefault(other, {})[one] = 0
    return links


def test_a_link_that_one_end_alone_lists_does_not_exist() -> None:
    a, b, c = names(3)
    links = joined((a, b))
    links[c] = {b: 0}
    trees = Trees(a, links)
    assert trees.children(a) == [b]
    assert trees.direction(a, c) == b""
    assert trees.distance(c) == float("inf")


def test_in_a_chain_everything_goes_through_the_middle() -> None:
    a, b, c = names(3)
    links = joined((a, b), (b, c))
    middle = Trees(b, links)
    assert sorted(middle.children(b)) == [a, c]
    assert middle.children(a) == [c]
    assert middle.children(c) == [a]
    assert middle.parent(a) == a
    assert middle.parent(b) == b""
    assert middle.direction(a, c) == c
    end = Trees(a, links)
    assert end.direction(a, c) == b
    assert end.children(c) == []
    assert end.distance(c) == effective_weight(a, b, 0, 0) + effective_weight(b, c, 0, 0)


def test_what_lies_elsewhere_in_a_tree_is_reached_through_my_parent() -> None:
    a, b, c = names(3)
    trees = Trees(b, joined((a, b), (a, c)))
    assert trees.direction(a, c) == a
    assert trees.direction(a, a) == a


def test_a_heavy_link_is_left_for_a_detour() -> None:
    a, b, c = names(3)
    links = joined((a, b), (b, c), (a, c))
    assert Trees(a, links).direction(a, c) == c
    links[a][c] = 500
    assert Trees(a, links).direction(a, c) == b
    assert Trees(c, links).direction(c, a) == b


def test_a_router_that_nobody_is_linked_to_has_a_tree_of_its_own() -> None:
    (a,) = names(1)
    trees = Trees(a, {a: {}})
    assert a in trees
    assert b"x" not in trees
    assert trees.children(a) == []
    assert trees.direction(a, a) == b""
    assert trees.direction(b"x", a) == b""


# ---------------------------------------------------------------------------------- any graph


@st.composite
def meshes(draw: st.DrawFn) -> Links:
    count = draw(st.integers(1, 20))
    ids = draw(
        st.lists(
            st.binary(min_size=1, max_size=16).filter(lambda b: b[-1] != 0),
            min_size=count,
            max_size=count,
            unique=True,
        )
    )
    links: Links = {one: {} for one in ids}
    for one, other in draw(
        st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=3 * count)
    ):
        # Weights from a small set, so that ways of equal weight are common.
        links[one][other] = draw(st.sampled_from([0, 0, 0, 1, 2, 100, 65535]))
        if draw(st.booleans()) or draw(st.booleans()):
            links[other][one] = draw(st.sampled_from([0, 0, 1, 100]))
    return links


def reachable(links: Links, start: bytes) -> set[bytes]:
    seen = {start}
    stack = [start]
    while stack:
        one = stack.pop()
        for other in links[one]:
            if one in links.get(other, {}) and other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


@settings(max_examples=60, deadline=None)
@given(meshes())
def test_what_one_router_says_reaches_every_other_exactly_once(links: Links) -> None:
    views = {me: Trees(me, links) for me in links}
    for root in links:
        heard: list[bytes] = []
        waiting = [root]
        while waiting:
            at = waiting.pop()
            for child in views[at].children(root):
                assert views[child].parent(root) == at
                heard.append(child)
                waiting.append(child)
        assert sorted(heard) == sorted(reachable(links, root) - {root})


@settings(max_examples=60, deadline=None)
@given(meshes())
def test_distances_are_those_that_bellman_and_ford_would_find(links: Links) -> None:
    me = min(links)
    distances = {me: 0.0}
    for _ in links:
        for one in links:
            for other in links[one]:
                if one in links[other] and one in distances and one != other:
                    weight = effective_weight(one, other, links[one][other], links[other][one])
                    way = distances[one] + weight
                    distances[other] = min(distances.get(other, way), way)
    trees = Trees(me, links)
    for router in links:
        assert trees.distance(router) == distances.get(router, float("inf"))


@settings(max_examples=60, deadline=None)
@given(meshes())
def test_next_hops_lead_to_their_destination_and_never_loop(links: Links) -> None:
    views = {me: Trees(me, links) for me in links}
    for source in links:
        for destination in reachable(links, source) - {source}:
            at = source
            hops = 0
            while at != destination:
                at = views[at].direction(source, destination)
                hops += 1
                assert at
                assert hops < len(links)


@settings(max_examples=30, deadline=None)
@given(meshes(), st.randoms(use_true_random=False))
def test_the_order_in_which_links_were_heard_changes_nothing(links: Links, random: Random) -> None:
    me = next(iter(links))
    shuffled: Links = {}
    for one in random.sample(sorted(links), len(links)):
        others = list(links[one])
        random.shuffle(others)
        shuffled[one] = {other: links[one][other] for other in others}
    ours, theirs = Trees(me, links), Trees(me, shuffled)
    for root in links:
        assert sorted(ours.children(root)) == sorted(theirs.children(root))
        for destination in links:
            assert ours.direction(root, destination) == theirs.direction(root, destination)


@settings(max_examples=60, deadline=None)
@given(meshes())
def test_trees_of_neighbours_tell_my_place_in_all_others(links: Links) -> None:
    for me in links:
        trees = Trees(me, links)
        for root in links:
            itself = Trees(me, links)
            itself.direction(root, me)  # takes the tree of the root
            assert sorted(trees.children(root)) == sorted(itself.children(root))
            assert trees.parent(root) == itself.parent(root)


def test_a_place_in_a_thousand_trees_takes_as_many_trees_as_there_are_neighbours() -> None:
    ring = [number.to_bytes(2, "big") for number in range(257, 1257)]
    trees = Trees(ring[0], joined(*zip(ring, ring[1:] + ring[:1], strict=True)))
    for root in ring:
        assert len(trees.children(root)) <= 2
        trees.parent(root)
    assert trees.computed <= 2 * (2 + 1)


def test_of_paths_too_near_to_each_other_the_tree_itself_decides() -> None:
    # Both ways around a square are 2.0 long: which one it is, rounding decides, or the order.
    edges = {one: [(other, 1.0) for other in (b"b", b"c")] for one in (b"a", b"d")}
    edges |= {one: [(other, 1.0) for other in (b"a", b"d")] for one in (b"b", b"c")}
    tree = _Tree(b"a", edges)
    assert tree.doubted == {b"d"}
    assert tree.firsts == {b"b": b"b", b"c": b"c", b"d": tree.parents[b"d"]}
    for me in edges:
        trees = Trees(me, {})
        trees._edges = edges
        for _ in range(2):  # asked again, more of them are known
            for root in edges:
                assert trees.children(root) == _Tree(root, edges).children(me)
                assert trees.parent(root) == _Tree(root, edges).parents.get(me, b"")


# --------------------------------------------------------------------------------------- when


def test_many_changes_cost_one_computation_a_moment_later() -> None:
    plan = Recomputation(0.1)
    assert not plan.due(5.0)
    plan.changed(5.0)
    plan.changed(5.05)
    assert plan.deadline == 5.1
    assert not plan.due(5.09)
    assert plan.due(5.1)
    assert not plan.due(6.0)
    plan.changed(6.0)
    assert plan.deadline == 6.1


def test_changes_without_end_are_followed_ever_more_rarely_and_a_rest_is_a_fresh_start() -> None:
    plan = Recomputation()
    computed: list[float] = []
    for step in range(10_000):  # a change every 10 ms for 100 s
        now = step / 100
        plan.changed(now)
        if plan.due(now):
            computed.append(now)
    assert len([when for when in computed if when < 3.0]) >= AT_ONCE  # at first each is followed
    assert len([when for when in computed if when >= 50.0]) <= 52  # then one a second
    plan.changed(200.0)
    assert plan.due(200.11)
