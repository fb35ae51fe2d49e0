"""How each concept of 2018 is mapped to Zenoh 1.x: one test for each row of the bridge's table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zenlake
from tests.waiting import SECONDS, until
from tests.xrce_io.conftest import Bridged, bridged, router_config
from tests.xrce_io.test_bridge import wanted
from zenlake import xrce
from zenlake.values import EntityGlobalId, SourceInfo
from zenlake.wire.cursor import Reader
from zenlake.xrce.client import DeclarationRefused
from zenlake.xrce_io.translate import key_exprs, paths

ROWS = (
    "name", "star", "star_in_a_name", "question_mark", "double_star", "double_star_in_a_name",
    "double_star_of_1x", "star_of_1x", "at_chunks", "no_keys", "tags", "resource", "publisher",
    "push", "pull", "periodic", "selection", "one_shot_pull", "answering_get", "binding",
    "children", "id", "property", "stream_and_batched_data", "write_data", "delete", "payload",
    "reliability", "conduits", "migrate", "frag", "space", "ping", "scouting", "pid", "lease",
    "liveliness", "sn_length", "commit", "loops", "order_and_duplicates",
)  # fmt: skip


def test_every_row_has_its_test() -> None:
    assert [row for row in ROWS if f"test_{row}" not in globals()] == []


@pytest.fixture(scope="module")
def both() -> Iterator[Bridged]:
    yield from bridged(router_config())


@pytest.fixture(scope="module")
def program(both: Bridged) -> Iterator[zenlake.Session]:
    with zenlake.open(both.config()) as session:
        yield session


@pytest.fixture
def device(both: Bridged) -> Iterator[xrce.Session]:
    with xrce.open(both.udp) as session:
        yield session


def asked(program: zenlake.Session, selector: str) -> dict[str, bytes]:
    return {
        str(reply.ok.key_expr): reply.ok.payload.to_bytes()
        for reply in program.get(selector, timeout=SECONDS)
        if reply.ok is not None
    }


def names(payload: bytes) -> list[str]:
    r = Reader(payload)
    return [r.text(r.nat()) for _ in range(r.nat())]


def listening(both: Bridged, program: zenlake.Session, key: str, expr: str = "") -> Any:
    """A subscriber of 1.x that the router knows of."""
    sub = program.declare_subscriber(expr or key)
    publisher = both.router.declare_publisher(key)
    until(lambda: bool(publisher.matching_status.matching))
    publisher.undeclare()
    return sub


def heard(device: xrce.Session, program: zenlake.Session, uri: str, *keys: str) -> set[str]:
    """Which of some keys reach a subscriber of 2018."""
    samples = device.subscriber(uri)
    program.put("barrier/is/here", b"")
    for key in keys:
        program.put(key, b"x", congestion_control=zenlake.CongestionControl.BLOCK)
    last = device.subscriber("/the/last/one")
    # On the same reliable stream as the others: what may be dropped overtakes what is sent again.
    publisher = program.declare_publisher(
        "the/last/one", congestion_control=zenlake.CongestionControl.BLOCK
    )
    until(lambda: bool(publisher.matching_status.matching))
    # The subscription is known everywhere now, so what is put from here on would be heard.
    for key in keys:
        program.put(key, b"again", congestion_control=zenlake.CongestionControl.BLOCK)
    publisher.put(b"")
    last.recv(SECONDS)
    found: set[str] = set()
    while (sample := samples.try_recv()) is not None:
        found.add(sample[0])
    samples.undeclare()
    last.undeclare()
    return found


def test_name(both: Bridged, program: zenlake.Session) -> None:
    sub = listening(both, program, "name/b")
    for style in ("zenoh://", "/", "//"):
        with xrce.open(both.tcp) as device:
            device.write(f"{style}name/b", style.encode())
            sample = sub.recv()
            assert (str(sample.key_expr), sample.payload.to_bytes()) == ("name/b", style.encode())
    sub.undeclare()
    for made in bridged(router_config(prefix="site/1")):
        with zenlake.open(made.config()) as there, xrce.open(made.udp) as device:
            prefixed = listening(made, there, "site/1/a/b")
            device.write("/a/b", b"x")
            assert str(prefixed.recv().key_expr) == "site/1/a/b"
            samples = device.subscriber("/a/c")
            wanted(made, there, "site/1/a/c")
            there.put("site/1/a/c", b"y")
            assert samples.recv(SECONDS) == ("a/c", b"y")


def test_star(device: xrce.Session, program: zenlake.Session) -> None:
    assert key_exprs("star/*/x") == ["star/*/x"]
    keys = ("star/1/x", "star/1/2/x", "star/x")
    assert heard(device, program, "/star/*/x", *keys) == {"star/1/x"}


def test_star_in_a_name(device: xrce.Session, program: zenlake.Session) -> None:
    assert [key_exprs(one) for one in ("ab*", "*ab", "a*b")] == [["ab$*"], ["$*ab"], ["a$*b"]]
    keys = ("in/ab", "in/axb", "in/ax", "in/a/b")
    assert heard(device, program, "/in/a*b", *keys) == {"in/ab", "in/axb"}


def test_question_mark(device: xrce.Session, program: zenlake.Session) -> None:
    assert key_exprs("q/a?") == ["q/a$*"]
    assert heard(device, program, "/q/a?", "q/a", "q/ab", "q/abc") == {"q/ab"}


def test_double_star(device: xrce.Session, program: zenlake.Session) -> None:
    assert key_exprs("**") == ["**"]
    keys = ("ds/b", "ds/x/b", "ds/x/y/b", "ds/x")
    assert heard(device, program, "/ds/**/b", *keys) == {"ds/x/b", "ds/x/y/b"}


def test_double_star_in_a_name(device: xrce.Session, program: zenlake.Session) -> None:
    assert key_exprs("m**n") == ["m$*/**/$*n", "m$*n"]
    keys = ("mn", "mxn", "m/n", "m/x/yn", "m/x")
    assert heard(device, program, "/m**n", *keys) == {"mn", "mxn", "m/n", "m/x/yn"}


def test_double_star_of_1x(device: xrce.Session, program: zenlake.Session) -> None:
    assert paths("a/**/b") == ["a/b", "a/**/b"]
    sub = program.declare_subscriber("ds1/**/b")
    for uri in ("/ds1/b", "/ds1/x/b"):
        publisher = device.publisher(uri)
        publisher.wait()
        publisher.put(uri.encode())
        assert sub.recv().payload.to_bytes() == uri.encode()
    assert not device.publisher("/ds1/x").matched
    sub.undeclare()


def test_star_of_1x(device: xrce.Session, program: zenlake.Session) -> None:
    assert paths("a$*") == ["a*"]
    sub = program.declare_subscriber("s1/a$*")
    device.publisher("/s1/abc").wait()
    assert not device.publisher("/s1/b").matched
    sub.undeclare()


def test_at_chunks(device: xrce.Session, program: zenlake.Session) -> None:
    assert paths("a/@b") == []
    assert heard(device, program, "/at/**", "at/@x/y", "at/x/y") == {"at/x/y"}
    with pytest.raises(DeclarationRefused, match="invalid"):
        device.subscriber("/@/router")


@pytest.mark.parametrize("bad", ["/a/@b", "/a//b", "/a$b", "/"])
def test_no_keys(device: xrce.Session, bad: str) -> None:
    with pytest.raises(DeclarationRefused, match="invalid"):  # status 5
        device._loop.run(device._inner._commit([xrce.Resource(rid=1000, uri=bad)]))


def test_tags(both: Bridged, device: xrce.Session, program: zenlake.Session) -> None:
    # A storage of 1.x has a value that no session of 2018 wrote: a tag asks for it.
    queryable = program.declare_queryable(
        "tag/elsewhere", lambda query: query.reply("tag/elsewhere", b"stored")
    )
    device.write("/tag/here#transient", b"1")
    device.flushed()
    until(lambda: asked(program, "tag/here") == {"tag/here": b"1"})
    with xrce.open(both.tcp) as late:
        samples = late.subscriber("/tag/*#{transient,persistent}")
        found = {samples.recv(SECONDS) for _ in range(2)}
        assert found == {("tag/here", b"1"), ("tag/elsewhere", b"stored")}
        plain = late.subscriber("/tag/here")
        late.ping()
        assert plain.try_recv() is None  # without a tag, nothing of the past
    queryable.undeclare()


def test_resource(both: Bridged, device: xrce.Session, program: zenlake.Session) -> None:
    with xrce.open(both.tcp) as other:
        sub = program.declare_subscriber("res/*")
        for one, uri in ((device, "/res/1"), (other, "/res/2")):
            assert one.resource(uri, 40) == 40  # the same number for another name elsewhere
            publisher = one.publisher(uri)
            publisher.wait()
            publisher.put(b"x")
            assert str(sub.recv().key_expr) == uri[1:]
        sub.undeclare()


def test_publisher(device: xrce.Session, program: zenlake.Session) -> None:
    best = device.publisher("/pub/x", reliable=False)
    assert not best.put(b"nobody listens, so nothing is sent")
    sub = program.declare_subscriber("pub/x")
    best.wait()
    best.put(b"1")
    assert sub.recv().congestion_control is zenlake.CongestionControl.DROP
    sub.undeclare()
    until(lambda: not best.matched)


def test_push(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    samples = device.subscriber("/push/x")
    wanted(both, program, "push/x")
    program.put("push/x", b"1")
    assert samples.recv(SECONDS) == ("push/x", b"1")


def test_pull(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    samples = device.subscriber("/pull/x", "pull")
    wanted(both, program, "pull/x")
    for i in range(20):
        program.put("pull/x", b"%d" % i, congestion_control=zenlake.CongestionControl.BLOCK)
    above = f"@/{both.router.zid()}/z18/session/{device.pid.hex()}"
    until(lambda: json.loads(asked(program, above)[above])["store_dropped"] == 4)
    assert samples.try_recv() is None
    assert samples.pull(3) == [("pull/x", b"%d" % i) for i in range(4, 7)]
    assert samples.pull() == [("pull/x", b"%d" % i) for i in range(7, 20)]
    assert samples.pull() == []


def test_periodic(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    pushed = device.subscriber("/per/x", "periodic-push", period=200, duration=50)
    pulled = device.subscriber("/per/*", "periodic-pull", period=200, duration=50)
    wanted(both, program, "per/x")
    program.put("per/x", b"1")
    assert pushed.recv(SECONDS) == ("per/x", b"1")
    until(lambda: pulled.pull() == [("per/x", b"1")])


def test_selection(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    chosen = device.selection("/sel/*?{v > 2}")
    wanted(both, program, "sel/x")
    for v in (1, 3):
        program.put("sel/x", json.dumps({"v": v}).encode())
    assert chosen.recv(SECONDS) == ("sel/x", b'{"v": 3}')
    assert chosen.try_recv() is None


def test_one_shot_pull(both: Bridged, device: xrce.Session, program: zenlake.Session) -> None:
    questions: list[str] = []

    def answer(query: zenlake.Query) -> None:
        questions.append(str(query.selector))
        for n in range(5):
            query.reply(f"once/{n}", json.dumps({"v": n}).encode())

    queryable = program.declare_queryable("once/*", answer)
    until(lambda: bool(asked(both.router, "once/*")))
    questions.clear()
    chosen = device.selection("/once/*?{v >= 2}", "pull")
    assert len(chosen.pull(2)) == 2
    assert len(chosen.pull()) == 1
    assert "pred=" in questions[0]
    queryable.undeclare()


def test_answering_get(tmp_path: Path) -> None:
    config = {"persistent": str(tmp_path / "values.sqlite")}
    for made in bridged(router_config(**config)):
        with zenlake.open(made.config()) as program, xrce.open(made.udp) as device:
            device.write("/reply/x#persistent", b"1")
            device.write("/reply/x#persistent", b"2")
            device.flushed()
            until(lambda: asked(program, "reply/*") == {"reply/x": b"2"})
    for made in bridged(router_config(**config)):  # after a restart, too
        with zenlake.open(made.config()) as program:
            until(lambda: asked(program, "reply/*") == {"reply/x": b"2"})


def test_binding(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    chosen = device.selection("/bind/*")
    client = device._inner.client
    (sid,) = [id for id in client.subscribers if id % 2]
    binding = xrce.Binding(old_id=sid, new_id=77, is_global=True)
    device._loop.run(device._inner._commit([binding]))
    wanted(both, program, "bind/x")
    program.put("bind/x", b"1")  # 1.x knows nothing of numbers
    assert chosen.recv(SECONDS) == ("bind/x", b"1")


def test_children(device: xrce.Session, program: zenlake.Session) -> None:
    device.resource("/tree/here/leaf")
    queryable = program.declare_queryable(
        "tree/*", lambda query: query.reply("tree/there", b"whatever")
    )
    pulled = device.subscriber("/tree${s}", "pull")

    def children() -> list[str]:
        ((_, payload),) = pulled.pull()  # asked again each time
        return names(payload)

    # The queryable is declared on another link: the broker hears of it in its own time.
    until(lambda: children() == ["here", "there"], "the children of both worlds are there")
    pushed = device.subscriber("/tree/here${s}")
    assert names(pushed.recv(SECONDS)[1]) == ["leaf"]
    queryable.undeclare()
    until(lambda: children() == ["here"], "the children of 1.x are gone")


def test_id(device: xrce.Session) -> None:
    number = device.resource("/numbered/x", 50)
    samples = device.subscriber("/numbered/x${id}")
    assert samples.recv(SECONDS)[1] == bytes([number])


def test_property(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    device.resource("/typed/x", type="struct T { long v; };")
    samples = device.subscriber("/typed/x/property")
    r = Reader(samples.recv(SECONDS)[1])
    assert (r.nat(), r.nat(), r.take(r.nat())) == (1, 25, b"struct T { long v; };")
    key = f"@/{both.router.zid()}/z18/property/typed/x"
    assert json.loads(asked(program, key)[key]) == {"25": b"struct T { long v; };".hex()}
    program.put(key, b"changed")  # it is read-only
    assert json.loads(asked(program, key)[key]) == {"25": b"struct T { long v; };".hex()}


def test_stream_and_batched_data(
    device: xrce.Session, program: zenlake.Session, both: Bridged
) -> None:
    sub = program.declare_subscriber("batch/x")
    publisher = device.publisher("/batch/x")
    publisher.wait()
    client = device._inner.client
    sent = [b"%d" % i for i in range(50)]

    def put_batch() -> None:
        client.put_batch(publisher._inner, sent)
        device._inner.flush()

    device._loop.soon(put_batch)
    assert [sub.recv().payload.to_bytes() for _ in sent] == sent
    for payload in sent:
        publisher.put(payload)
    assert [sub.recv().payload.to_bytes() for _ in sent] == sent
    sub.undeclare()
    samples = device.subscriber("/batch/y", "periodic-push", period=100, duration=50)
    wanted(both, program, "batch/y")
    for payload in sent[:10]:
        program.put("batch/y", payload, congestion_control=zenlake.CongestionControl.BLOCK)
    assert [samples.recv(SECONDS)[1] for _ in range(10)] == sent[:10]


def test_write_data(both: Bridged, device: xrce.Session, program: zenlake.Session) -> None:
    sub = listening(both, program, "write/x")
    device.write("/write/x", b"1")
    assert str(sub.recv().key_expr) == "write/x"
    sub.undeclare()


def test_delete() -> None:
    for made in bridged(router_config(deletes="empty")):
        with zenlake.open(made.config()) as program, xrce.open(made.udp) as device:
            samples = device.subscriber("/del/x")
            wanted(made, program, "del/x")
            program.delete("del/x")
            assert samples.recv(SECONDS) == ("del/x", b"")


def test_payload(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    sub = listening(both, program, "pay/x")
    device.write("/pay/x", b"\xff\x00")
    assert sub.recv().encoding == zenlake.Encoding.ZENOH_BYTES
    sub.undeclare()
    samples = device.subscriber("/pay/y")
    wanted(both, program, "pay/y")
    program.put("pay/y", b"{}", encoding="application/json", attachment=b"lost on the way")
    assert samples.recv(SECONDS) == ("pay/y", b"{}")


def test_reliability(both: Bridged, device: xrce.Session, program: zenlake.Session) -> None:
    sub = listening(both, program, "rel/x")
    for reliable, control in (
        (True, zenlake.CongestionControl.BLOCK),
        (False, zenlake.CongestionControl.DROP),
    ):
        device.write("/rel/x", b"", reliable=reliable)
        assert sub.recv().congestion_control is control
    sub.undeclare()


@pytest.mark.parametrize(
    ("conduit", "priority"),
    [
        (0, zenlake.Priority.DATA), (1, zenlake.Priority.REAL_TIME),
        (2, zenlake.Priority.INTERACTIVE_HIGH), (3, zenlake.Priority.DATA_LOW),
        (4, zenlake.Priority.BACKGROUND),
    ],
)  # fmt: skip
def test_conduits(
    device: xrce.Session,
    program: zenlake.Session,
    both: Bridged,
    conduit: int,
    priority: zenlake.Priority,
) -> None:
    sub = listening(both, program, "con/x")
    device.write("/con/x", b"", conduit=conduit)
    assert sub.recv().priority is priority
    sub.undeclare()
    samples = device.subscriber("/con/back")
    wanted(both, program, "con/back")
    program.put("con/back", b"1", priority=priority)
    assert samples.recv(SECONDS) == ("con/back", b"1")
    used = both.running.broker.members[device.pid].session.conduits
    assert conduit in used


def test_migrate(device: xrce.Session, program: zenlake.Session) -> None:
    sub = program.declare_subscriber("mig/x")
    publisher = device.publisher("/mig/x")
    publisher.wait()
    publisher.put(b"before")
    device.flushed()
    inner = device._inner

    def migrate() -> None:
        inner.client.session.migrate(0, 2, device_now(), publisher._inner.id)
        inner.flush()

    def device_now() -> float:
        return inner._loop.time()

    device._loop.soon(migrate)
    publisher._inner.conduit = 2
    publisher.put(b"after")
    assert [sub.recv().payload.to_bytes() for _ in range(2)] == [b"before", b"after"]
    sub.undeclare()


def test_frag(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    large = bytes(range(256)) * 1000
    sub = program.declare_subscriber("frag/x")
    publisher = device.publisher("/frag/x")
    publisher.wait()
    publisher.put(large)
    assert sub.recv().payload.to_bytes() == large
    sub.undeclare()
    samples = device.subscriber("/frag/y")
    wanted(both, program, "frag/y")
    program.put("frag/y", large, congestion_control=zenlake.CongestionControl.BLOCK)
    assert samples.recv(SECONDS) == ("frag/y", large)


def test_space(both: Bridged, program: zenlake.Session) -> None:
    sub = listening(both, program, "z18/space/7/spaced", "**")
    with xrce.open(both.udp, space=7) as device, xrce.open(both.udp, space=1) as inner:
        inner.write("/secret", b"1")
        inner.flushed()
        device.write("/spaced", b"2")
        assert str(sub.recv().key_expr) == "z18/space/7/spaced"
        sub.undeclare()
        samples = device.subscriber("/back")
        wanted(both, program, "z18/space/7/back")
        program.put("z18/space/7/back", b"3")
        assert samples.recv(SECONDS) == ("back", b"3")


def test_ping(device: xrce.Session, program: zenlake.Session, both: Bridged) -> None:
    assert 0 < device.ping() < 10
    above = f"@/{both.router.zid()}/z18/session/{device.pid.hex()}"
    assert json.loads(asked(program, above)[above])["rtt"] > 0


def test_scouting(both: Bridged) -> None:
    (found,) = xrce.scout(both.udp)
    assert found.mask == 1  # a broker, and with `persistent` a durable one
    (found,) = xrce.scout(both.tcp)
    assert found.mask == 1


def test_pid(both: Bridged, device: xrce.Session) -> None:
    assert device.broker == bytes(both.router.zid())[:8]
    for size in (1, 16):
        with xrce.open(both.udp, pid=bytes(size - 1) + b"x") as one:
            assert one.pid in both.running.broker.members


def test_lease(both: Bridged) -> None:
    sessions = both.running.broker.members
    with xrce.open(both.udp, lease=0) as endless, xrce.open(both.udp, lease=60.5) as long:
        assert sessions[endless.pid].session.peer_lease == 0
        assert sessions[long.pid].session.peer_lease == 605
        with xrce.open(both.udp, lease=0.3) as short:
            short._inner._link.close()  # it falls silent
            until(lambda: short.pid not in sessions)
        assert long.pid in sessions
        assert endless.ping() > 0


def test_liveliness(both: Bridged, program: zenlake.Session) -> None:
    # With those that are there: the router may hear of the subscriber later than of the device.
    changes = program.liveliness().declare_subscriber("z18/session/*", history=True)
    with xrce.open(both.udp, pid=b"\x0a\x0c"):
        sample = changes.recv()
        while str(sample.key_expr) != "z18/session/0a0c":
            sample = changes.recv()
        assert sample.kind is zenlake.SampleKind.PUT
    sample = changes.recv()
    while str(sample.key_expr) != "z18/session/0a0c":
        sample = changes.recv()
    assert sample.kind is zenlake.SampleKind.DELETE
    changes.undeclare()


@pytest.mark.parametrize("bits", [7, 63])
def test_sn_length(both: Bridged, program: zenlake.Session, bits: int) -> None:
    sub = listening(both, program, "sn/x")
    with xrce.open(both.udp, sn_bits=bits) as device:
        sent = [b"%d" % i for i in range(300)]
        for payload in sent:
            device.write("/sn/x", payload)
        assert [sub.recv().payload.to_bytes() for _ in sent] == sent
    sub.undeclare()


def test_commit() -> None:
    config = router_config()
    from zenlake.xrce_io.service import serving

    router = zenlake.open(config)
    with serving(router, config.resolved.xrce) as running, xrce.open(running.locators()[0]) as one:
        router.close()
        with pytest.raises(DeclarationRefused, match="other"):
            one.publisher("/x")


def test_loops(both: Bridged, device: xrce.Session, program: zenlake.Session) -> None:
    sub = listening(both, program, "loop/x")
    with xrce.open(both.udp) as other:
        samples = other.subscriber("/loop/x")
        wanted(both, program, "loop/x")
        device.write("/loop/x", b"1")
        sample = sub.recv()
        assert samples.recv(SECONDS) == ("loop/x", b"1")
        assert sample.source_info is not None
        # Somebody gives it back to 1.x as it is: whose it is, is known.
        source = EntityGlobalId(sample.source_info.source_id.zid, sample.source_info.source_id.eid)
        program.put("loop/x", b"1", source_info=SourceInfo(source, 9))
        program.put("loop/x", b"2")
        assert samples.recv(SECONDS) == ("loop/x", b"2")
        assert samples.try_recv() is None
    key = f"@/{both.router.zid()}/z18/broker"
    assert json.loads(asked(program, key)[key])["looped"] == 1
    sub.undeclare()


def test_order_and_duplicates(
    device: xrce.Session, program: zenlake.Session, both: Bridged
) -> None:
    samples = [device.subscriber(uri) for uri in ("/ord/x", "/ord/*", "/ord/**")]
    wanted(both, program, "ord/x")
    sent = [b"%d" % i for i in range(200)]
    for payload in sent:
        program.put("ord/x", payload, congestion_control=zenlake.CongestionControl.BLOCK)
    assert [samples[0].recv(SECONDS)[1] for _ in sent] == sent
    device.ping()
    assert [one.try_recv() for one in samples] == [None, None, None]
