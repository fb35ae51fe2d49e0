from __future__ import annotations

import pytest

from zenlake.testing.network import Host, Network


def peers(network: Network) -> tuple[Host, Host]:
    one = network.node("one")
    return one, network.node("two", connect=["one"])


def client_and_peer(network: Network) -> tuple[Host, Host]:
    one = network.node("one")
    return one, network.node("two", "client", connect=["one"])


def peer_and_client(network: Network) -> tuple[Host, Host]:
    two = network.node("two")
    return network.node("one", "client", connect=["two"]), two


def clients(network: Network) -> tuple[Host, Host]:
    network.node("broker")
    one = network.node("one", "client", connect=["broker"])
    return one, network.node("two", "client", connect=["broker"])


def clients_of_a_router(network: Network) -> tuple[Host, Host]:
    network.node("router", "router")
    one = network.node("one", "client", connect=["router"])
    return one, network.node("two", "client", connect=["router"])


@pytest.fixture(params=[peers, client_and_peer, peer_and_client, clients, clients_of_a_router])
def pair(request: pytest.FixtureRequest) -> tuple[Network, Host, Host]:
    network = Network()
    one, two = request.param(network)
    network.settle()
    return network, one, two


def test_a_token_is_seen_while_it_lives(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    watcher = two.watch_liveliness("group/**")
    network.settle()
    token = one.node.local.liveliness.token("group/a")
    network.settle()
    answers = two.liveliness_get("group/*")
    network.settle()
    assert (answers.keys(), answers.finals, answers.errors()) == (["group/a"], 1, [])
    one.node.local.liveliness.untoken(token)
    network.settle()
    answers = two.liveliness_get("group/*")
    network.settle()
    assert (answers.keys(), answers.finals) == ([], 1)
    assert watcher.changes() == [("put", "group/a"), ("delete", "group/a")]


def test_history_tells_who_is_alive_already(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    one.node.local.liveliness.token("group/a")
    network.settle()
    with_history = two.watch_liveliness("group/**", history=True)
    network.settle()
    one.node.local.liveliness.token("group/b")
    network.settle()
    again = two.watch_liveliness("group/**", history=True)
    network.settle()
    assert with_history.changes() == [("put", "group/a"), ("put", "group/b")]
    assert sorted(again.changes()) == [("put", "group/a"), ("put", "group/b")]


def test_without_history_only_what_is_new_is_told(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    one.node.local.liveliness.token("group/a")
    network.settle()
    watcher = two.watch_liveliness("group/**")
    network.settle()
    one.node.local.liveliness.token("group/b")
    network.settle()
    assert watcher.changes() == [("put", "group/b")]


def test_several_tokens_under_a_key_are_one(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    watcher = two.watch_liveliness("group/**", history=True)
    network.settle()
    tokens = [one.node.local.liveliness.token("group/a") for _ in range(3)]
    network.settle()
    for token in tokens[:2]:
        one.node.local.liveliness.untoken(token)
        network.settle()
    assert watcher.changes() == [("put", "group/a")]
    one.node.local.liveliness.untoken(tokens[2])
    network.settle()
    assert watcher.changes() == [("put", "group/a"), ("delete", "group/a")]


def test_ones_own_tokens_are_seen(pair: tuple[Network, Host, Host]) -> None:
    network, one, _ = pair
    watcher = one.watch_liveliness("group/**")
    token = one.node.local.liveliness.token("group/me")
    network.settle()
    history = one.watch_liveliness("group/**", history=True)
    answers = one.liveliness_get("**")
    network.settle()
    one.node.local.liveliness.untoken(token)
    network.settle()
    assert answers.keys() == ["group/me"]
    assert watcher.changes() == [("put", "group/me"), ("delete", "group/me")]
    assert history.changes() == [("put", "group/me"), ("delete", "group/me")]


def test_the_same_token_on_two_nodes_lives_until_both_are_gone(
    pair: tuple[Network, Host, Host],
) -> None:
    network, one, two = pair
    watcher = two.watch_liveliness("group/**", history=True)
    mine = two.node.local.liveliness.token("group/a")
    theirs = one.node.local.liveliness.token("group/a")
    network.settle()
    two.node.local.liveliness.untoken(mine)
    network.settle()
    assert watcher.changes() == [("put", "group/a")]
    one.node.local.liveliness.untoken(theirs)
    network.settle()
    assert watcher.changes() == [("put", "group/a"), ("delete", "group/a")]


def test_a_dead_node_takes_its_tokens_along(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    watcher = two.watch_liveliness("group/**", history=True)
    one.node.local.liveliness.token("group/a")
    network.settle()
    network.crash(one)
    network.run(0.1)
    assert watcher.changes() == [("put", "group/a"), ("delete", "group/a")]


def test_an_undeclared_watcher_hears_nothing_more(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    watcher = two.watch_liveliness("group/**")
    network.settle()
    assert watcher.watcher is not None
    two.node.local.liveliness.unwatch(watcher.watcher)
    network.settle()
    one.node.local.liveliness.token("group/a")
    network.settle()
    assert watcher.changes() == []
    assert watcher.ended


def test_a_liveliness_get_that_nobody_answers_times_out() -> None:
    network = Network()
    network.node("peer", lease=100_000)
    client = network.node("client", "client", connect=["peer"])
    network.settle()
    network.links[0].silence()
    answers = client.liveliness_get("**", timeout=2.0)
    network.run(1.9)
    assert answers.finals == 0
    network.run(0.2)
    assert (answers.errors(), answers.finals) == ([b"Timeout"], 1)


def test_a_cancelled_liveliness_get_ends_once() -> None:
    network = Network()
    network.node("peer")
    client = network.node("client", "client", connect=["peer"])
    network.settle()
    answers = client.liveliness_get("**")
    [get] = client.node.local.liveliness.gets.values()
    client.node.local.liveliness.cancel(get)
    client.node.local.liveliness.cancel(get)
    network.settle()
    assert answers.finals == 1
