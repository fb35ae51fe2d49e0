"""Peers without a broker."""

from __future__ import annotations

import os
from contextlib import suppress

from tests.waiting import SECONDS, until
from zenlake.xrce_io.peer import Peer


def test_three_peers_share_a_resource_without_a_broker() -> None:
    with Peer(group="") as a:
        with (
            Peer(group="", connect=(a.places[0],)) as b,
            Peer(group="", connect=(a.places[0], b.places[0])) as c,
        ):
            heard = {name: peer.subscriber("/x") for name, peer in (("a", a), ("b", b), ("c", c))}
            for peer in (a, b, c):
                until(lambda peer=peer: peer.peers == 2)  # type: ignore[misc]
            for name, peer in (("a", a), ("b", b), ("c", c)):
                publisher = peer.publisher("/x")
                until(lambda one=publisher: one.matched)  # type: ignore[misc]
                assert publisher.put(name.encode())
                for other, samples in heard.items():
                    if other != name:
                        assert samples.recv(SECONDS) == ("x", name.encode())
            a.write("/x", b"to all")
            assert heard["b"].recv(SECONDS) == heard["c"].recv(SECONDS) == ("x", b"to all")
            assert [samples.try_recv() for samples in heard.values()] == [None, None, None]
        until(lambda: a.peers == 0)


def test_peers_find_each_other_by_multicast() -> None:
    group = "239.255.0.1:17447"
    with Peer(group=group, interface="lo") as a, Peer(group=group, interface="lo") as b:
        samples = b.subscriber("/x")
        publisher = a.publisher("/x")
        until(lambda: publisher.matched)
        publisher.put(b"found")
        assert samples.recv(SECONDS) == ("x", b"found")


def test_peers_that_leave_give_back_what_they_held_of_the_system() -> None:
    def held() -> set[tuple[str, str]]:
        """Each descriptor with what it is of; what earlier tests let go of is not looked at."""
        found = set()
        for fd in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):
                found.add((fd, os.readlink(f"/proc/self/fd/{fd}")))
        return found

    group = "239.255.0.1:17449"
    with Peer(group=group, interface="lo") as a:
        before = held()
        for _ in range(3):
            with Peer(group=group, interface="lo"):
                until(lambda: a.peers == 1)
            until(lambda: a.peers == 0)
        until(lambda: not held() - before)


def test_a_sample_for_all_peers_is_one_datagram() -> None:
    group = "239.255.0.1:17448"
    with (
        Peer(group=group, interface="lo") as a,
        Peer(group=group, interface="lo") as b,
        Peer(group=group, interface="lo") as c,
    ):
        until(lambda: a.peers == b.peers == c.peers == 2)
        heard = {name: peer.subscriber("/x/*") for name, peer in (("a", a), ("b", b), ("c", c))}
        for name, peer in (("a", a), ("b", b), ("c", c)):
            publisher = peer.publisher("/x/y", multicast=True)
            until(lambda one=publisher: one.matched)  # type: ignore[misc]
            sent = [f"{name}{i}".encode() for i in range(400)]  # more than a window
            for payload in sent:
                assert publisher.put(payload)
            for other, samples in heard.items():
                if other != name:
                    assert [samples.recv(SECONDS) for _ in sent] == [("x/y", one) for one in sent]
            assert peer.multicasts == len(sent)
        assert [samples.try_recv() for samples in heard.values()] == [None, None, None]
        # What one of them wants kept goes to each by itself, to be pulled from there.
        sleepy = a.subscriber("/x/z", "pull")
        for peer in (b, c):
            quick = peer.publisher("/x/z", multicast=True)
            until(lambda one=quick: one.matched)  # type: ignore[misc]
            assert quick.put(b"kept")
            until(lambda: ("x/z", b"kept") in sleepy.pull())
        sleepy.undeclare()
