"""Nodes that fall silent, freeze and die: the others notice, and go on."""

from __future__ import annotations

import json
import time

import pytest

from tests.interop.peer import SECONDS, Peer, Plain
from tests.interop.processes import OURS, THEIRS, Process, connect, listen, meanwhile

pytestmark = pytest.mark.interop

#: A lease so long that only the end of the link can tell of a death in time.
PATIENT: Plain = {"transport__link__tx__lease": 600_000}
#: A lease so short that its end can be waited for, and so long that a node on a busy machine has
#: said a word before it.
LEASE = 3.0
BRIEF: Plain = {"transport__link__tx__lease": round(1000 * LEASE)}

dying = pytest.mark.parametrize("package", [OURS, THEIRS], ids=["ours", "theirs"])


def other(package: str, elsewhere: Process) -> Peer:
    """A node of the other package, in a process that lives on."""
    if package == THEIRS:
        return Peer(OURS)
    return elsewhere.node(f"witness {time.monotonic_ns()}")


def test_links_without_traffic_outlive_their_leases(elsewhere: Process) -> None:
    pairs: list[tuple[Peer, Peer]] = []
    for number, mode in enumerate(("peer", "client", "peer", "client")):
        ours, theirs = Peer(OURS), elsewhere.node(f"idle {number}")
        connecting, listening = (ours, theirs) if number < 2 else (theirs, ours)
        connect(connecting, listen(listening, **BRIEF), mode, **BRIEF)
        for peer in (ours, theirs):
            peer.watch_neighbours("n")
            assert peer.take("n")[0]["kind"] == "PUT"
        pairs.append((ours, theirs))
    assert pairs[0][0].quiet("n", 1.5 * LEASE)
    for ours, theirs in pairs:
        assert ours.heard_by("n") == 0
        assert theirs.heard_by("n") == 0
        theirs.subscribe("s", "idle/*")
        ours.publisher("p", "idle/p")
        ours.until("p")
        ours.publish("p", "x")
        assert theirs.take("s")[0]["payload"] == "x"
        ours.close()
        theirs.close()


@dying
@pytest.mark.parametrize("mode", ["peer", "client"])
def test_a_sudden_death_is_noticed_at_once(package: str, mode: str, elsewhere: Process) -> None:
    witness = other(package, elsewhere)
    place = listen(witness, **PATIENT)
    with Process(package) as process:
        zid = connect(process.node(), place, mode, **PATIENT)
        witness.watch_neighbours("n")
        assert witness.take("n") == [{"kind": "PUT", "zid": zid}]
        process.kill()
        assert witness.take("n") == [{"kind": "DELETE", "zid": zid}]
    witness.close()


@dying
def test_a_frozen_node_is_given_up_when_its_lease_ends_and_taken_back(
    package: str, elsewhere: Process
) -> None:
    witness = other(package, elsewhere)
    place = listen(witness, **BRIEF)
    with Process(package) as process:
        frozen = process.node()
        zid = connect(
            frozen, place, **BRIEF, connect__retry={"period_init_ms": 20, "period_max_ms": 100}
        )
        witness.watch_neighbours("n")
        assert witness.take("n") == [{"kind": "PUT", "zid": zid}]
        began = time.monotonic()
        process.freeze()
        assert witness.take("n") == [{"kind": "DELETE", "zid": zid}]
        # Not before its time: the last word may be as old as a keep-alive.
        assert time.monotonic() - began > LEASE / 2
        process.thaw()
        assert witness.take("n") == [{"kind": "PUT", "zid": zid}]
        witness.subscribe("s", "thawed/*")
        frozen.publisher("p", "thawed/p")
        frozen.until("p")
        frozen.publish("p", "x")
        assert witness.take("s")[0]["payload"] == "x"
    witness.close()


def test_a_stall_of_ours_is_not_held_against_those_who_spoke_meanwhile(theirs: Peer) -> None:
    place = listen(theirs, **BRIEF)
    with Process(OURS) as process:
        zid = connect(process.node(), place, "client", **PATIENT)
        theirs.watch_neighbours("n")
        assert theirs.take("n") == [{"kind": "PUT", "zid": zid}]
        process.freeze()
        assert theirs.quiet("n", 1.3 * LEASE)
        process.thaw()
        process.node().publisher("p", "stalled/p")
        theirs.subscribe("s", "stalled/*")
        process.node().until("p")
        process.node().publish("p", "x")
        assert theirs.take("s")[0]["payload"] == "x"
        assert theirs.heard_by("n") == 0


@dying
def test_a_question_ends_when_those_who_could_answer_die(package: str, elsewhere: Process) -> None:
    asker = other(package, elsewhere)
    place = listen(asker, **PATIENT)
    with Process(package) as process:
        connect(process.node(), place, **PATIENT)
        process.node().queryable("q", "dying/q")
        asker.querier("k", "dying/q", timeout=10 * SECONDS)
        asker.until("k")
        asking = meanwhile(asker.ask, "k")
        process.node().take("q")
        process.kill()
        assert asking.result(SECONDS) == []
        asker.until("k", False)
    asker.close()


@dying
def test_who_asked_may_die_before_it_is_answered(package: str, elsewhere: Process) -> None:
    witness = other(package, elsewhere)
    place = listen(witness, **PATIENT)
    witness.queryable("q", "early/q")
    with Process(package) as process, Process(package) as next:
        connect(process.node(), place, **PATIENT)
        process.node().querier("k", "early/q")
        process.node().until("k")
        asking = meanwhile(process.node().ask, "k")
        witness.take("q")
        witness.watch_neighbours("n")
        witness.take("n")
        process.kill()
        assert asking.exception(SECONDS) is not None
        assert witness.take("n")[0]["kind"] == "DELETE"
        witness.let_go()
        connect(next.node(), place, **PATIENT)
        next.node().querier("k", "early/q")
        next.node().until("k")
        asking = meanwhile(next.node().ask, "k")
        witness.take("q")
        witness.let_go()
        assert asking.result(SECONDS) == []
    witness.close()


