"""One test for each requirement of the paper's conformance section, named by module."""

from __future__ import annotations

import pytest

from tests.xrce.test_group import PEER
from tests.xrce.weather import Pair, Weather, payloads
from tests.xrce.world import World
from zenlake import xrce
from zenlake.wire.cursor import Reader
from zenlake.xrce.client import Client, DeclarationRefused
from zenlake.xrce.conformance import REQUIREMENTS
from zenlake.xrce.framing import UNBOUNDED
from zenlake.xrce.group import Group, heard
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.properties import COMMIT_MODE, number
from zenlake.xrce.session import CLOSED, OPEN
from zenlake.xrce.tables import PERIODIC_PULL, PERIODIC_PUSH, PULL


def test_every_requirement_has_its_test() -> None:
    assert [one.test for one in REQUIREMENTS if one.test not in globals()] == []


# --------------------------------------------------------------------------------------- Core


def test_core_open() -> None:
    pair = Pair(Weather(loss=1.0))
    pair.run(2.5)
    assert [packet[0] & 0x1F for _, packet in pair.packets] == [3, 3, 3]
    pair.weather.loss = 0.0
    pair.opened()


def test_core_accept() -> None:
    world = World()
    told = bytes.fromhex("03010161" + "0000")
    first = world.stranger(told)
    assert first[0] == xrce.Accept(open_pid=b"a", accept_pid=b"brokerid", lease=100)
    assert world.stranger(told)[0] == first[0]
    assert list(world.broker.members) == [b"a"]


def test_core_close() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    b.subscriber("/x")
    assert publisher.matched
    b.client.session.close(world.now)
    world.run()
    assert b.client.session.state == CLOSED
    assert not publisher.matched
    assert world.stranger(bytes.fromhex("0302016200" + "00"))[0] == xrce.Close(
        pid=b"brokerid", reason=2
    )


def test_core_writedata() -> None:
    world = World()
    a, b = world.device("a"), world.device("b", stream=True)
    b.subscriber("/house/*")
    a.write("zenoh://house/light", b"on")
    a.write("/garden/light", b"off")
    assert b.taken() == [("house/light", b"on")]


def test_core_streamdata() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    light = a.publisher("/house/light")
    exact, wild = b.subscriber("/house/light"), b.subscriber("/house/*")
    a.put(light, b"on")
    assert b.taken() == [("house/light", b"on")]
    b.commit(list(b.client.forget(exact)))
    a.put(light, b"off")
    (found,) = [
        m for p in b.packets[-2:] for m in xrce.read_packet(p) if isinstance(m, xrce.StreamData)
    ]
    assert (found.id, found.prid) == (wild.id, exact.id)
    message = xrce.StreamData(sn=0, id=2, payload=b"x")
    assert len(xrce.write(message)) - 1 == 4


def test_core_batcheddata() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    b.subscriber("/x")
    assert a.client.put_batch(publisher, [b"1", b"2", b"3"])
    world.run()
    assert [payload for _, payload in b.taken()] == [b"1", b"2", b"3"]
    sleepy = world.device("s")
    sleepy.subscriber("/x", PERIODIC_PUSH, window=(500, 1000, 100))
    for i in range(5):
        a.put(publisher, b"%d" % i)
    assert sleepy.taken() == []
    world.run(0.6)
    assert [payload for _, payload in sleepy.taken()] == [b"%d" % i for i in range(5)]
    assert any(isinstance(m, xrce.BatchedData) for p in sleepy.packets for m in xrce.read_packet(p))


def test_core_pull() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    kept = b.subscriber("/x", PULL)
    assert publisher.matched
    for i in range(20):
        a.put(publisher, b"%d" % i)
    assert b.taken() == []
    assert b.pull(kept, 3) == [b"4", b"5", b"6"]  # the last sixteen are kept
    assert kept.ends == 0
    assert b.pull(kept, 0) == []
    assert b.pull(kept, final=True) == []  # final without a number: no more is wanted
    assert b.pull(kept) == [b"%d" % i for i in range(7, 20)]
    assert kept.ends == 1
    assert b.pull(kept, 5, final=True) == []
    assert kept.ends == 2


