"""Nodes of both implementations find each other, stay together, and come back together."""

from __future__ import annotations

import socket

import pytest

from tests.interop.peer import SECONDS, Peer, Plain
from tests.interop.processes import (
    OURS,
    THEIRS,
    Process,
    connect,
    listen,
    meanwhile,
)
from tests.ports import free_port

pytestmark = pytest.mark.interop


def meet(peer: Peer, *others: str) -> None:
    """Wait until a node has a session with others."""
    peer.watch_neighbours("neighbours")
    found: set[str] = set()
    while not found.issuperset(others):
        [event] = peer.take("neighbours")
        if event["kind"] == "PUT":
            found.add(event["zid"])
        else:
            found.discard(event["zid"])
    peer.undeclare("neighbours")


def speak(speaker: Peer, listener: Peer, key: str) -> None:
    """Have one node hear the other."""
    listener.subscribe(key, f"{key}/**")
    speaker.publisher(key, f"{key}/x")
    speaker.until(key)
    speaker.publish(key, "x")
    assert [one["payload"] for one in listener.take(key)] == ["x"]
    listener.undeclare(key)
    speaker.undeclare(key)


@pytest.mark.parametrize(
    ("here", "there"),
    [("client", "router"), ("client", "peer"), ("peer", "peer"), ("peer", "router")],
)
@pytest.mark.parametrize("ours_connects", [True, False], ids=["ours connects", "theirs connects"])
def test_they_speak_with_each_other(
    ours: Peer, theirs: Peer, here: str, there: str, ours_connects: bool
) -> None:
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    zid = connect(connecting, listen(listening, there), here)
    meet(listening, zid)
    meet(connecting, listening.zid())
    assert connecting.neighbours() == [listening.zid()]
    speak(ours, theirs, "one")
    speak(theirs, ours, "other")


def scouting(group: str) -> Plain:
    """A configuration that finds others on loopback alone, as a machine of its own would."""
    return {
        "scouting__multicast__enabled": True,
        "scouting__multicast__address": group,
        "scouting__multicast__interface": "127.0.0.1",
        "scouting__multicast__autoconnect": {
            "router": [],
            "peer": ["router", "peer"],
            "client": ["router"],
        },
    }


@pytest.mark.usefixtures("multicast")
@pytest.mark.parametrize("ours_first", [True, False], ids=["ours was there", "theirs was there"])
def test_peers_find_each_other_by_multicast(ours: Peer, theirs: Peer, ours_first: bool) -> None:
    keys = scouting(f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}")
    for peer in (ours, theirs) if ours_first else (theirs, ours):
        listen(peer, **keys)
    meet(ours, theirs.zid())
    meet(theirs, ours.zid())
    speak(ours, theirs, "found/one")
    speak(theirs, ours, "found/other")


@pytest.mark.usefixtures("multicast")
def test_a_client_finds_their_router_by_multicast(ours: Peer, theirs: Peer) -> None:
    keys = scouting(f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}")
    listen(theirs, "router", **keys)
    ours.open("client", **keys)
    assert ours.neighbours() == [theirs.zid()]
    speak(theirs, ours, "found")


@pytest.mark.usefixtures("multicast")
def test_their_scout_and_ours_see_the_same_nodes(ours: Peer, theirs: Peer) -> None:
    keys = scouting(f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}")
    places = {listen(peer, **keys): peer for peer in (ours, theirs)}
    expected = sorted([peer.zid(), "peer", [place]] for place, peer in places.items())
    for peer in (ours, theirs):
        assert peer.scout(2, **keys) == expected


@pytest.mark.parametrize("known", [OURS, THEIRS], ids=["through ours", "through theirs"])
@pytest.mark.parametrize("newcomer", [OURS, THEIRS], ids=["ours comes", "theirs comes"])
def test_peers_find_each_other_by_gossip(known: str, newcomer: str, elsewhere: Process) -> None:
    def node(package: str, name: str) -> Peer:
        return Peer(OURS) if package == OURS else elsewhere.node(f"{known}{newcomer}{name}")

    middle, first = node(known, "middle"), node(THEIRS if newcomer == OURS else OURS, "first")
    last = node(newcomer, "last")
    place = listen(middle)
    for peer in (first, last):
        listen(peer, connect__endpoints=[place])
    meet(first, middle.zid(), last.zid())
    meet(last, middle.zid(), first.zid())
    speak(first, last, "gossip/one")
    speak(last, first, "gossip/other")
    for peer in (last, first, middle):
        peer.close()


def test_a_client_of_several_routers_takes_one_that_lives(ours: Peer, theirs: Peer) -> None:
    dead = f"tcp/127.0.0.1:{free_port()}"
    place = listen(theirs, "router")
    ours.open("client", connect__endpoints=[dead, place], connect__timeout_ms=int(SECONDS * 1000))
    assert ours.neighbours() == [theirs.zid()]
    speak(ours, theirs, "several")


