"""What a mesh does for a change far away, counted: it grows no faster than the mesh."""

from __future__ import annotations

from random import Random

import pytest

from bench.scale.crowd import Clients
from bench.scale.mesh import grow, known, measure
from bench.scale.topologies import TOPOLOGIES


@pytest.mark.parametrize("topology", sorted(TOPOLOGIES))
def test_a_link_that_breaks_is_told_on_every_link_a_few_times_and_all_find_new_ways(
    topology: str,
) -> None:
    grown = measure(topology, 24)
    # Both ends say so, and each word crosses a link at most once in each direction.
    assert grown.cut.messages <= 2 * 2 * grown.links
    assert grown.mended.messages <= 2 * 2 * grown.links + 8 * 24
    assert grown.cut.seconds < 0.1 + 24 * 0.005 + 0.01
    assert grown.delivered == 10


def test_a_router_far_away_computes_as_many_trees_as_it_has_neighbours_twice() -> None:
    random = Random(7)
    edges = TOPOLOGIES["geometric"](40, random)
    network, hosts = grow(40, edges, random)
    assert known(hosts, set(edges))
    one, other = edges[0]
    network.sever(hosts[one], hosts[other])
    network.settle(quiet=0.5)
    for host in hosts:
        mesh = host.node.mesh
        assert mesh is not None
        assert len(mesh.routers) >= 39  # all of them have declared something
        assert mesh.trees.computed <= 2 * (len(mesh.links) + 1)


def test_clients_cost_their_router_and_others_something_and_leave_nothing() -> None:
    clients = Clients(Random(3))
    crowd = clients.grow(60)
    assert crowd.opening > crowd.elsewhere > 0.0
    # All have left that were the last; nobody remembers what they declared.
    for router in clients.routers:
        mesh = router.node.mesh
        assert mesh is not None
        assert not mesh.own[0]
        assert not any(remote.held[0] for remote in mesh.routers.values())