def test_core_synch() -> None:
    pair = Pair().opened()
    pair.b.take([xrce.Synch(synch=True, reliable=True, sn=11, count=2)], pair.now)
    assert pair.b.packets(pair.now)[-1].hex().endswith("2f0901")
    assert pair.packets[1][1].endswith(bytes.fromhex("4e00"))  # told behind Accept


def test_core_acknack() -> None:
    pair = Pair().opened()
    pair.run(0.1)
    for i in range(4):
        pair.a.send(xrce.StreamData(reliable=True, sn=0, id=2, payload=b"%d" % i), True)
    pair.a.packets(pair.now)  # lost
    pair.a.receive(bytes.fromhex("2f0103"), pair.now + 1)
    (packet,) = pair.a.packets(pair.now + 1)
    again = [m for m in xrce.read_packet(packet) if isinstance(m, xrce.StreamData)]
    assert [(m.sn, m.synch) for m in again] == [(1, False), (2, False), (3, True)]


def test_core_declare() -> None:
    world = World()
    a = world.device("a")
    told = xrce.Declare(committed=True, sn=0, declarations=(xrce.Resource(rid=3, uri="/x"),))
    a.client.session.send(told, True)
    world.run()
    assert a.client.session.state == CLOSED
    assert a.client.session.reason == 6


def test_core_lease() -> None:
    world = World(lease=5)
    a, b = world.device("a", lease=10), world.device("b", lease=0)
    world.run(3)
    assert a.open
    a.asleep = b.asleep = True
    world.run(1.5)
    assert list(world.broker.members) == [b"b"]


# ---------------------------------------------------------------------------------- Discovery


@pytest.mark.parametrize("stream", [False, True])
def test_discovery_scout(stream: bool) -> None:
    world = World(locators=("udp/127.0.0.1:7447",))
    assert len(world.stranger(bytes.fromhex("0101"), stream)) == 1
    assert len(world.stranger(bytes.fromhex("0105"), stream)) == 1
    assert world.stranger(bytes.fromhex("0104"), stream) == []


def test_discovery_hello() -> None:
    world = World(locators=("udp/127.0.0.1:7447",))
    (found,) = world.stranger(bytes.fromhex("0101"))
    assert found == xrce.Hello(mask=1, locators=("udp/127.0.0.1:7447",))


def test_discovery_keepalive() -> None:
    world = World(lease=0)
    a, b = world.device("a", lease=9), world.device("b")
    publisher = b.publisher("/x")
    a.subscriber("/x")
    world.run(2)
    assert any(packet == bytes.fromhex("100161") for packet in a.packets)
    elsewhere = world.broker.connected("elsewhere", False)
    world.stranger(bytes.fromhex("100161"), port=elsewhere)
    assert world.broker.counters.moved == 1
    b.put(publisher, b"found you")
    assert b"found you" in elsewhere.out[-1]
    (answer,) = world.stranger(bytes.fromhex("100163"))
    assert isinstance(answer, xrce.Close)  # nobody of that name: open anew


def test_discovery_ping() -> None:
    world = World()
    port = world.broker.connected("p", False)
    world.stranger(bytes.fromhex("03010161" + "0000"), port=port)
    assert world.stranger(bytes.fromhex("0cac02"), port=port) == [
        xrce.PingPong(pong=True, hash=300)
    ]


def test_discovery_pong() -> None:
    for answer in ("2c01", "0d01"):
        pair = Pair().opened()
        pair.a.ping(pair.now)
        pair.a.receive(bytes.fromhex(answer), pair.now + 0.3)
        assert pair.a.rtt == pytest.approx(0.3)


def test_discovery_publisher() -> None:
    world = World()
    a, b, c = world.device("a"), world.device("b"), world.device("c")
    publisher = a.publisher("/x")
    assert not a.put(publisher, b"nobody hears")
    one, other = b.subscriber("/**"), c.subscriber("/x")
    assert a.put(publisher, b"heard")
    b.commit(b.client.forget(one))
    assert publisher.matched
    c.commit(c.client.forget(other))
    assert not a.put(publisher, b"nobody hears")
    assert (len(b.taken()), len(c.taken())) == (1, 1)


