"""Queries and answers between nodes."""

from __future__ import annotations

import gc

import pytest

from zenlake.node.entities import ANY, REMOTE, SESSION_LOCAL
from zenlake.routing.face import PendingQuery
from zenlake.testing.network import Host, Network, Replier, Statuses

BEST, ALL, ALL_COMPLETE = 0, 1, 2


def star(network: Network, *names: str) -> dict[str, Host]:
    """Clients of one broker."""
    hosts = {"broker": network.node("broker")}
    for name in names:
        hosts[name] = network.node(name, "client", connect=["broker"])
    network.settle()
    return hosts


def test_every_answer_and_one_final() -> None:
    network = Network()
    hosts = star(network, "asker", "one", "two")
    for name in ("broker", "one", "two"):
        hosts[name].queryable(f"q/{name}", name.encode())
    network.settle()
    answers = hosts["asker"].get("q/*")
    network.settle()
    assert sorted(answers.values()) == [
        ("q/broker", b"broker"),
        ("q/one", b"one"),
        ("q/two", b"two"),
    ]
    assert answers.finals == 1
    zids = {responder.zid for _, _, responder in answers.all if responder is not None}
    assert zids == {hosts[name].node.zid for name in ("broker", "one", "two")}


def test_a_question_that_nobody_can_answer_is_final_at_once() -> None:
    network = Network()
    hosts = star(network, "asker")
    answers = hosts["asker"].get("q")
    network.run(0.1)
    assert (answers.all, answers.finals) == ([], 1)
    alone = Network().node("alone")
    assert alone.get("q").finals == 1


def test_errors_and_deletions_are_answers_too() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    replier = hosts["one"].queryable("q/**")
    network.settle()
    answers = hosts["asker"].get("q/a")
    network.settle()
    replier.fail(replier.queries[0], b"bad thing")
    replier.finish(replier.queries[0])
    network.settle()
    assert (answers.errors(), answers.finals) == ([b"bad thing"], 1)


@pytest.mark.parametrize("silent", [True, False])
def test_one_final_whoever_dies(silent: bool) -> None:
    """The one who was asked dies: the question ends at its death, or at its lease."""
    network = Network()
    hosts = star(network, "asker", "alive", "dying")
    alive = hosts["alive"].queryable("q", b"answer")
    hosts["dying"].queryable("q")
    network.settle()
    answers = hosts["asker"].get("q", target=ALL, timeout=60.0)
    network.run(0.1)
    assert len(alive.queries) == 1
    assert answers.finals == 0
    network.crash(hosts["dying"], silent=silent)
    network.run(0.1)
    assert answers.finals == (0 if silent else 1)
    network.run(15.0)
    assert answers.finals == 1
    assert answers.values() == [("q", b"answer")]


def test_a_broker_that_dies_ends_the_question() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    hosts["one"].queryable("q")
    network.settle()
    answers = hosts["asker"].get("q")
    network.run(0.1)
    network.crash(hosts["broker"])
    network.run(0.1)
    assert answers.finals == 1


def test_an_asker_that_dies_leaves_nothing_behind() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    replier = hosts["one"].queryable("q")
    network.settle()
    hosts["asker"].get("q")
    network.run(0.1)
    network.crash(hosts["asker"])
    network.run(0.1)
    questions = hosts["broker"].node.queries
    assert questions.open == {}
    assert all(not face.requests for face in hosts["broker"].node.tables.faces.values())
    replier.reply(replier.queries[0], "q", b"too late")
    replier.finish(replier.queries[0])
    network.settle()


def test_a_question_times_out_at_the_asker() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    replier = hosts["one"].queryable("q")
    network.settle()
    answers = hosts["asker"].get("q", timeout=1.0)
    network.run(0.99)
    replier.reply(replier.queries[0], "q", b"partial")
    network.run(0.005)
    assert answers.all == []  # kept back: something newer might come
    network.run(0.1)
    assert answers.values() == [("q", b"partial")]
    assert answers.errors() == [b"Timeout"]
    assert answers.finals == 1
    replier.reply(replier.queries[0], "q", b"too late")
    replier.finish(replier.queries[0])
    network.settle()
    assert (len(answers.all), answers.finals) == (2, 1)


def test_a_node_forgets_a_query_that_its_program_let_go_of_and_never_answered() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    replier = hosts["one"].queryable("q")
    network.settle()
    before = _pending()
    hosts["asker"].get("q", timeout=1.0)
    network.settle()
    assert _pending() > before
    network.run(60.0)  # the asker waits no more
    replier.queries.clear()
    assert _pending() == before


def _pending() -> int:
    gc.collect()
    return sum(isinstance(one, PendingQuery) for one in gc.get_objects())


def test_a_broker_answers_for_those_who_do_not_in_time() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    hosts["one"].queryable("q")
    network.settle()
    answers = hosts["asker"].get("q", timeout=1.0)
    assert answers.get is not None
    answers.get.deadline = 100.0  # an asker with more patience than it asked for
    network.run(1.1)
    assert answers.errors() == [b"Timeout"]
    assert answers.finals == 1
    [(key, _, responder)] = answers.all
    assert key == ""
    assert responder is not None
    assert (responder.zid, responder.eid) == (hosts["one"].node.zid, 0)


def test_a_cancelled_question_ends_once() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    replier = hosts["one"].queryable("q")
    network.settle()
    answers = hosts["asker"].get("q")
    network.run(0.1)
    assert answers.get is not None
    hosts["asker"].node.local.cancel(answers.get)
    replier.reply(replier.queries[0], "q", b"unwanted")
    replier.finish(replier.queries[0])
    network.settle()
    assert (answers.all, answers.finals) == ([], 1)
    assert hosts["asker"].node.local.gets == set()


