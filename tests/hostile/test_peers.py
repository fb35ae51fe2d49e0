"""Neighbours that lie, flood, stall or babble: they lose their link, and nobody else notices."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.testing import specs
from zenlake.testing.network import Host, Network, SampleRecorder, Stranger
from zenlake.testing.strategies import messages
from zenlake.wire import (
    Close,
    Declare,
    DeclareSubscriber,
    DeclareToken,
    Fragment,
    Frame,
    InitAck,
    Interest,
    Message,
    Oam,
    OpenAck,
    OpenSyn,
    Push,
    Put,
    Query,
    Request,
    read_batch,
    write,
)

MASK = 0x0FFF_FFFF
INVALID = 2


class Scene:
    """A node with two honest neighbours, and a stranger who knocks."""

    def __init__(self, mode: str = "peer", **settings: Any) -> None:
        self.network = Network(Random(0))
        self.node: Host = self.network.node("node", mode, **settings)
        self.honest = [
            self.network.node(name, "client", connect=["node"]) for name in ("one", "two")
        ]
        self.network.settle()
        self.samples: SampleRecorder = self.honest[0].subscribe("honest")
        self.network.settle()
        self.rounds = 0
        self.sn = 5

    def stranger(self, role: int = 2, zid: bytes = b"\x66", lease: int = 10_000) -> Stranger:
        """A stranger with an open session."""
        stranger = self.network.stranger(self.node)
        stranger.say(bytes((0x81, 9, (len(zid) - 1) << 4 | role)) + zid + b"\x81\x27\x01")
        self.network.run(0.01)
        [ack] = read_batch(stranger.heard()[0])
        assert isinstance(ack, InitAck)
        stranger.say(write(OpenSyn(lease=lease, initial_sn=5, cookie=ack.cookie)))
        self.network.run(0.01)
        said = [message for batch in stranger.heard() for message in read_batch(batch)]
        assert isinstance(said[0], OpenAck)
        return stranger

    def say(self, stranger: Stranger, *said: Message, priority: int = 0) -> None:
        """Network messages from the stranger, in a frame."""
        stranger.say(write(Frame(sn=self.sn, reliable=True, priority=priority, messages=said)))
        self.sn = (self.sn + 1) & MASK
        self.network.run(0.01)

    def check_honest(self) -> None:
        """The honest neighbours still reach each other.

        Whatever the stranger may say under their key, as anybody may, is not said in their words.
        """
        self.rounds += 1
        self.honest[1].put("honest", b"honest word %d" % self.rounds)
        self.network.run(0.1)
        heard = [value for _, value in self.samples.values()]
        assert [value for value in heard if value.startswith(b"honest word")] == [
            b"honest word %d" % (number + 1) for number in range(self.rounds)
        ]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def closed_with(stranger: Stranger) -> int | None:
    """The reason in the last word to a stranger, or None if it was cut without one."""
    assert stranger.closed
    said = [message for batch in stranger.heard() for message in read_batch(batch)]
    last = said[-1] if said else None
    return last.reason if isinstance(last, Close) else None


# -------------------------------------------------------------------------- before the opening


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\n\r\n" * 2000,
        b"\x04\x00\xff\xff\xff\xff",
        b"\x03\x00\x41\x09\xff",
        b"\x02\x00\x25\x05",
        b"\x06\x00\x01\x0a\x02\x66\x00\x00",
    ],
)
def test_whoever_does_not_speak_zenoh_is_told_so(scene: Scene, first: bytes) -> None:
    stranger = scene.network.stranger(scene.node)
    stranger.send(first)
    scene.network.run(0.1)
    assert closed_with(stranger) == INVALID
    scene.check_honest()


def test_a_wrong_cookie_is_invalid(scene: Scene) -> None:
    stranger = scene.network.stranger(scene.node)
    stranger.say(bytes.fromhex("010902" + "66"))
    scene.network.run(0.01)
    stranger.heard()
    stranger.say(write(OpenSyn(lease=10_000, initial_sn=1, cookie=b"forged")))
    scene.network.run(0.01)
    assert closed_with(stranger) == INVALID


def test_a_cookie_is_good_on_its_own_link_alone(scene: Scene) -> None:
    one, two = scene.network.stranger(scene.node), scene.network.stranger(scene.node)
    for stranger, zid in ((one, "66"), (two, "67")):
        stranger.say(bytes.fromhex("010902" + zid))
    scene.network.run(0.01)
    [ack] = read_batch(one.heard()[0])
    two.heard()
    assert isinstance(ack, InitAck)
    two.say(write(OpenSyn(lease=10_000, initial_sn=1, cookie=ack.cookie)))
    scene.network.run(0.01)
    assert closed_with(two) == INVALID


def test_a_flood_of_half_open_links_is_bounded_and_passes(scene: Scene) -> None:
    strangers = [scene.network.stranger(scene.node) for _ in range(500)]
    scene.network.run(1.0)
    assert len(scene.node.node.neighbours) <= 102
    assert sum(stranger.closed for stranger in strangers) == 400
    scene.check_honest()
    scene.network.run(10.0)  # the patience with strangers
    assert all(stranger.closed for stranger in strangers)
    assert len(scene.node.node.neighbours) == 2
    scene.stranger()


def test_a_slow_loris_has_as_long_as_everybody_else(scene: Scene) -> None:
    stranger = scene.network.stranger(scene.node)
    hello = b"\xff\xff" + bytes(100)
    for byte in hello[:50]:
        stranger.send(bytes((byte,)))
        scene.network.run(0.19)
    assert not stranger.closed
    scene.network.run(1.0)
    assert stranger.closed
    scene.check_honest()


# --------------------------------------------------------------------------- after the opening


def test_a_number_beyond_the_resolution_cuts_the_link(scene: Scene) -> None:
    stranger = scene.stranger()
    stranger.say(write(Frame(sn=MASK + 1, reliable=True, messages=())))
    scene.network.run(0.01)
    assert closed_with(stranger) is None
    scene.check_honest()


def test_numbers_that_jump_are_dropped_or_taken_and_the_link_stays(scene: Scene) -> None:
    stranger = scene.stranger()
    heard = scene.node.subscribe("k")
    for jump in (0, 0x07FF_FFFF, 0x0800_0001, 3, 0x0FFF_FFFF):
        scene.sn = (5 + jump) & MASK
        scene.say(stranger, Push(scope=0, suffix="k", body=Put(payload=b"x")))
    assert not stranger.closed
    assert 2 <= len(heard.samples) <= 4
    scene.check_honest()


@pytest.mark.parametrize("seed", range(8))
def test_random_bytes_cut_the_link_and_nobody_else_notices(scene: Scene, seed: int) -> None:
    stranger = scene.stranger()
    noise = Random(seed)
    for _ in range(50):
        stranger.say(noise.randbytes(noise.randint(1, 400)))
        scene.network.run(0.01)
    assert stranger.closed
    scene.check_honest()
    assert scene.node.sessions == {"one", "two"}


@given(st.data())
def test_any_messages_in_any_order_do_no_harm(data: st.DataObject) -> None:
    """Well-formed nonsense: every network message with every field."""
    scene = Scene(data.draw(st.sampled_from(["peer", "router"])))
    stranger = scene.stranger(role=data.draw(st.sampled_from([0, 1, 2])))
    scene.node.subscribe("**")
    scene.node.queryable("**", b"x")
    for _ in range(data.draw(st.integers(1, 6))):
        message = data.draw(messages(data.draw(st.sampled_from(NETWORK))))
        if not stranger.closed:
            scene.say(stranger, message, priority=data.draw(st.integers(0, 7)))
    scene.check_honest()


NETWORK = [
    spec
    for spec in specs("1.x")
    if spec.name in {"Push", "Request", "Response", "ResponseFinal", "Declare", "Interest", "Oam"}
]


def test_a_giant_train_is_given_up_at_the_limit_and_the_link_stays() -> None:
    scene = Scene(max_message=1 << 20)
    stranger = scene.stranger()
    tracemalloc.start()
    try:
        for number in range(200):
            stranger.say(
                write(
                    Fragment(
                        sn=(scene.sn + number) & MASK,
                        reliable=True,
                        first=number == 0,
                        more=True,
                        payload=bytes(60_000),
                    )
                )
            )
            scene.network.run(0.001)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    assert not stranger.closed
    scene.check_honest()


def test_trains_on_all_lanes_share_one_limit() -> None:
    scene = Scene(max_message=1 << 20)
    stranger = scene.stranger()
    neighbour = scene.node.node.by_zid[b"\x66"]
    for number in range(10):
        for priority in range(8):
            for reliable in (True, False):
                stranger.say(
                    write(
                        Fragment(
                            sn=scene.sn + number, reliable=reliable, priority=priority,
                            first=number == 0, more=True, payload=bytes(60_000),
                        )
                    )
                )  # fmt: skip
        scene.network.run(0.01)
        assert neighbour.unicast is not None
        assert neighbour.unicast.lanes.collecting <= 1 << 20
    scene.check_honest()


def test_a_stranger_that_asks_and_never_reads_is_given_up(scene: Scene) -> None:
    for number in range(200):
        scene.node.node.local.liveliness.token(f"token/{number}/" + "x" * 1000)
    stranger = scene.stranger(lease=1_000_000)
    stranger.link.conditions = type(stranger.link.conditions)(window=1000)
    neighbour = scene.node.node.by_zid[b"\x66"]
    assert neighbour.unicast is not None
    outbox = neighbour.unicast.outbox
    outbox.forced = 1 << 20
    stranger.end.under_way = 1 << 40  # it reads no more
    for id in range(1, 100):
        scene.say(stranger, Interest(mode=1, id=id, tokens=True))
        assert outbox.held < (1 << 20) + (1 << 18)
    assert outbox.overflowed
    scene.network.run(5.0)
    assert "node" in stranger.link.names
    assert scene.node.sessions == {"one", "two"}
    scene.check_honest()


def test_a_flood_of_questions_is_bounded(scene: Scene) -> None:
    scene.node.queryable("q")  # never answers
    stranger = scene.stranger()
    face = scene.node.node.by_zid[b"\x66"].face
    assert face is not None
    face.limits = replace(face.limits, queries=3)
    for id in range(1, 10):
        scene.say(
            stranger,
            Request(id=id, scope=0, suffix="q", timeout=1 << 40, qos=0x0D, body=Query()),
        )
    assert len(scene.node.node.queries.open) == 3
    answers = scene.honest[0].get("q", timeout=1.0)  # others have their own
    scene.network.run(1.5)
    assert answers.errors() == [b"Timeout"]
    scene.check_honest()


def test_a_flood_of_declarations_ends_the_session_and_leaves_nothing(scene: Scene) -> None:
    stranger = scene.stranger()
    face = scene.node.node.by_zid[b"\x66"].face
    assert face is not None
    face.account.limit = 1 << 20
    for id in range(1, 30):
        key = f"{'k' * 60_000}/{id}"
        stranger.say(
            write(
                Frame(
                    sn=scene.sn,
                    reliable=True,
                    messages=(Declare(body=DeclareSubscriber(id=id, scope=0, suffix=key)),),
                )
            )
        )
        scene.sn += 1
        scene.network.run(0.001)
        if stranger.closed:
            break
    assert stranger.closed
    assert len(scene.node.node.tables.tree) == 1  # the honest one
    scene.check_honest()


def test_what_makes_no_sense_is_ignored_and_the_link_stays(scene: Scene) -> None:
    stranger = scene.stranger()
    scene.say(
        stranger,
        Push(scope=99, body=Put(payload=b"unknown number")),
        Push(scope=0, suffix="not//a key", body=Put(payload=b"x")),
        Push(scope=0, suffix="", body=Put(payload=b"x")),
        Declare(body=DeclareToken(id=1, scope=77)),
        Oam(id=42, body=b"something new"),
    )
    assert not stranger.closed
    face = scene.node.node.by_zid[b"\x66"].face
    assert face is not None
    assert face.ignored == 4
    scene.check_honest()


def test_gossip_that_is_none_ends_the_session(scene: Scene) -> None:
    stranger = scene.stranger(role=1)
    scene.say(stranger, Oam(id=1, body=b"\xff\xff\xff"))
    assert stranger.closed
    scene.check_honest()


def test_a_stranger_that_falls_silent_is_cut_at_its_own_lease(scene: Scene) -> None:
    stranger = scene.stranger(lease=1500)
    scene.network.run(1.4)
    assert not stranger.closed
    scene.network.run(0.2)
    assert closed_with(stranger) is None


def test_a_lease_of_nothing_ends_at_once(scene: Scene) -> None:
    scene.network.stranger(scene.node)
    stranger = scene.stranger(lease=0)
    scene.network.run(0.1)
    assert stranger.closed
    scene.check_honest()
