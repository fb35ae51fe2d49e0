"""Whatever a stranger can fill has a bound, and whoever is served goes on being served."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xrce.weather import Pair
from tests.xrce.world import World
from zenlake import xrce
from zenlake.xrce.broker import KNOCKING_BYTES, MOST_STALE_DEADLINES, SILENT_FOR
from zenlake.xrce.conduit import HELD_BYTES
from zenlake.xrce.framing import frame
from zenlake.xrce.member import SPACES_MAX, TRANSACTION_BYTES
from zenlake.xrce.names import Name, matches
from zenlake.xrce.outside import DurableValues, Outside
from zenlake.xrce.session import CLOSED, MOVES_MAX
from zenlake.xrce.stores import Store, StoreRoom
from zenlake.xrce.tables import TABLE_BYTES

PULL = 2


def opening(pid: bytes, lease: int = 0) -> bytes:
    return xrce.write(xrce.Open(version=1, pid=pid, lease=lease, locators=()))


def test_a_stream_without_a_session_hoards_little() -> None:
    world = World()
    port = world.broker.connected("stranger", True)
    world.broker.received(port, b"\xff\xff\x03" + bytes(100), world.now)
    assert port.closing
    port = world.broker.connected("device", True)
    world.broker.received(port, frame(opening(b"a")), world.now)
    large = xrce.WriteData(reliable=True, sn=0, resource="/x", payload=bytes(KNOCKING_BYTES * 4))
    world.broker.received(port, frame(xrce.write(large)), world.now)
    assert not port.closing
    assert world.broker.counters.samples_in == 1


def test_who_only_says_open_makes_room_when_the_broker_is_full() -> None:
    world = World(sessions=3)
    alive = world.device("alive", lease=0)
    for pid in (b"x", b"y"):
        for _ in range(2):  # to say Open again is no sign of life
            world.stranger(opening(pid), port=world.broker.connected(pid, False))
    (answer,) = world.stranger(opening(b"early"))
    assert answer == xrce.Close(pid=b"brokerid", reason=3)
    world.run(SILENT_FOR + 1)
    world.device("one", lease=0)
    world.device("two", lease=0)
    (answer,) = world.stranger(opening(b"three"))
    assert answer == xrce.Close(pid=b"brokerid", reason=3)
    assert alive.open
    assert world.broker.counters.displaced == 2


def test_sessions_that_come_and_go_leave_no_deadlines_behind() -> None:
    world = World()
    for i in range(3 * MOST_STALE_DEADLINES):
        port = world.broker.connected(i, True)
        pid = b"%d" % i
        world.broker.received(port, frame(opening(pid, lease=600_000)), world.now)
        world.broker.flush(world.now)
        world.broker.lost(port)
    assert not world.broker.members
    assert len(world.broker._due) <= MOST_STALE_DEADLINES + 2
    assert len(world.broker._armed) == 0


def test_a_transaction_has_a_bound_for_its_bytes() -> None:
    world = World()
    a = world.device("a", stream=True, mtu=1 << 22, queue=1 << 24)
    value = bytes(TRANSACTION_BYTES // 2)
    told = [
        xrce.Resource(rid=2 * i, uri=f"/{i}", properties=(xrce.Property(id=99, value=value),))
        for i in range(1, 4)
    ]
    pending = [a.client.session.send(xrce.Declare(sn=0, declarations=(one,)), True) for one in told]
    result = a.client.commit([])
    world.run()
    assert all(pending)
    assert result.status == 3
    assert world.broker.members[b"a"].pending == {}
    again = a.client.commit([xrce.Resource(rid=2, uri="/2")])
    world.run()
    assert again.status == 0


def test_names_and_properties_of_a_session_have_a_bound() -> None:
    world = World()
    a = world.device("a", stream=True, mtu=1 << 22, queue=1 << 24)
    value = bytes(1 << 20)
    statuses = []
    for i in range(1, 10):
        told = xrce.Resource(
            rid=2 * i, uri=f"/{i}", properties=(xrce.Property(id=99, value=value),)
        )
        result = a.client.commit([told])
        world.run()
        statuses.append(result.status)
    assert statuses == [0] * 7 + [1, 1]
    tables = world.broker.members[b"a"].spaces[0]
    assert 0 < tables.bytes <= TABLE_BYTES
    a.commit([xrce.ForgetResource(rid=2 * i) for i in range(1, 10)])
    assert world.broker.members[b"a"].spaces[0].bytes == 0


def test_spaces_have_a_bound_before_they_are_committed_too() -> None:
    world = World()
    a = world.device("a")
    for space in range(2, SPACES_MAX + 2):
        declaration = xrce.Publisher(rid=2)
        a.client.session.send(xrce.Declare(sn=0, declarations=(declaration,)), True, space=space)
    world.run()
    assert a.open
    a.client.session.send(
        xrce.Declare(sn=0, declarations=(xrce.Publisher(rid=2),)), True, space=SPACES_MAX + 2
    )
    world.run()
    assert a.client.session.state == CLOSED
    assert a.client.session.reason == 3


def test_all_sessions_together_declare_a_bounded_number() -> None:
    world = World(all_declarations=3)
    a, b = world.device("a"), world.device("b")
    a.publisher("/x")
    a.subscriber("/y")
    b.publisher("/x")
    refused = b.client.commit([xrce.Subscriber(id=4, mode=1)])
    world.run()
    assert refused.status == 1
    assert world.broker.counters.refused_declarations == 1
    a.commit([xrce.ForgetPublisher(id=2)])
    b.commit([xrce.Subscriber(id=4, mode=1)])


def test_migrations_that_never_end_end_the_session() -> None:
    pair = Pair().opened()
    for last in range(MOVES_MAX + 1):
        told = xrce.Migrate(
            ocid=0, id=2, rch_last_sn=100 + last, bech_last_sn=0,
            markers=(xrce.Conduit(id=1, compact=True),),
        )  # fmt: skip
        assert pair.b.state != CLOSED
        pair.b.receive(xrce.write(told), pair.now)
    assert pair.b.state == CLOSED
    assert pair.b.reason == 3


def test_what_waits_for_an_old_conduit_has_a_bound_in_bytes() -> None:
    pair = Pair(near={"lossless": True}, far={"lossless": True}).opened()
    marker = (xrce.Conduit(id=1, compact=True),)
    told = xrce.Migrate(ocid=0, id=2, rch_last_sn=100, bech_last_sn=0, markers=marker)
    pair.b.receive(xrce.write(told), pair.now)
    for sn in range(5):
        assert pair.b.state != CLOSED
        data = xrce.StreamData(
            reliable=True, sn=sn, id=2, payload=bytes(HELD_BYTES // 4 - 64), markers=marker
        )
        pair.b.receive(xrce.write(data), pair.now)
    assert pair.b.state == CLOSED
    assert pair.b.reason == 3


def test_the_stores_of_a_session_share_their_room() -> None:
    world = World(session_store_bytes=1000)
    a, b = world.device("a"), world.device("b")
    kept = [b.subscriber(f"/{i}", PULL) for i in range(20)]
    for i in range(20):
        a.write(f"/{i}", bytes(100))
    member = world.broker.members[b"b"]
    assert member.store_room.used <= 1000
    assert sum(store.dropped for store in member.stores.values()) == 10
    b.commit([xrce.ForgetSubscriber(id=one.id) for one in kept])
    assert member.store_room.used == 0
    assert member.store_dropped == 10


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40)) | st.integers(0, 3)),
    st.integers(1, 3),
)
def test_a_store_gives_the_oldest_first_within_its_bounds(
    steps: list[tuple[str, int] | int], depth: int
) -> None:
    room = StoreRoom(150)
    store = Store(depth, 100, 3, room)
    model: list[tuple[str | None, bytes]] = []
    for n, step in enumerate(steps):
        if isinstance(step, int):
            assert [(one.path, one.payload) for one in store.take(step)] == model[:step]
            model = model[step:]
            continue
        path, size = step
        payload = bytes([n % 256]) * size
        store.put(path, payload)
        paths = {at for at, _ in model}
        if path not in paths and len(paths) >= 3:
            model.pop(0)
        if sum(at == path for at, _ in model) >= depth:
            model.remove(next(one for one in model if one[0] == path))
        model.append((path, payload))
        while sum(len(data) for _, data in model) > 100:
            model.pop(0)
        assert store.size == room.used == sum(len(data) for _, data in model)
    assert [(one.path, one.payload) for one in store.take()] == model
    assert store.count == room.used == 0


def test_last_values_have_a_bound_in_bytes() -> None:
    memory = DurableValues(size=100)
    memory.put("a", 1, bytes(60))
    memory.put("b", 1, bytes(60))
    assert memory.refused == 1
    memory.put("a", 1, bytes(30))
    memory.put("b", 1, bytes(60))
    assert sorted(path for path, _, _ in memory.matching("*")) == ["a", "b"]
    assert [path for path, _, _ in memory.matching("b")] == ["b"]
    assert list(memory.matching("c")) == []
    # What is too large now is not answered with what it was before.
    memory.put("a", 1, bytes(90))
    assert list(memory.matching("a")) == []
    assert memory.refused == 2


def test_a_declaration_at_once_that_the_outside_cannot_know_ends_the_session() -> None:
    class Narrow(Outside):
        def refuses(self, name: Name) -> int:
            return 5 if name.path == "bad" else 0

    world = World(Narrow())
    a = world.device("a")
    declared = (xrce.Resource(rid=2, uri="/bad"),)
    a.client.session.send(xrce.Declare(committed=True, sn=0, declarations=declared), True)
    world.run()
    assert a.client.session.state == CLOSED
    assert a.client.session.reason == 6


@pytest.mark.parametrize("seed", range(3))
def test_publishers_know_who_listens_whoever_comes_and_goes(seed: int) -> None:
    """Matching is told step by step; looking at all names anew must find the same."""
    random = Random(seed)
    world = World()
    devices = [world.device(name, lease=0) for name in "abc"]
    names = ["/x", "/y", "/x/y", "/*", "/**", "/x/*", "/?"]
    published = [one.publisher(name) for one in devices for name in names]
    heard = [{name: one.subscriber(name) for name in random.sample(names, 3)} for one in devices]
    for _ in range(60):
        at = random.randrange(3)
        name = random.choice(names)
        known = heard[at].pop(name, None)
        if known is None:
            heard[at][name] = devices[at].subscriber(name)
        else:
            devices[at].commit([xrce.ForgetSubscriber(id=known.id)])
        # A publisher has subscribers if a name of another device meets its own.
        expected = [
            any(
                matches(name[1:], other[1:])
                for theirs in range(3)
                if theirs != mine
                for other in heard[theirs]
            )
            for mine in range(3)
            for name in names
        ]
        assert [publication.matched for publication in published] == expected
    for device, subscribers in zip(devices, heard, strict=True):
        device.commit([xrce.ForgetSubscriber(id=one.id) for one in subscribers.values()])
    assert not any(one.matched for one in published)