def test_all_complete_asks_the_complete_alone() -> None:
    network = Network()
    hosts = star(network, "asker", "part", "whole", "narrow")
    hosts["part"].queryable("q/**", b"part")
    hosts["whole"].queryable("q/**", b"whole", complete=True)
    hosts["narrow"].queryable("q/x", b"narrow", complete=True)
    network.settle()
    answers = hosts["asker"].get("q/*", target=ALL_COMPLETE, any_key=True, consolidation=1)
    network.settle()
    assert [value for _, value in answers.values()] == [b"whole"]


def test_all_asks_everybody_once() -> None:
    network = Network()
    hosts = star(network, "asker", "part", "whole")
    hosts["part"].queryable("q/**", b"part")
    whole = hosts["whole"].queryable("q/**", b"whole", complete=True)
    hosts["whole"].queryable("q/x", b"twice")
    network.settle()
    answers = hosts["asker"].get("q/x", target=ALL, consolidation=1, any_key=True)
    network.settle()
    assert sorted(value for _, value in answers.values()) == [b"part", b"twice", b"whole"]
    assert len(whole.queries) == 1


def test_the_best_matching_is_found_in_each_region() -> None:
    """One complete client of two, and the broker's own program, and a complete peer."""
    network = Network()
    hosts = star(network, "asker", "a", "b")
    peer = network.node("peer", connect=["broker"])
    network.settle()
    hosts["a"].queryable("q/**", b"a", complete=True)
    hosts["b"].queryable("q/**", b"b", complete=True)
    hosts["broker"].queryable("q/**", b"broker")
    peer.queryable("q/**", b"peer", complete=True)
    network.settle()
    answers = hosts["asker"].get("q/x", consolidation=1, any_key=True)
    network.settle()
    assert sorted(value for _, value in answers.values()) == [b"a", b"broker", b"peer"]


def test_without_a_complete_one_everybody_of_a_region_is_asked() -> None:
    network = Network()
    hosts = star(network, "asker", "a", "b")
    hosts["a"].queryable("q/x", b"a", complete=True)  # complete, but not for the whole question
    hosts["b"].queryable("q/**", b"b")
    network.settle()
    answers = hosts["asker"].get("q/*", consolidation=1, any_key=True)
    network.settle()
    assert sorted(value for _, value in answers.values()) == [b"a", b"b"]


def test_nobody_is_asked_what_it_asks_itself_by_others() -> None:
    network = Network()
    hosts = star(network, "asker")
    replier = hosts["asker"].queryable("q", b"own")
    network.settle()
    remote = hosts["asker"].get("q", destination=REMOTE)
    network.settle()
    assert (replier.queries, remote.finals) == ([], 1)
    local = hosts["asker"].get("q", destination=SESSION_LOCAL)
    assert local.values() == [("q", b"own")]
    anywhere = hosts["asker"].get("q", destination=ANY)
    network.settle()
    assert anywhere.values() == [("q", b"own")]


def test_a_queryable_may_serve_only_its_own_node_or_only_others() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    local = hosts["one"].node.local
    own = Replier(hosts["one"].node, "q", b"own")
    local.queryable("q", own, False, SESSION_LOCAL)
    others = Replier(hosts["one"].node, "q", b"others")
    local.queryable("q", others, False, REMOTE)
    network.settle()
    far = hosts["asker"].get("q")
    near = hosts["one"].get("q")
    network.settle()
    assert far.values() == [("q", b"others")]
    assert near.values() == [("q", b"own")]


def test_answers_about_other_keys_are_dropped_unless_wanted() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    hosts["one"].queryable("q/**", b"x")  # answers about q/** itself
    replier = hosts["one"].queryable("p")
    network.settle()
    for any_key in (False, True):
        answers = hosts["asker"].get("p", any_key=any_key)
        network.settle()
        replier.reply(replier.queries[-1], "elsewhere", b"1")
        replier.finish(replier.queries[-1])
        network.settle()
        assert answers.keys() == (["elsewhere"] if any_key else [])


def test_a_querier_knows_whether_anybody_would_answer() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    local = hosts["asker"].node.local
    querier, statuses = local.querier("m/*", BEST, ANY), Statuses()
    strict = local.querier("m/*", ALL_COMPLETE, ANY)
    local.matching.watch(querier, statuses)
    network.settle()
    part = hosts["one"].queryable("m/x", b"part")
    network.settle()
    assert not querier.matching  # it does not cover the whole of the question
    whole = hosts["one"].queryable("m/**", b"whole")
    network.settle()
    assert querier.matching
    assert not strict.matching
    complete = hosts["one"].queryable("m/**", b"complete", complete=True)
    network.settle()
    assert strict.matching
    for replier in (whole, complete, part):
        assert replier.queryable is not None
        hosts["one"].node.local.unqueryable(replier.queryable)
    network.settle()
    assert statuses.changes == [True, False]
    local.unquerier(querier)
    assert statuses.ended


def test_a_node_that_has_no_endings_of_its_own_queryables_is_final_when_all_have_answered() -> None:
    network = Network()
    hosts = star(network, "asker", "one")
    first, second = hosts["one"].queryable("q"), hosts["one"].queryable("q")
    network.settle()
    answers = hosts["asker"].get("q")
    network.run(0.1)
    first.finish(first.queries[0])
    first.finish(first.queries[0])
    network.run(0.1)
    assert answers.finals == 0
    second.finish(second.queries[0])
    network.run(0.1)
    assert answers.finals == 1