def test_discovery_subscriber() -> None:
    world = World()
    a = world.device("a", lease=0)
    push, pull, later, window = (world.device(name, lease=0) for name in ("b", "c", "d", "e"))
    publisher = a.publisher("/x")
    push.subscriber("/x")
    pulled = pull.subscriber("/x", PULL)
    later.subscriber("/x", PERIODIC_PUSH, window=(1000, 1000, 100))
    windowed = window.subscriber("/x", PERIODIC_PULL, window=(1000, 1000, 100))
    a.put(publisher, b"1")
    assert [len(d.taken()) for d in (push, pull, later, window)] == [1, 0, 0, 0]
    assert pull.pull(pulled) == [b"1"]
    assert window.pull(windowed) == []  # held until the window opens
    world.run(1.05)
    assert (len(later.taken()), len(window.taken())) == (1, 1)
    world.run(0.2)
    a.put(publisher, b"2")
    assert later.taken() == []  # the window is closed
    world.run(1.0)
    assert later.taken() == [("x", b"2")]
    with pytest.raises(DeclarationRefused, match="invalid"):
        later.subscriber("/y", PERIODIC_PUSH, window=(0, 100, 100))


def test_discovery_commit() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    b.subscriber("/x")
    rid, told = a.client.resource("/x")
    made, more = a.client.publisher(rid)
    bad = xrce.Resource(rid=5, uri="/y")
    with pytest.raises(DeclarationRefused, match="id 5: invalid"):
        a.commit([*told, *more, bad])
    assert not made.matched  # none of it happened
    a.commit([*told, *more])
    assert made.matched
    a.commit([])  # nothing to commit is no fault


def test_discovery_result() -> None:
    world = World()
    a = world.device("a")
    first = a.client.commit([xrce.Resource(rid=2, uri="/x")])
    second = a.client.commit([xrce.Resource(rid=2, uri="/y")])
    world.run()
    assert (first.done, first.status) == (True, 0)
    assert (second.done, second.status, second.failed) == (True, 2, 2)
    results = [
        d
        for p in a.packets
        for m in xrce.read_packet(p)
        if isinstance(m, xrce.Declare) and m.committed
        for d in m.declarations
        if isinstance(d, xrce.Result)
    ]
    assert [(r.commit_id, r.status) for r in results] == [(0, 0), (1, 2)]


def test_discovery_forgetpublisher() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    b.subscriber("/x")
    a.commit(a.client.forget(publisher))
    assert world.broker.routing.publications == {}


def test_discovery_forgetsubscriber() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    one = b.subscriber("/x")
    b.commit(b.client.forget(one))
    a.client.put(publisher, b"late", always=True)
    world.run()
    assert b.taken() == []


# -------------------------------------------------------------------------------------- Query


def test_query_resource() -> None:
    world = World()
    a = world.device("a")
    a.commit([xrce.Resource(rid=2, uri="/x"), xrce.Resource(rid=2, uri="/x")])
    for bad, why in [
        (xrce.Resource(rid=2, uri="/y"), "conflict"),
        (xrce.Resource(rid=7, uri="/y"), "invalid"),
        (xrce.Resource(rid=0, uri="/y"), "invalid"),
        (xrce.Resource(rid=4, uri="no name"), "invalid"),
    ]:
        with pytest.raises(DeclarationRefused, match=why):
            a.commit([bad])
    b = world.device("b")
    numbered = a.publisher("", rid=40)
    b.subscriber("", rid=40)
    a.put(numbered, b"by number alone")
    assert b.taken() == [("", b"by number alone")]


def test_query_selection() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/house/1/light")
    b.selection("zenoh://house/*/light?{luminosity > %0}", parameters=("5",))
    for value in (b'{"luminosity": 3}', b'{"luminosity": 7}', b"no record"):
        a.put(publisher, value)
    assert [payload for _, payload in b.taken()] == [b'{"luminosity": 7}']
    with pytest.raises(DeclarationRefused, match="unsupported"):
        b.selection("/x?{inRange(property.location, here, radius)}")
    with pytest.raises(DeclarationRefused, match="invalid"):
        b.selection("/x?{a >}")
    with pytest.raises(DeclarationRefused, match="invalid"):
        b.commit([xrce.Selection(sid=2, query="/x")])


