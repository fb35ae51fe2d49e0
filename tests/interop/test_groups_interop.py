"""Multicast groups: ours and real nodes tell each other everything, without a session."""

from __future__ import annotations

import hashlib
import socket

import pytest

from tests.interop.peer import SECONDS, Peer, large
from tests.ports import free_port
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("multicast")]

# Real nodes with shared memory use it towards the whole group, whoever is in it.
NO_SHM = {"transport__shared_memory__enabled": False}


def join(*nodes: Peer, qos: bool = False) -> None:
    place = f"udp/224.0.0.225:{free_port(socket.SOCK_DGRAM)}#iface=lo"
    for node in nodes:
        node.open(
            "peer",
            listen__endpoints=[place],
            transport__multicast__qos__enabled=qos,
            transport__multicast__join_interval=200,
            **NO_SHM,
        )
    for node in nodes:
        for other in nodes:
            if other is not node:
                node.until_neighbour(other.zid())


@pytest.mark.parametrize("qos", [False, True], ids=["no priorities", "priorities"])
@pytest.mark.parametrize("ours_speaks", [True, False], ids=["ours speaks", "theirs speaks"])
def test_a_group_hears_what_one_of_it_says(
    ours: Peer, theirs: Peer, qos: bool, ours_speaks: bool
) -> None:
    join(ours, theirs, qos=qos)
    speaker, listener = (ours, theirs) if ours_speaks else (theirs, ours)
    listener.subscribe("s", "group/**")
    speaker.publisher("p", "group/p", priority="REAL_TIME")
    # One at a time: a datagram that finds no room is lost, as datagrams are.
    for size in (3, 500, 20_000):
        speaker.publish("p", size)
        [sample] = listener.take("s")
        data = large(size)
        assert sample["payload"] in (
            data.decode("latin-1"),
            [size, hashlib.md5(data).hexdigest()],
        )
    speaker.put("group/other", "loose", attachment="extra")
    [sample] = listener.take("s")
    assert (sample["key"], sample["payload"], sample["attachment"]) == (
        "group/other",
        "loose",
        "extra",
    )
    speaker.delete("group/other")
    [sample] = listener.take("s")
    assert sample["kind"] == "DELETE"


def test_a_real_member_that_leaves_is_forgotten(ours: Peer, theirs: Peer) -> None:
    join(ours, theirs)
    ours.watch_neighbours("n")
    [came] = ours.take("n")
    theirs.close()
    [went] = ours.take("n")
    assert (came["kind"], went["kind"]) == ("PUT", "DELETE")
    # A last Join may come behind its Close: then it is believed in for a lease.
    until(lambda: ours.neighbours() == [], "it is still known", SECONDS)


def test_access_control_guards_groups_too(ours: Peer, theirs: Peer) -> None:
    rule: dict[str, object] = {
        "id": "no secrets",
        "messages": ["put", "delete"],
        "flows": ["ingress", "egress"],
        "permission": "deny",
        "key_exprs": ["group/secret"],
    }
    place = f"udp/224.0.0.225:{free_port(socket.SOCK_DGRAM)}#iface=lo"
    for node, keys in ((ours, {"access_control": guard(rule)}), (theirs, {})):
        node.open(
            "peer",
            listen__endpoints=[place],
            transport__multicast__join_interval=200,
            **NO_SHM,
            **keys,
        )
    ours.until_neighbour(theirs.zid())
    theirs.until_neighbour(ours.zid())
    for speaker, listener in ((ours, theirs), (theirs, ours)):
        listener.subscribe("s", "group/**")
        speaker.put("group/secret", "hidden")
        speaker.put("group/open", "seen")
        assert [one["key"] for one in listener.take("s")] == ["group/open"]
        listener.undeclare("s")


def guard(rule: dict[str, object]) -> dict[str, object]:
    return {
        "enabled": True,
        "default_permission": "allow",
        "rules": [rule],
        "subjects": [{"id": "all"}],
        "policies": [{"rules": ["no secrets"], "subjects": ["all"]}],
    }
