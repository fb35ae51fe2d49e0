from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xrce.world import World
from zenlake import xrce
from zenlake.testing.strategies import messages
from zenlake.xrce.client import DeclarationRefused
from zenlake.xrce.declared import PAGE
from zenlake.xrce.framing import frame
from zenlake.xrce.outside import DurableValues
from zenlake.xrce.stores import Store
from zenlake.xrce.tables import PULL

OPEN_A = bytes.fromhex("03010161" + "0000")


def test_twenty_bytes_are_enough_from_end_to_end() -> None:
    world = World(mtu=20, lease=10)
    tiny: dict[str, Any] = {"mtu": 20, "conduits": 1, "lease": 20, "bits": 7}
    sensor, display = world.device("sens", **tiny), world.device("disp", **tiny)
    publisher = sensor.publisher("", rid=2)
    display.subscriber("", rid=2)
    assert publisher.matched
    for i in range(200):  # the numbers of seven bits begin again
        assert sensor.put(publisher, b"%16d" % i)
    assert [int(payload) for _, payload in display.taken()] == list(range(200))
    sensor.put(publisher, b"a longer one, cut into slices of a few bytes each")
    assert display.taken() == [("", b"a longer one, cut into slices of a few bytes each")]
    world.run(30)
    assert sensor.open
    assert display.open
    assert max(sensor.largest, display.largest) <= 20


def test_a_sleepy_device_misses_nothing_that_fits_its_store() -> None:
    world = World()
    a, sleepy = world.device("a", lease=0), world.device("s", lease=0)
    publisher = a.publisher("/x")
    kept = sleepy.subscriber("/x", PULL)
    sent: list[bytes] = []
    for second in range(10):
        sleepy.asleep = True
        for i in range(16):
            sent.append(b"%d.%d" % (second, i))
            a.put(publisher, sent[-1])
            world.run(0.05)
        sleepy.asleep = False
        sleepy.client.pull(kept)
        world.run(0.05)
    assert [payload for _, payload in sleepy.taken()] == sent


def test_a_session_gets_a_sample_once_and_never_its_own() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    a.subscriber("/**")
    for name in ("/x", "/*", "/**"):
        b.subscriber(name)
    a.put(publisher, b"once")
    assert (a.taken(), b.taken()) == ([], [("x", b"once")])


def test_reliability_is_what_both_sides_want() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    loud, quiet = a.publisher("/loud"), a.publisher("/quiet", reliable=False)
    b.subscriber("/*")
    a.put(loud, b"1")
    a.put(quiet, b"2")
    found = [m for p in b.packets for m in xrce.read_packet(p) if isinstance(m, xrce.WriteData)]
    assert [(m.resource, m.reliable) for m in found] == [("/loud", True), ("/quiet", False)]


@pytest.mark.parametrize("style", ["zenoh://", "//", "/", ""])
def test_a_peer_is_answered_in_its_own_style(style: str) -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    b.subscriber(f"{style}house/*")
    a.write("/house/x", b"1")
    (found,) = [m for p in b.packets for m in xrce.read_packet(p) if isinstance(m, xrce.WriteData)]
    assert found.resource == f"{style}house/x"


def test_an_open_with_another_pid_on_the_same_link_is_refused() -> None:
    world = World()
    port = world.broker.connected("p", False)
    world.stranger(OPEN_A, port=port)
    (answer,) = world.stranger(bytes.fromhex("03010162" + "0000"), port=port)
    assert answer == xrce.Close(pid=b"brokerid", reason=5)
    assert list(world.broker.members) == [b"a"]


def test_a_new_connection_of_the_same_pid_replaces_the_old_one() -> None:
    world = World()
    old = world.broker.connected("old", True)
    world.stranger(OPEN_A, True, old)
    new = world.broker.connected("new", True)
    world.stranger(OPEN_A, True, new)
    assert old.closing
    assert world.broker.members[b"a"] is new.member