def test_query_binding() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    one = b.selection("/x?{n = 1}")
    b.commit([xrce.Binding(old_id=one.id, new_id=77)])
    b.commit([xrce.Binding(old_id=one.id, new_id=77)])
    for bad in ((9, 11), (one.id, 2)):
        with pytest.raises(DeclarationRefused, match="invalid"):
            b.commit([xrce.Binding(old_id=bad[0], new_id=bad[1])])
    b.commit([xrce.ForgetSelection(sid=one.id)])
    a.put(publisher, b'{"n": 1}')
    assert len(b.taken()) == 1  # the selection lives by its other id


def test_query_forgetresource() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    b.subscriber("/x")
    a.commit([xrce.ForgetResource(rid=publisher.id)])
    a.put(publisher, b"still")
    assert len(b.taken()) == 1
    a.commit([xrce.ForgetPublisher(id=publisher.id)])
    a.commit([xrce.Resource(rid=publisher.id, uri="/other")])


def test_query_forgetselection() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    one = b.selection("/x")
    assert publisher.matched
    b.commit([xrce.ForgetSelection(sid=one.id)])
    assert not publisher.matched


def test_query_meta() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    vendor = xrce.Property(id=21, value=b"Light")
    a.commit(
        [
            xrce.Resource(rid=2, uri="/house/1/light", properties=(vendor,)),
            xrce.Resource(rid=4, uri="/house/2/light"),
        ]
    )
    children = b.subscriber("/house${s}", PULL)
    (payload,) = b.pull(children)
    r = Reader(payload)
    assert [r.take(r.nat()) for _ in range(r.nat())] == [b"1", b"2"]
    assert b.pull(b.subscriber("/house/2/light${id}", PULL)) == [b"\4"]
    assert b.pull(b.subscriber("/house/1/light/property", PULL)) == [b"\1\x15\5Light"]
    a.write("/house/1/light/property", b"ignored")
    assert world.broker.counters.meta_writes == 1


def test_query_durability() -> None:
    world = World()
    a = world.device("a")
    publisher = a.publisher("/x#transient")
    a.put(publisher, b"1")
    a.put(publisher, b"2")
    a.write("/y#persistent", b"3")
    volatile, late, kept = world.device("b"), world.device("c"), world.device("d")
    volatile.subscriber("/x")
    assert volatile.taken() == []
    late.subscriber("/*#{transient,persistent}")
    assert sorted(late.taken()) == [("x", b"2"), ("y", b"3")]
    assert kept.pull(kept.subscriber("/*#persistent", PULL)) == [b"3"]
    with pytest.raises(DeclarationRefused, match="conflict"):
        a.commit([xrce.Resource(rid=8, uri="/z#transient", properties=(
            xrce.Property(id=8, value=b"\2"),
        ))])  # fmt: skip


# ---------------------------------------------------------------------------------- Transport


def test_core_properties() -> None:
    world = World()
    known = xrce.Property(id=4, value=b"\x07and what trails")
    unknown = xrce.Property(id=99, value=b"whatever")
    told = xrce.Open(version=1, pid=b"a", lease=0, locators=(), properties=(unknown, known, known))
    (accept, *_) = world.stranger(xrce.write(told))
    assert accept.properties == (xrce.Property(id=4, value=b"\x07"),)
    assert world.broker.members[b"a"].session.bits == 7
    bad = xrce.Open(
        version=1, pid=b"b", lease=0, locators=(), properties=(xrce.Property(id=4, value=b""),)
    )
    assert world.stranger(xrce.write(bad)) == [xrce.Close(pid=b"brokerid", reason=5)]


@pytest.mark.parametrize(("ahead", "sent"), [(None, 1), (0, 1), (1, 2), (5, 3)])
def test_discovery_commitmode(ahead: int | None, sent: int) -> None:
    client = Client.make(SessionOptions(b"a", lossless=True))
    client.session.open(0.0)
    client.session.packets(0.0)
    properties = () if ahead is None else (number(COMMIT_MODE, ahead),)
    accept = xrce.Accept(open_pid=b"a", accept_pid=b"b", lease=0, properties=properties)
    client.receive(xrce.write(accept), 0.0)
    pending = [client.commit([xrce.Resource(rid=2 * i, uri=f"/{i}")]) for i in (1, 2, 3)]

    def commits() -> list[int]:
        return [
            declaration.commit_id
            for packet in client.session.packets(0.0)
            for message in xrce.read_packet(packet)
            if isinstance(message, xrce.Declare)
            for declaration in message.declarations
            if isinstance(declaration, xrce.Commit)
        ]

    assert commits() == list(range(sent))
    later: list[int] = []
    for sn, one in enumerate(pending):
        result = (xrce.Result(commit_id=one.id, status=0),)
        told = xrce.Declare(committed=True, sn=sn, declarations=result)
        client.receive(xrce.write(told), 0.0)
        later += commits()
    assert later == list(range(sent, 3))
    assert all(one.done for one in pending)