@dying
def test_a_death_in_the_middle_of_a_large_message_leaves_nothing_behind(
    package: str, elsewhere: Process
) -> None:
    witness = other(package, elsewhere)
    place = listen(witness, **PATIENT)
    witness.subscribe("s", "torn/*")
    witness.watch_neighbours("n")
    with Process(package) as process:
        connect(process.node(), place, "client", **PATIENT)
        witness.take("n")
        process.node().publisher("p", "torn/p", congestion_control="BLOCK")
        process.node().until("p")
        sending = meanwhile(process.node().publish_forever, "p", 8 << 20)
        assert witness.take("s")[0]["payload"][0] == 8 << 20
        process.kill()
        assert sending.exception(SECONDS) is not None
        assert witness.take("n")[0]["kind"] == "DELETE"
    with Process(package) as process:
        connect(process.node(), place, "client", **PATIENT)
        process.node().publisher("p", "torn/p", congestion_control="BLOCK")
        process.node().until("p")
        process.node().publish("p", "whole")
        while (payload := witness.take("s")[0]["payload"]) != "whole":
            assert payload[0] == 8 << 20
    witness.close()


def test_a_frozen_subscriber_costs_a_publisher_that_drops_nothing_but_counted_samples(
    ours: Peer,
) -> None:
    place = listen(ours, **PATIENT)
    with Process(THEIRS) as process:
        connect(process.node(), place, **PATIENT)
        process.node().subscribe("s", "cold/*")
        ours.publisher("p", "cold/p")
        ours.until("p")
        process.freeze()
        publisher = ours.things["p"]
        outcomes = [publisher.try_put(b"x" * 10_000)]
        began = time.monotonic()
        while sum(not outcome for outcome in outcomes) < 1000:
            outcomes.append(publisher.try_put(b"x" * 10_000))
            assert time.monotonic() - began < SECONDS
        assert {outcome.name for outcome in outcomes} == {"QUEUED", "QUEUE_FULL"}
        process.thaw()
        # What was said to be queued is what arrives, and nothing else.
        process.node().take("s", sum(bool(outcome) for outcome in outcomes))
        ours.publish("p", "last")
        assert process.node().take("s")[0]["payload"] == "last"


def test_a_frozen_neighbour_that_blocks_a_publisher_too_long_is_given_up(ours: Peer) -> None:
    place = listen(
        ours,
        **PATIENT,
        transport__link__tx__queue__congestion_control__block__wait_before_close=200_000,
    )
    with Process(THEIRS) as process, Process(THEIRS) as healthy:
        zid = connect(process.node(), place, "client", **PATIENT)
        process.node().subscribe("s", "stuck/*")
        ours.publisher("p", "stuck/p", congestion_control="BLOCK")
        ours.until("p")
        connect(healthy.node(), place, "client", **PATIENT)
        healthy.node().subscribe("s", "stuck/last")
        ours.publisher("last", "stuck/last", congestion_control="BLOCK")
        ours.watch_neighbours("n")
        ours.take("n", 2)
        process.freeze()
        sending = meanwhile(lambda: [ours.publish("p", 1 << 20) for _ in range(64)])
        sending.result(SECONDS)
        assert ours.take("n") == [{"kind": "DELETE", "zid": zid}]
        ours.publish("last", "x")
        assert healthy.node().take("s")[0]["payload"] == "x"
        process.thaw()


def test_what_a_slow_subscriber_loses_is_counted_on_the_right_keys() -> None:
    """Frozen, then thawed: what it got and what was dropped are all that was sent, key by key."""
    router, speaker = Peer(OURS), Peer(OURS)
    place = listen(router, "router", adminspace__enabled=True, **PATIENT)
    sent = {"fleet/7/camera": 0, "fleet/7/pose": 0}
    with Process(THEIRS) as process:
        zid = connect(process.node(), place, "client", **PATIENT)
        for number, key in enumerate(sent):
            process.node().subscribe(f"s{number}", key)
            router.subscribe(f"w{number}", key)
        connect(speaker, place, "client", **PATIENT)
        for number, key in enumerate(sent):
            speaker.publisher(f"p{number}", key)
            speaker.until(f"p{number}")
        router.until_neighbour(zid)
        process.freeze()
        while True:
            for number, size in ((0, 60_000), (1, 10), (0, 60_000)):
                speaker.publish(f"p{number}", "x" * size)
                router.take(f"w{number}")  # it has passed the router
                sent[list(sent)[number]] += 1
            ((_, text),) = router.read("@/*/router/drops").values()
            told = json.loads(text)
            if told["sessions"] and told["sessions"][0]["dropped"] > 20:
                break
        process.thaw()
        (session,) = told["sessions"]
        assert (session["peer"], session["estimate"]) == (zid, False)
        lost = {row["key"]: row["dropped"] for row in session["keys"]}
        assert lost.keys() <= sent.keys()
        for number, key in enumerate(sent):
            process.node().take(f"s{number}", sent[key] - lost.get(key, 0))
            assert process.node().quiet(f"s{number}", 0.3)
        assert lost["fleet/7/camera"] > lost.get("fleet/7/pose", 0)
    speaker.close()
    router.close()
