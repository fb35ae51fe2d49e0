"""Who is alive on one side is known on the other, however it dies."""

from __future__ import annotations

import functools

import pytest

from tests.interop.conftest import Together, Way
from tests.interop.peer import Peer
from tests.interop.processes import OURS, THEIRS, Process, connect, listen
from tests.waiting import until

pytestmark = pytest.mark.interop

# The speaker of a way is the one that is alive.


def test_tokens_are_seen_to_come_and_go(way: Way) -> None:
    way.listener.watch("w", f"{way.key}/**")
    way.speaker.token("a", f"{way.key}/a")
    assert way.listener.take("w") == [["PUT", f"{way.key}/a"]]
    way.speaker.token("b", f"{way.key}/b")
    assert way.listener.take("w") == [["PUT", f"{way.key}/b"]]
    way.speaker.undeclare("a")
    assert way.listener.take("w") == [["DELETE", f"{way.key}/a"]]


def test_who_is_alive_can_be_asked(way: Way) -> None:
    for name in ("a", "b", "c"):
        way.speaker.token(name, f"{way.key}/{name}")
    way.listener.until_alive(f"{way.key}/*", [f"{way.key}/{name}" for name in "abc"])
    assert way.listener.alive(f"{way.key}/b") == [f"{way.key}/b"]
    assert way.listener.alive(f"{way.key}/nobody") == []
    way.speaker.undeclare("b")
    way.listener.until_alive(f"{way.key}/*", [f"{way.key}/{name}" for name in "ac"])


def test_one_of_ours_that_watches_is_told_the_truth_at_once(together: Together) -> None:
    ours, theirs, key = together.ours, together.theirs, together.key
    ours.watch("w", f"{key}/**")
    for name in ("a", "b", "c"):
        theirs.token(name, f"{key}/{name}")
    ours.take("w", 3)
    assert ours.alive(f"{key}/*") == [f"{key}/{name}" for name in "abc"]
    theirs.undeclare("b")
    ours.take("w")
    assert ours.alive(f"{key}/*") == [f"{key}/{name}" for name in "ac"]


def test_with_history_those_who_are_alive_are_told_and_without_they_are_not(way: Way) -> None:
    way.listener.watch("first", f"{way.key}/**")
    way.speaker.token("a", f"{way.key}/a")
    way.listener.take("first")
    way.listener.watch("history", f"{way.key}/**", history=True)
    way.listener.watch("later", f"{way.key}/**")
    assert way.listener.take("history") == [["PUT", f"{way.key}/a"]]
    way.speaker.token("b", f"{way.key}/b")
    assert way.listener.take("history") == [["PUT", f"{way.key}/b"]]
    assert way.listener.take("later") == [["PUT", f"{way.key}/b"]]
    way.speaker.undeclare("a")
    for name in ("history", "later"):
        assert way.listener.take(name) == [["DELETE", f"{way.key}/a"]]


def test_one_key_may_be_kept_alive_by_both_sides(together: Together) -> None:
    ours, theirs, key = together.ours, together.theirs, f"{together.key}/both"
    for watcher in (ours, theirs):
        watcher.watch("w", f"{together.key}/**")
    ours.token("t", key)
    theirs.take("w")
    theirs.token("t", key)
    ours.token("fence", f"{together.key}/fence")
    theirs.take("w")
    assert ours.alive(key) == [key]


@pytest.mark.parametrize("mode", ["peer", "client"])
@pytest.mark.parametrize("package", [OURS, THEIRS], ids=["ours dies", "theirs dies"])
def test_a_token_dies_with_its_process(package: str, mode: str, elsewhere: Process) -> None:
    watcher = Peer(OURS) if package == THEIRS else elsewhere.node(f"watcher {mode}")
    place = listen(watcher)
    watcher.watch("w", "alive/**")
    with Process(package) as process:
        dying = process.node()
        connect(dying, place, mode)
        dying.token("t", f"alive/{mode}")
        assert watcher.take("w") == [["PUT", f"alive/{mode}"]]
        process.kill()
        assert watcher.take("w") == [["DELETE", f"alive/{mode}"]]
        assert watcher.alive("alive/**") == []
    watcher.close()


def test_a_token_behind_their_router_dies_with_its_process(ours: Peer, elsewhere: Process) -> None:
    router = elsewhere.node("router of the dying")
    place = listen(router, "router")
    connect(ours, place, "client")
    ours.watch("w", "behind/**", history=True)
    with Process(THEIRS) as process:
        dying = process.node()
        connect(dying, place, "client")
        dying.token("t", "behind/it")
        assert ours.take("w") == [["PUT", "behind/it"]]
        process.kill()
        assert ours.take("w") == [["DELETE", "behind/it"]]
    router.close()


def is_alive_once(peer: Peer, token: str) -> bool:
    """Return True if a peer finds a token; it must never find it twice.

    On a busy machine Eclipse's own peer may find none at all for a moment, even after it found one.
    """
    found = peer.alive(token)
    assert found in ([], [token])
    return bool(found)


@pytest.mark.parametrize("package", [OURS, THEIRS])
def test_a_peer_of_a_router_counts_its_own_token_once(
    package: str, theirs: Peer, ours: Peer
) -> None:
    with Process(package) as process:
        place = listen(process.node(), "router")
        for number, peer in enumerate((theirs, ours)):
            connect(peer, place)
            peer.token("t", f"own/{number}")
            until(functools.partial(is_alive_once, peer, f"own/{number}"))
