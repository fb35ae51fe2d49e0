"""Routers name who asks, for services that answer askers in turn; nobody can name himself."""

from __future__ import annotations

import pytest

from zenlake.keys.asker import named_asker
from zenlake.testing.network import Host, Network, Replier

SQL = "@lake/sql"


def asked(network: Network, replier: Replier, who: Host, key: str, parameters: str = "") -> str:
    """The parameters that arrive of a query."""
    who.get(key, parameters)
    network.settle()
    return replier.queries.pop().body.parameters


def lake_behind(network: Network, router: str) -> Host:
    lake = network.node("lake", "client", connect=[router])
    network.settle()
    return lake


@pytest.mark.parametrize("mode", ["client", "peer"])
def test_each_neighbour_of_a_router_has_a_name_of_its_own(mode: str) -> None:
    network = Network()
    network.node("router", "router")
    one = network.node("one", mode, connect=["router"])
    two = network.node("two", mode, connect=["router"])
    lake = lake_behind(network, "router")
    replier = lake.queryable(SQL, b"")
    network.settle()
    first = asked(network, replier, one, SQL, "_sql=SELECT 1")
    assert first.endswith(";_sql=SELECT 1")
    other = asked(network, replier, two, SQL)
    assert named_asker(first)
    assert named_asker(other)
    assert named_asker(first) != named_asker(other)
    # What a neighbour writes itself is replaced, and it keeps its name.
    forged = f"_asker={named_asker(other)};_sql=SELECT 1"
    assert asked(network, replier, one, SQL, forged) == first
    # A name tells nobody who that is.
    assert one.node.zid.hex() not in first


def test_a_name_passes_other_routers_unchanged() -> None:
    network = Network()
    network.node("near", "router")
    network.node("far", "router", connect=["near"])
    one = network.node("one", "client", connect=["near"])
    lake, there = lake_behind(network, "far"), network.node("there", "client", connect=["near"])
    replier = lake.queryable("**", b"")
    beside = there.queryable("@lake/**", b"")
    network.settle()
    assert asked(network, replier, one, "robot/1", "_limit=1").startswith("_asker=")
    one.get(SQL, "_asker=mine", target=1)
    network.settle()
    assert not replier.queries
    name = beside.queries.pop().body.parameters
    lake.queryable(SQL, b"").queries = replier.queries
    network.settle()
    assert asked(network, replier, one, SQL) == name
    assert "mine" not in name


def test_queries_that_only_applications_answer_arrive_as_they_were_asked() -> None:
    network = Network()
    network.node("router", "router")
    one = network.node("one", "client", connect=["router"])
    application = network.node("application", "client", connect=["router"])
    network.settle()
    replier = application.queryable("robot/**", b"")
    network.settle()
    for parameters in ("", "speed=3;;_max=1", "a_b"):
        assert asked(network, replier, one, "robot/1", parameters) == parameters
    assert asked(network, replier, one, "robot/1", "_asker=mine;x=1") == "x=1"


def test_a_node_that_is_no_router_passes_no_names_on() -> None:
    network = Network()
    lake = network.node("lake")
    one = network.node("one", connect=["lake"])
    network.settle()
    replier = lake.queryable(SQL, b"")
    network.settle()
    assert asked(network, replier, one, SQL, "_sql=x") == "_sql=x"