def test_transport_packing() -> None:
    pair = Pair(near={"mtu": 60}).opened()
    pair.packets.clear()
    for i in range(12):
        message = xrce.StreamData(reliable=True, sn=0, id=2, payload=b"%06d" % i)
        assert pair.a.send(message, True, 1 if i == 2 else 0)
    pair.flush()
    out = [packet for forward, packet in pair.packets if forward]
    assert sum(len(xrce.read_packet(packet)) for packet in out) == 12
    assert [len(packet) <= 60 for packet in out] == [True] * 3
    # A reader of the time kept the conduit until the end of the packet: 0 is said aloud.
    assert bytes.fromhex("1300") in out[0]
    pair.settle()
    assert sorted(payloads(pair.heard)) == [b"%06d" % i for i in range(12)]


def test_transport_multicast() -> None:
    peers = [Pair(near=PEER, far=PEER).opened() for _ in range(2)]
    group = Group(b"near")
    assert [group.join(pair.a) for pair in peers] == [True, True]
    for pair in peers:
        pair.flush()
        pair.run(1)
    packet = group.packet("/x", b"to all", True, peers[0].now)
    # The one hears the group, the other does not, and gets it over its session.
    pid, messages = heard(packet)
    assert pid == b"near"
    assert peers[0].far is not None
    peers[0].far.got += peers[0].far.session.take(messages, peers[0].now)
    for pair in peers:
        pair.run(2)
    assert [payloads(pair.heard) for pair in peers] == [[b"to all"], [b"to all"]]
    assert [pair.a.counters.resent for pair in peers] == [0, 1]


def test_transport_conduit() -> None:
    world = World()
    a, b = world.device("a"), world.device("b")
    publisher = a.publisher("/x")
    publisher.conduit = 3
    b.subscriber("/x")
    a.put(publisher, b"on three")
    (found,) = [m for p in b.packets for m in xrce.read_packet(p) if isinstance(m, xrce.StreamData)]
    assert xrce.conduit_of(found) == 3
    a.client.session.usable = 9
    publisher.conduit = 8
    a.put(publisher, b"too far")
    assert a.client.session.state == CLOSED


def test_transport_migrate() -> None:
    pair = Pair(Weather(loss=0.3), near={"lease": 0}).opened()
    for i in range(10):
        pair.send(b"%d" % i)
    pair.a.migrate(0, 2, pair.now, id=2)
    pair.send(b"10", conduit=2)
    pair.settle()
    pair.run(2)
    assert payloads(pair.heard) == [b"%d" % i for i in range(11)]


def test_transport_frag() -> None:
    world = World()
    a, b = world.device("a", mtu=200), world.device("b", mtu=100)
    publisher = a.publisher("/x")
    b.subscriber("/x")
    a.put(publisher, b"x" * 10_000)
    assert b.taken() == [("x", b"x" * 10_000)]
    assert (a.largest, b.largest) <= (200, 100)


def test_transport_rspace() -> None:
    world = World()
    a, b, c = world.device("a"), world.device("b"), world.device("c")
    a.client.space = b.client.space = 5
    publisher = a.publisher("/x")
    b.subscriber("/x")
    c.subscriber("/x")
    a.put(publisher, b"within")
    assert (b.taken(), c.taken()) == ([("x", b"within")], [])


def test_transport_framing() -> None:
    world = World()
    port = world.broker.connected("p", True)
    told = bytes.fromhex("03010161" + "0000")
    world.broker.received(port, bytes([len(told)]) + told, world.now)
    world.broker.received(port, UNBOUNDED + bytes.fromhex("0c07"), world.now)
    world.run()
    assert world.broker.members[b"a"].session.state == OPEN
    assert port.out[-1].hex() == "022c07"