def test_a_broker_is_full_at_its_bound() -> None:
    world = World(sessions=2)
    world.device("a")
    world.device("b")
    (answer,) = world.stranger(bytes.fromhex("03010163" + "0000"))
    assert answer == xrce.Close(pid=b"brokerid", reason=3)
    assert world.broker.counters.refused == 1


def test_declarations_transactions_and_stores_have_bounds() -> None:
    world = World(declarations=10)
    a = world.device("a")
    told = [xrce.Resource(rid=2 * i, uri=f"/{i}") for i in range(1, 12)]
    pending = a.client.commit(list(told))
    world.run()
    assert (pending.status, pending.failed) == (1, 22)
    many = a.client.commit([xrce.ForgetPublisher(id=2)] * 2000)
    world.run()
    assert many.status == 3
    store = Store(depth=2, limit=100, resources=3)
    for i in range(50):
        store.put(f"{i % 5}", bytes(20))
    assert store.size <= 100
    assert store.count <= 6
    assert store.dropped == 50 - store.count
    memory = DurableValues(limit=1)
    memory.put("a", 1, b"")
    memory.put("b", 1, b"")
    assert memory.refused == 1


@given(st.lists(st.binary(max_size=60) | messages(PAGE).map(xrce.write), max_size=6), st.booleans())
def test_whatever_strangers_send_the_others_are_served(packets: list[bytes], stream: bool) -> None:
    world = World(declarations=16, room=4096)
    a, b = world.device("good"), world.device("fine", stream=True)
    publisher = a.publisher("/x")
    b.subscriber("/x")
    mad = world.broker.connected("mad", stream)
    opened = world.broker.connected("open", stream)
    world.broker.received(opened, frame(OPEN_A) if stream else OPEN_A, world.now)
    for packet in packets:
        for port in (mad, opened):
            data = frame(packet) if stream and packet else packet
            world.broker.received(port, data, world.now)
            world.run()
            for out in port.out:
                xrce.read_packet(next(iter(xrce.Deframer().feed(out))) if stream else out)
            port.out.clear()
    world.run(0.1)
    assert a.put(publisher, b"served")
    assert ("x", b"served") in b.taken()


def test_a_thousand_sessions_some_of_them_mad() -> None:
    world = World()
    random = Random(7)
    for i in range(1000):
        port = world.broker.connected(i, False)
        pid = b"%d" % i
        told = xrce.Open(version=1, pid=pid, lease=0, locators=())
        world.broker.received(port, xrce.write(told), world.now)
        if i % 10 == 0:
            for _ in range(20):
                world.broker.received(port, random.randbytes(random.randrange(40)), world.now)
    a, b = world.device("a", lease=0), world.device("b", lease=0)
    publisher = a.publisher("/x")
    b.subscriber("/x")
    assert a.put(publisher, b"through")
    assert b.taken() == [("x", b"through")]
    assert len(world.broker.members) >= 900
    assert world.broker.counters.malformed > 0


def test_an_eager_peer_need_not_commit() -> None:
    from zenlake.xrce.options import Habits

    world = World(habits=Habits(eager=True))
    a, b = world.device("a"), world.device("b")
    b.subscriber("/x")
    _, told = a.client.resource("/x")
    made, more = a.client.publisher(2)
    a.client.session.send(xrce.Declare(sn=0, declarations=(*told, *more)), True)
    world.run()
    assert made.matched


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "declared",
    [
        xrce.Publisher(rid=2, properties=(xrce.Property(id=6, value=b"\xc4"),)),
        xrce.Subscriber(id=2, mode=1, properties=(xrce.Property(id=6, value=b""),)),
    ],
)
def test_a_property_that_is_no_number_refuses_its_declaration_alone(
    stream: bool, declared: Any
) -> None:
    world = World()
    device = world.device("a", stream)
    pending = device.client.commit([declared])
    world.run()
    assert pending.done
    with pytest.raises(DeclarationRefused):
        pending.check()
    assert device.open
    device.subscriber("/x")