def test_a_client_moves_to_the_other_router_when_the_first_dies(ours: Peer) -> None:
    with Process(THEIRS) as one, Process(THEIRS) as two:
        places = [listen(process.node(), "router") for process in (one, two)]
        ours.open("client", connect__endpoints=places, **IMPATIENT)
        routers = {process.node().zid(): process for process in (one, two)}
        [first] = ours.neighbours()
        ours.subscribe("s", "moved/**")
        ours.watch_neighbours("n")
        ours.take("n")
        routers.pop(first).kill()
        [(second, process)] = routers.items()
        gone, come = ours.take("n", 2)
        assert gone == {"kind": "DELETE", "zid": first}
        assert come == {"kind": "PUT", "zid": second}
        other = process.node()
        other.publisher("p", "moved/p")
        other.until("p")
        other.publish("p", "x")
        assert ours.take("s")[0]["payload"] == "x"


#: Try again soon.
IMPATIENT: Plain = {
    "connect__retry": {"period_init_ms": 20, "period_max_ms": 100, "period_increase_factor": 2}
}


def test_after_their_router_is_gone_and_back_everything_is_declared_again(ours: Peer) -> None:
    port = free_port()
    with Process(THEIRS) as first:
        first.node().open("router", listen__endpoints=[f"tcp/127.0.0.1:{port}"])
        ours.open("client", connect__endpoints=[f"tcp/127.0.0.1:{port}"], **IMPATIENT)
        ours.subscribe("s", "again/**")
        ours.queryable("q", "again/q", [{"payload": "answer"}])
        ours.token("t", "again/alive")
        ours.watch("w", "other/**", history=True)
        ours.publisher("p", "other/p")
        ours.querier("k", "other/q")
        first.node().token("t", "other/alive")
        assert ours.take("w") == [["PUT", "other/alive"]]
        first.kill()
        assert ours.take("w") == [["DELETE", "other/alive"]]
    with Process(THEIRS) as second:
        router = second.node()
        router.open("router", listen__endpoints=[f"tcp/127.0.0.1:{port}"])
        router.watch("w", "again/**", history=True)
        assert router.take("w") == [["PUT", "again/alive"]]
        router.publisher("p", "again/x")
        router.until("p")
        router.publish("p", "heard again")
        assert ours.take("s")[0]["payload"] == "heard again"
        router.querier("k", "again/q")
        router.until("k")
        assert [one["payload"] for one in router.ask("k")] == ["answer"]
        router.token("t", "other/alive")
        assert ours.take("w") == [["PUT", "other/alive"]]
        router.subscribe("s", "other/p")
        ours.until("p")
        ours.publish("p", "still here")
        assert router.take("s")[0]["payload"] == "still here"
        router.queryable("q", "other/q", [{"payload": "there"}])
        ours.until("k")
        assert [one["payload"] for one in ours.ask("k")] == ["there"]


def test_when_our_listening_peer_is_gone_and_back_they_come_back(theirs: Peer) -> None:
    port = free_port()
    place = f"tcp/127.0.0.1:{port}"
    with Process(OURS) as first:
        first.node().open("peer", listen__endpoints=[place])
        connect(theirs, place, **IMPATIENT)
        theirs.subscribe("s", "back/**")
        theirs.token("t", "back/alive")
        first.node().publisher("p", "back/p")
        first.node().until("p")
        first.kill()
    with Process(OURS) as second:
        ours = second.node()
        ours.open("peer", listen__endpoints=[place])
        ours.publisher("p", "back/p")
        ours.until("p")
        ours.publish("p", "x")
        assert theirs.take("s")[0]["payload"] == "x"
        ours.until_alive("back/**", ["back/alive"])


def test_an_endpoint_may_come_up_later(ours: Peer, theirs: Peer) -> None:
    place = f"tcp/127.0.0.1:{free_port()}"
    ours.open("peer", connect__endpoints=[place], scouting__delay=200, **IMPATIENT)
    theirs.open("peer", listen__endpoints=[place])
    meet(ours, theirs.zid())
    speak(ours, theirs, "later")


def test_a_client_that_waits_for_its_router_is_open_once_it_is_there(
    ours: Peer, theirs: Peer
) -> None:
    place = f"tcp/127.0.0.1:{free_port()}"
    opening = meanwhile(
        ours.open,
        "client",
        connect__endpoints=[place],
        connect__timeout_ms=int(SECONDS * 1000),
        **IMPATIENT,
    )
    theirs.open("router", listen__endpoints=[place])
    opening.result(SECONDS)
    assert ours.neighbours() == [theirs.zid()]


@pytest.mark.parametrize("ours_closes", [True, False], ids=["ours closes", "theirs closes"])
def test_a_goodbye_is_heard_at_once(ours: Peer, theirs: Peer, ours_closes: bool) -> None:
    connect(ours, listen(theirs), "client")
    leaving, staying = (ours, theirs) if ours_closes else (theirs, ours)
    staying.watch_neighbours("n")
    assert staying.take("n")[0]["kind"] == "PUT"
    leaving.close()
    assert staying.take("n")[0]["kind"] == "DELETE"
