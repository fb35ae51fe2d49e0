"""What one neighbour may have: each limit, who is named for it, and that others go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise

import pytest

from tests.hostile.test_peers import Scene
from zenlake.node.incidents import BUSY, LIMIT, SLOW
from zenlake.node.inspection.shares import node_shares, shares, shares_of
from zenlake.node.node import Node
from zenlake.routing.announce import MANY_ALIKE
from zenlake.routing.face import Face
from zenlake.routing.interests import MANY_WAIT, SLICE
from zenlake.routing.limits import ResourceLimits
from zenlake.routing.mesh import MANY_DOUBTED
from zenlake.routing.resources import TOKEN
from zenlake.testing.network import Network, Stranger
from zenlake.transport.turn import Turn
from zenlake.transport.unicast import LOOK
from zenlake.wire import (
    Declare,
    DeclareFinal,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Fragment,
    Frame,
    InitAck,
    Interest,
    LinkState,
    Message,
    OpenSyn,
    Push,
    Put,
    Query,
    Request,
    UndeclareSubscriber,
    read_batch,
    write,
)
from zenlake.wire.link_state import write_entries

ROUTER = 0


def scene_with(**limits: int) -> Scene:
    """Two honest clients of a router, whose limits are these."""
    return Scene("router", limits=replace(ResourceLimits(), **limits))


def subscriber(id: int, key: str) -> Message:
    return Declare(body=DeclareSubscriber(id=id, scope=0, suffix=key))


def token(id: int) -> Message:
    return Declare(body=DeclareToken(id=id, scope=0, suffix=f"k/{id}"))


def declared(stranger: Stranger) -> list[str]:
    """The keys of the tokens that a stranger is told of, and the ends of what it asked for."""
    words: list[str] = []
    for batch in stranger.heard():
        for frame in read_batch(batch):
            for message in frame.messages if isinstance(frame, Frame) else ():
                if isinstance(message, Declare) and isinstance(message.body, DeclareToken):
                    words.append(message.body.suffix)
                elif isinstance(message, Declare) and isinstance(message.body, DeclareFinal):
                    words.append(f"final {message.interest_id}")
    return words


def interest(id: int, key: str, mode: int = 2, aggregate: bool = True) -> Message:
    return Interest(
        mode=mode, id=id, subscribers=True, restricted=True, aggregate=aggregate, suffix=key
    )


def named(node: Node, kind: str = LIMIT) -> list[str]:
    """What operators are told of a kind of event."""
    return [event.reason for event in node.incidents.newest() if event.kind == kind]


def say_all(scene: Scene, stranger: Stranger, messages: Iterator[Message]) -> None:
    for message in messages:
        scene.say(stranger, message)
        if stranger.closed:
            return


@pytest.mark.parametrize(
    ("limits", "messages", "key"),
    [
        ({"declarations": 20}, (subscriber(n, f"k/{n}") for n in count(1)), "declarations"),
        (
            {"declarations": 20},
            (Declare(body=DeclareToken(id=n, scope=0, suffix=f"k/{n}")) for n in count(1)),
            "declarations",
        ),
        ({"interests": 20}, (interest(n, f"k/{n}") for n in count(1)), "interests"),
        ({"memory": 40_000}, (subscriber(n, f"k/{n}") for n in count(1)), "memory"),
        ({"all_memory": 40_000}, (subscriber(n, f"k/{n}") for n in count(1)), "memory"),
    ],
)
def test_who_declares_more_than_its_share_is_cut_and_named(
    limits: dict[str, int], messages: Iterator[Message], key: str
) -> None:
    scene = scene_with(**limits)
    stranger = scene.stranger()
    say_all(scene, stranger, messages)
    assert stranger.closed
    assert any(f"limits/session/{key}" in reason for reason in named(scene.node.node))
    assert scene.node.node.rejections.counts["limit"] == 1
    scene.check_honest()
    assert scene.node.node.memory.used < 10_000  # it was given back


def test_a_key_of_many_chunks_costs_what_it_takes_and_is_ignored_if_it_has_too_many() -> None:
    scene = scene_with(key_chunks=256)
    stranger = scene.stranger()
    face = scene.node.node.by_zid[b"\x66"].face
    assert face is not None
    scene.say(stranger, subscriber(1, "a" + "/a" * 255))
    assert face.account.used > 256 * 100
    before = face.account.used
    scene.say(stranger, subscriber(2, "a" + "/a" * 256), subscriber(3, "short"))
    assert sorted(face.declared[0]) == [1, 3]
    assert face.account.used < before + 5000
    scene.check_honest()


def test_when_all_have_much_those_are_cut_who_have_most() -> None:
    scene = scene_with(all_memory=200_000)
    greedy, modest = scene.stranger(zid=b"\x66"), scene.stranger(zid=b"\x67")
    scene.sn = 5
    for n in range(1, 200):
        scene.say(greedy, subscriber(n, f"greedy/{n}"))
        if greedy.closed:
            break
    assert greedy.closed
    scene.sn = 5
    for n in range(1, 20):
        scene.say(modest, subscriber(n, f"modest/{n}"))
    assert not modest.closed


def test_a_session_with_many_declarations_is_forgotten_in_slices() -> None:
    scene = scene_with()
    stranger = scene.stranger()
    many = 5 * SLICE
    for n in range(1, many, 100):
        scene.say(stranger, *(subscriber(id, f"k/{id}") for id in range(n, min(n + 100, many))))
    node = scene.node.node
    assert len(node.tables.tree) > many - 10
    node.lost(node.by_zid[b"\x66"], None, scene.network.now)
    left = len(node.tables.tree)
    assert left > many - 10 - SLICE  # one slice at once
    assert node.deadline <= scene.network.now
    node.tick(scene.network.now)
    assert left - SLICE <= len(node.tables.tree) < left
    scene.check_honest()  # and meanwhile nobody else waits for it
    scene.network.run(0.1)
    assert len(node.tables.tree) == 1
    assert node.memory.used < 5000


@pytest.mark.parametrize("mode", ["peer", "router"])
def test_who_joins_is_told_everything_in_slices_and_what_changes_meanwhile(mode: str) -> None:
    network = Network()
    one, two, three = (network.node(name, mode) for name in ("one", "two", "three"))
    held = {f"k/{n}": one.subscribe(f"k/{n}") for n in range(5 * SLICE)}
    network.connect(two, one)
    network.connect(three, one)
    gone: set[str] = set()
    slices: dict[str, list[int]] = {"two": [], "three": []}
    while network.step() and network.now < 1.0:
        for other in (two, three):
            known = len(other.node.tables.tree)
            if not slices[other.name] or slices[other.name][-1] != known:
                slices[other.name].append(known)
        if not gone and 0 < len(two.node.tables.tree) < 3 * SLICE:
            # Some that it knows already and some that it does not know yet.
            gone = {f"k/{n}" for n in range(0, 5 * SLICE, 7)}
            for key in gone:
                subscriber = held[key].subscriber
                assert subscriber is not None
                one.node.local.unsubscribe(subscriber)
            held["new"] = one.subscribe("new")
            network.flush()
    expected = set(held) - gone
    for other in (two, three):
        assert {entry.key for entry in other.node.tables.tree.entries()} == expected
        assert other.node.sessions.settled()
        told = slices[other.name]
        assert len(told) > 5
        assert max(after - before for before, after in pairwise(told)) <= 2 * SLICE
    assert one.node.deadline > network.now


def crowded(slices: int) -> tuple[Scene, list[Stranger], list[Face]]:
    """A router with so many slices of tokens, and two strangers who have not asked for them."""
    scene = scene_with()
    holder, *askers = (scene.stranger(zid=bytes([n])) for n in (0x66, 0x67, 0x68))
    for n in range(0, slices * SLICE, SLICE):
        scene.say(holder, *(token(id) for id in range(n + 1, n + SLICE + 1)))
    faces = [scene.node.node.by_zid[bytes([n])].face for n in (0x67, 0x68)]
    return scene, askers, [face for face in faces if face is not None]


@pytest.mark.parametrize("mode", [1, 3])
def test_much_is_told_in_slices_each_once_and_then_the_end(mode: int) -> None:
    scene, (greedy, modest), faces = crowded(5)
    tables = scene.node.node.tables
    for face, id in [*((faces[0], n) for n in range(1, 11)), (faces[1], 1)]:
        asked = Interest(mode=mode, id=id, tokens=True, restricted=True, suffix="k/**")
        tables.interest(face, asked, scene.network.now)
    assert tables.deadline() == 0.0
    turns: list[int] = []
    while tables.telling:
        turns.append(next(iter(tables.telling)))
        tables.tell_more()
    # Who asks ten times has one turn for each of another's.
    assert turns[:10] == [face.id for face in faces] * 5
    assert turns[10:] == [faces[0].id] * 45
    scene.network.run(0.1)
    keys = sorted(f"k/{n}" for n in range(1, 5 * SLICE + 1))
    told = declared(modest)
    assert (sorted(told[:-1]), told[-1]) == (keys, "final 1")
    everything = declared(greedy)
    assert [each for each in everything if each.startswith("final")] == [
        f"final {n}" for n in range(1, 11)
    ]
    assert len(everything) == 10 * (len(keys) + 1)
    again = Interest(mode=mode, id=2, tokens=True, restricted=True, suffix="k/**")
    modest.say(write(Frame(sn=5, reliable=True, messages=(again,))))
    scene.network.run(0.1)
    assert declared(modest)[-1] == "final 2"
    scene.check_honest()


def test_who_withdraws_or_leaves_while_it_is_told_is_told_no_more() -> None:
    scene, (fickle, gone), faces = crowded(5)
    node = scene.node.node
    for face in faces:
        node.tables.interest(face, Interest(mode=3, id=1, tokens=True), scene.network.now)
    node.tables.tell_more()
    node.tables.interest(faces[0], Interest(mode=0, id=1), scene.network.now)
    node.lost(node.by_zid[b"\x68"], None, scene.network.now)
    scene.network.run(0.1)
    assert node.tables.telling == {}
    assert 0 < len(declared(fickle)) <= SLICE
    assert declared(gone) == []
    scene.check_honest()


def test_a_token_that_comes_or_goes_while_others_are_told_is_told_as_it_is_at_the_end() -> None:
    scene, (asker, _), faces = crowded(3)
    tables = scene.node.node.tables
    tables.interest(faces[0], Interest(mode=3, id=1, tokens=True), scene.network.now)
    tables.tell_more()
    holder = scene.node.node.by_zid[b"\x66"].face
    assert holder is not None
    for n in (1, SLICE, 3 * SLICE):
        tables.undeclare(holder, TOKEN, n)
    tables.declare(holder, TOKEN, 5000, "k/5000")
    scene.node.node.wake_by(tables.deadline())
    scene.network.run(0.1)
    alive = set(range(1, 3 * SLICE + 1)) - {1, SLICE, 3 * SLICE} | {5000}
    assert set(faces[0].announced[TOKEN]) == {f"k/{n}" for n in alive}
    assert declared(asker)[-1] == "final 1"


def test_an_aggregate_interest_is_counted_once_and_not_with_each_declaration() -> None:
    scene = scene_with()
    stranger = scene.stranger()
    scene.say(stranger, *(subscriber(n, f"k/{n}") for n in range(1, 200)))
    scene.say(stranger, *(interest(n, "k/**") for n in range(1, 200)))
    tables = scene.node.node.tables
    assert tables.counted == 1  # for all of them together
    stranger.heard()
    heard = scene.honest[0].subscribe("k/here")
    scene.network.run(0.1)
    scene.say(stranger, *(subscriber(1000 + n, f"k/more/{n}") for n in range(10)))
    assert tables.counted == 1  # not one of them looked through the keys again
    [known] = tables.aggregating[0].intersecting("k/x")
    [aggregate] = known.value.values()
    assert (aggregate.count, aggregate.announced, len(aggregate.interests)) == (1, 1, 199)
    assert all(one.announced[0] for one in aggregate.interests.values())
    assert heard.values() == []


def test_a_turn_ends_in_the_middle_of_a_frame_and_the_rest_comes_in_order() -> None:
    scene = scene_with()
    stranger = scene.stranger()
    node = scene.node.node
    node.turn = Turn(10, 1.0, lambda: 0.0)
    scene.say(stranger, *(subscriber(n, f"k/{n}") for n in range(1, 26)))
    neighbour = node.by_zid[b"\x66"]
    face, unicast = neighbour.face, neighbour.unicast
    assert face is not None
    assert unicast is not None
    turns = [face.entities]
    while unicast.behind:
        node.go_on(neighbour, scene.network.now)
        turns.append(face.entities)
    assert turns == [10, 20, 25]
    assert list(face.declared[0].values()) == [f"k/{n}" for n in range(1, 26)]


def test_a_turn_is_over_when_its_time_is() -> None:
    scene = scene_with()
    stranger = scene.stranger()
    node = scene.node.node
    ticks = count()
    node.turn = Turn(1000, 3.0, lambda: float(next(ticks)))
    scene.say(stranger, *(subscriber(n, f"k/{n}") for n in range(1, 26)))
    face = node.by_zid[b"\x66"].face
    assert face is not None
    assert 1 <= face.entities < 6


def test_a_turn_ends_between_samples_of_one_frame_and_the_rest_comes_in_order() -> None:
    scene = scene_with()
    stranger = scene.stranger()
    node = scene.node.node
    heard = scene.node.subscribe("k/**")
    samples = [Push(scope=0, suffix=f"k/{n}", body=Put(payload=b"%d" % n)) for n in range(300)]
    scene.say(stranger, *samples)  # their heads are known from now on
    assert len(heard.values()) == 300
    ticks = count()
    node.turn = Turn(1000, 2.0, lambda: float(next(ticks)))
    scene.say(stranger, *samples)
    neighbour = node.by_zid[b"\x66"]
    unicast = neighbour.unicast
    assert unicast is not None
    turns = [300, len(heard.values())]
    while unicast.behind:
        node.go_on(neighbour, scene.network.now)
        turns.append(len(heard.values()))
    assert turns[-1] == 600
    assert all(0 < more - less <= 2 * LOOK for less, more in pairwise(turns))
    assert heard.values()[300:] == heard.values()[:300]


def test_declarations_have_a_third_of_a_turn() -> None:
    ticks = count()
    turn = Turn(1000, 9.0, lambda: float(next(ticks)))
    for declaring, handled in ((True, 3), (False, 9)):
        turn.begin()
        assert [turn.spend(declaring) for _ in range(handled)] == [False] * (handled - 1) + [True]
        assert (turn.spent, turn.declarations) == (handled, handled if declaring else 0)


def test_who_uses_up_its_turns_while_others_are_served_is_named() -> None:
    scene = scene_with()
    stranger = scene.stranger()
    node = scene.node.node
    seconds = 0.0

    def clock() -> float:
        nonlocal seconds
        seconds += 0.03
        return seconds

    node.turn = Turn(1000, 0.1, clock)
    neighbour = node.by_zid[b"\x66"]
    for turn in range(30):
        scene.say(stranger, *(subscriber(n, f"k/{turn}/{n}") for n in range(1, 4)))
        while neighbour.unicast is not None and neighbour.unicast.behind:
            node.go_on(neighbour, scene.network.now)
        for one in scene.honest:
            one.put("others/are/heard", b"")
        scene.check_honest()
    (event,) = (one for one in node.incidents.newest() if one.kind == BUSY)
    assert event.peer == neighbour.host
    assert "declarations" in event.reason
    assert not stranger.closed


def test_what_comes_when_a_session_is_over_takes_no_turn() -> None:
    scene = scene_with()
    scene.stranger()
    node = scene.node.node
    ticks = count()
    node.turn = Turn(1000, 2.0, lambda: float(next(ticks)))
    neighbour = node.by_zid[b"\x66"]
    assert neighbour.unicast is not None
    neighbour.unicast.close(scene.network.now)
    clock = next(ticks)
    for _ in range(50):
        node.receive(neighbour, bytes(100), scene.network.now)
    assert next(ticks) == clock + 1  # nobody looked at it
    assert node.incidents.newest() == []
    assert (node.brief, neighbour.brief) == (0, 0)


def test_who_begins_messages_that_take_a_quarter_of_its_memory_is_named_before_it_is_refused() -> (
    None
):
    scene = scene_with(fragments=1 << 20)
    stranger = scene.stranger()
    for piece in range(9):
        assert bool(named(scene.node.node)) == (piece > 8), piece
        fragment = Fragment(
            reliable=True, more=True, sn=scene.sn + piece, first=not piece, payload=bytes(1 << 15)
        )
        stranger.say(write(fragment))
        scene.network.run(0.01)
    (reason,) = named(scene.node.node)
    assert "limits/session/fragments" in reason
    assert not stranger.closed
    scene.check_honest()


def test_who_shows_the_same_interest_hundreds_of_times_is_named() -> None:
    scene = scene_with()
    stranger = scene.stranger()
    say_all(scene, stranger, (interest(n, "k/**") for n in range(1, MANY_ALIKE + 1)))
    assert named(scene.node.node) == []
    scene.say(stranger, interest(MANY_ALIKE + 1, "k/**"))
    assert "interests in one key" in named(scene.node.node)[0]
    scene.check_honest()


def test_who_does_not_read_is_cut_when_too_much_waits_and_its_batches_are_let_go() -> None:
    scene = scene_with(waiting=1 << 20)
    deaf, flapping = scene.stranger(zid=b"\x66"), scene.stranger(zid=b"\x67")
    node = scene.node.node
    neighbour = node.by_zid[b"\x66"]
    assert neighbour.unicast is not None
    outbox = neighbour.unicast.outbox
    scene.sn = 5
    scene.say(deaf, interest(1, "**", 3, False))
    # Nobody empties its outbox any more: the network is full.
    scene.node.ends = [end for end in scene.node.ends if end.neighbour is not neighbour]
    scene.sn = 5
    most = 0
    for n in range(200):
        key = f"{n}/" + "k" * 20_000
        scene.say(flapping, subscriber(1, key), Declare(body=UndeclareSubscriber(id=1)))
        most = max(most, node.waiting.used)
        if outbox.overflowed:
            break
    assert outbox.overflowed
    assert most < (1 << 20) + 200_000
    scene.network.run(0.1)
    assert b"\x66" not in node.by_zid
    assert any("limits/session/waiting" in reason for reason in named(node, SLOW))
    assert node.waiting.used < 100_000
    scene.check_honest()


def test_who_sends_one_message_without_end_is_named_and_counted() -> None:
    scene = Scene("router", max_message=50_000)
    stranger = scene.stranger()
    node = scene.node.node
    for sn in range(4):
        piece = Fragment(reliable=True, more=True, sn=5 + sn, first=not sn, payload=bytes(30_000))
        stranger.say(write(piece))
    scene.network.run(0.01)
    assert node.fragments.used < 50_000
    assert any("max_message_size" in reason for reason in named(node))
    assert node.rejections.counts["limit"] >= 1
    scene.check_honest()


def test_who_asks_again_and_again_for_everything_is_named() -> None:
    scene, (greedy, modest), _ = crowded(2)
    everything = [
        Interest(mode=3, id=id, tokens=True, restricted=True, suffix="k/**") for id in range(1, 30)
    ]
    modest.say(write(Frame(sn=5, reliable=True, messages=tuple(everything[:MANY_WAIT]))))
    scene.network.run(0.1)
    assert not named(scene.node.node)
    greedy.say(write(Frame(sn=5, reliable=True, messages=tuple(everything))))
    scene.network.run(0.1)
    (reason,) = named(scene.node.node)
    assert "are answered in turn" in reason
    assert len([word for word in declared(greedy) if word.startswith("final")]) == 29
    scene.check_honest()


def test_unfinished_fragments_of_all_are_bounded_and_freed_with_their_session() -> None:
    scene = scene_with(all_fragments=100_000)
    stranger = scene.stranger()
    node = scene.node.node

    def piece(first: bool) -> None:
        stranger.say(
            write(
                Fragment(reliable=True, more=True, sn=scene.sn, first=first, payload=bytes(30_000))
            )
        )
        scene.sn += 1
        scene.network.run(0.01)

    for number in range(3):
        piece(number == 0)
    assert node.fragments.used == 90_000
    neighbour = node.by_zid[b"\x66"]
    assert neighbour.unicast is not None
    lanes = neighbour.unicast.lanes
    piece(False)
    assert node.fragments.used == lanes.collecting == 0
    assert any("limits/session/fragments" in reason for reason in named(node))
    piece(True)
    assert node.fragments.used == 30_000
    node.lost(neighbour, None, scene.network.now)
    assert node.fragments.used == 0
    assert all(not lane.parts for lane in lanes.reassemblies)
    scene.check_honest()


def test_queries_in_flight_are_bounded_by_what_they_ask() -> None:
    scene = scene_with(questions=40)
    node = scene.node.node
    for zid in (b"\x70", b"\x71", b"\x72", b"\x73"):
        silent = scene.stranger(zid=zid)
        scene.sn = 5
        scene.say(silent, Declare(body=DeclareQueryable(id=1, scope=0, suffix="q")))
    asking = scene.stranger()
    scene.sn = 5
    for id in range(1, 50):
        scene.say(asking, Request(id=id, scope=0, suffix="q", target=1, timeout=5000, body=Query()))
    face = node.by_zid[b"\x66"].face
    assert face is not None
    assert (len(face.asked), face.questions) == (10, 40)
    assert len(node.queries.unanswered) == 10  # one deadline a query, not one a branch
    assert any("limits/session/questions" in reason for reason in named(node))
    scene.network.run(6.0)
    assert (len(face.asked), face.questions) == (0, 0)
    scene.check_honest()


def entries_of(many: int, degree: int) -> list[LinkState]:
    return [
        LinkState(
            psid=n,
            sn=2,
            zid=b"\x66" if n == 0 else bytes((7, n & 255, n >> 8, 1)),
            whatami=1,
            links=tuple((n + k) % many for k in range(1, degree + 1)),
        )
        for n in range(many)
    ]


def test_a_map_with_too_many_links_is_not_taken() -> None:
    scene = scene_with(links=1000)
    stranger = scene.stranger(role=ROUTER)
    scene.say(stranger, write_entries(entries_of(100, 5)))
    assert not stranger.closed
    node = scene.node.node
    assert node.mesh is not None
    assert len(node.mesh.state.nodes) == 101
    scene.say(stranger, write_entries([replace_sn(entry) for entry in entries_of(100, 20)]))
    assert stranger.closed
    assert any("limits/node/links" in reason for reason in named(node))
    scene.network.run(1.0)
    assert len(node.mesh.state.nodes) == 1
    scene.check_honest()


def replace_sn(entry: LinkState) -> LinkState:
    return LinkState(
        psid=entry.psid, sn=entry.sn + 1, zid=entry.zid, whatami=entry.whatami, links=entry.links
    )


def test_a_router_pays_for_what_it_says_in_the_name_of_another() -> None:
    scene = scene_with(declarations=50, routers=1)
    honest = scene.network.node("other", "router", connect=["node"])
    scene.network.settle()
    heard = honest.subscribe("honest/there")
    scene.network.settle()
    stranger = scene.stranger(role=ROUTER)
    entries = [
        LinkState(psid=0, sn=2, zid=b"\x66", whatami=1, links=(1,)),
        LinkState(psid=1, sn=1, zid=honest.node.zid, whatami=1, links=()),
    ]
    scene.say(stranger, write_entries(entries))
    node = scene.node.node
    assert node.mesh is not None
    for n in range(200):
        said = DeclareSubscriber(id=0, scope=0, suffix=f"storm/{n}")
        scene.say(stranger, Declare(node_id=1, body=said))
        if stranger.closed:
            break
    scene.network.run(1.0)
    assert "node" in honest.sessions  # the honest one is not cut for it
    assert len(node.mesh.routers[honest.node.zid].held[0]) == 1  # nor believed to have said so
    scene.honest[0].put("honest/there", b"still")
    scene.network.run(0.1)
    assert heard.values() == [("honest/there", b"still")]


def test_who_says_much_in_the_name_of_a_router_behind_another_is_named() -> None:
    scene = scene_with()
    honest = scene.network.node("other", "router", connect=["node"])
    scene.network.settle()
    stranger = scene.stranger(role=ROUTER)
    entries = [
        LinkState(psid=0, sn=2, zid=b"\x66", whatami=1, links=(1,)),
        LinkState(psid=1, sn=1, zid=honest.node.zid, whatami=1, links=()),
    ]
    scene.say(stranger, write_entries(entries))
    words = [
        Declare(node_id=1, body=DeclareSubscriber(id=0, scope=0, suffix=f"storm/{n}"))
        for n in range(MANY_DOUBTED + 1)
    ]
    for start in range(0, len(words), 512):
        scene.say(stranger, *words[start : start + 512])
        assert bool(named(scene.node.node)) == (start + 512 > MANY_DOUBTED)
    assert "behind others" in named(scene.node.node)[0]
    scene.check_honest()


def test_a_crowd_that_says_nothing_gives_way_to_newcomers() -> None:
    scene = scene_with(openings=10)
    silent = [scene.network.stranger(scene.node) for _ in range(10)]
    scene.network.run(0.01)
    sessions = scene.node.node.sessions
    for neighbour in sessions.opening:
        neighbour.dst = "tcp/192.0.2.66:4000"
    assert sessions.admission.may_accept("tcp/192.0.2.66:4001")
    scene.network.run(0.01)
    assert [one.closed for one in silent] == [True] + [False] * 9  # the one that waited longest
    assert sessions.admission.may_accept("tcp/192.0.2.7:1")
    assert len(sessions.opening) == 9
    assert scene.node.node.rejections.counts["pending"] == 1


def test_a_second_link_of_one_node_is_no_event_and_one_from_elsewhere_under_its_id_is() -> None:
    scene = scene_with()
    node = scene.node.node
    from_address(scene, 0x66, "192.0.2.66")
    assert from_address(scene, 0x66, "192.0.2.66").closed
    assert node.incidents.newest() == []
    assert from_address(scene, 0x66, "192.0.2.7").closed
    (event,) = node.incidents.newest()
    assert "this id is connected already" in event.reason
    assert b"\x66" in node.by_zid


def from_address(scene: Scene, zid: int, address: str) -> Stranger:
    """Somebody at an address begins a session, and opens it if that is allowed."""
    stranger = scene.network.stranger(scene.node, address=address)
    stranger.say(bytes((0x81, 0x09, 0x02, zid, 0x81, 0x27, 0x01)))
    scene.network.run(0.01)
    said = [message for batch in stranger.heard() for message in read_batch(batch)]
    if isinstance(said[0], InitAck):
        stranger.say(write(OpenSyn(lease=10_000, initial_sn=5, cookie=said[0].cookie)))
        scene.network.run(0.01)
    return stranger


def test_an_address_has_so_many_sessions_and_the_next_is_refused_and_named() -> None:
    scene = scene_with(sessions=2)
    node = scene.node.node
    first, second = (from_address(scene, n, f"192.0.2.66:{n}") for n in (0x61, 0x62))
    extra = from_address(scene, 0x63, "192.0.2.66:99")
    assert [first.closed, second.closed, extra.closed] == [False, False, True]
    assert any("limits/address/sessions" in reason for reason in named(node))
    other = from_address(scene, 0x64, "192.0.2.7:61")
    assert not other.closed  # whoever shares nothing with them is not held to their number
    first.hang_up()
    scene.network.run(0.01)
    assert not from_address(scene, 0x65, "192.0.2.66:100").closed  # there is room again
    assert from_address(scene, 0x66, "192.0.2.66:101").closed
    scene.check_honest()


def test_an_address_that_must_wait_is_one_event_however_often_it_comes() -> None:
    scene = scene_with()
    node = scene.node.node
    for _ in range(12):
        node.brake.failed("192.0.2.66", "anna", node.moment())
    for _ in range(4):
        assert not node.sessions.admission.may_accept("tcp/192.0.2.66:4001")
        scene.network.run(3.0)  # less to wait each time
    [event] = [event for event in node.incidents.newest() if event.kind == "login"]
    assert (event.peer, event.count) == ("192.0.2.66", 4)


def test_an_operator_sees_how_near_each_session_is() -> None:
    scene = scene_with(declarations=40)
    stranger = scene.stranger()
    scene.say(stranger, *(subscriber(n, f"k/{n}") for n in range(1, 31)))
    node = scene.node.node
    of_it = {share.name: share for share in shares_of(node.by_zid[b"\x66"])}
    assert (of_it["declarations"].used, of_it["declarations"].limit) == (30, 40)
    assert of_it["memory"].used > 30_000
    page = shares(node)
    rows = page["sessions"]
    assert isinstance(rows, list)
    assert rows[0]["peer"] == "66"
    assert rows[0]["nearest"] == {"limit": "declarations", "part": 0.75}
    assert {share.name for share in node_shares(node)} >= {"memory", "waiting", "fragments"}
