"""What each call of a client puts on the wire, beside the bytes that real clients put there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zenlake.node.entities import ANY, Publication
from zenlake.testing.network import Host, Network, ReplyRecorder, SampleRecorder, Statuses, Stranger
from zenlake.wire import (
    Declare,
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Frame,
    InitAck,
    KeepAlive,
    Message,
    OpenAck,
    Push,
    Put,
    Query,
    QueryBody,
    Reply,
    Request,
    SourceInfo,
    read_batch,
    write,
)
from zenlake.wire.codec_network import Responder

GOLDEN = {
    vector["hex"]
    for vector in json.loads(
        (Path(__file__).parent.parent / "golden" / "vectors-1x.json").read_text()
    )
}
CLIENT = bytes.fromhex("035f0e01d717c5ebc8c813226f66cb47")
ROUTER = bytes.fromhex("cfb1188dd746e685b735418d3f4af928")


class Line:
    """A client, and a router played by the test."""

    def __init__(self) -> None:
        self.network = Network()
        self.client: Host = self.network.node("client", "client", listen=True, zid=CLIENT)
        self.router: Stranger = self.network.stranger(self.client)
        self.sn = 0
        # The test connects and says that it is a router: who connects does not matter.
        opening = "c109f0" + ROUTER.hex() + "0a00c0812701"
        self.router.say(bytes.fromhex(opening))
        self.network.run(0.01)
        [ack] = read_batch(self.router.heard()[0])
        assert isinstance(ack, InitAck)
        self.router.say(bytes.fromhex("420a00") + bytes((len(ack.cookie),)) + ack.cookie)
        self.network.run(0.01)
        [done] = read_batch(self.router.heard()[0])
        assert isinstance(done, OpenAck)
        assert self.said() == []  # a client says nothing of its own accord

    def said(self) -> list[str]:
        """The network messages that the client has sent since, as hexadecimal."""
        self.network.run(0.01)
        found: list[str] = []
        for batch in self.router.heard():
            for message in read_batch(batch):
                if isinstance(message, Frame):
                    found += [write(each).hex() for each in message.messages]
                else:
                    assert isinstance(message, KeepAlive)
        return found

    def say(self, *messages: Message) -> None:
        """The router says something, on the control lane."""
        self.router.say(write(Frame(sn=self.sn, reliable=True, priority=0, messages=messages)))
        self.sn += 1
        self.network.run(0.01)


@pytest.fixture
def line() -> Line:
    return Line()


def recorded(*messages: str) -> list[str]:
    """Messages that were recorded from a real node, every one."""
    for message in messages:
        assert any(message in batch for batch in GOLDEN), message
    return list(messages)


def final(interest: int) -> Declare:
    return Declare(interest_id=interest, qos=8, body=DeclareFinal())


def test_a_subscriber_declares_the_literal_part_of_its_key(line: Line) -> None:
    line.client.subscribe("demo/**")
    assert line.said() == recorded("9e21082001000464656d6f", "9e2108620101032f2a2a")


def test_two_subscribers_of_a_key_are_one_on_the_wire(line: Line) -> None:
    one = line.client.subscribe("demo/**")
    line.said()
    two = line.client.subscribe("demo/**")
    assert line.said() == []
    assert one.subscriber is not None
    assert two.subscriber is not None
    line.client.node.local.unsubscribe(one.subscriber)
    assert line.said() == []
    line.client.node.local.unsubscribe(two.subscriber)
    assert line.said() == ["9e21080301"]


def test_a_put_without_a_publisher_spells_its_key_out(line: Line) -> None:
    line.client.put("demo/a", b"hello")
    assert line.said() == recorded("7d000664656d6f2f61010568656c6c6f")


@pytest.mark.parametrize(
    ("qos", "message"),
    [
        (1, "fd000664656d6f2f612101010170"),
        (7, "fd000664656d6f2f612107010170"),
    ],
)
def test_a_put_with_a_priority(line: Line, qos: int, message: str) -> None:
    line.client.put("demo/a", b"p", qos=qos)
    assert line.said() == recorded(message)


@pytest.mark.parametrize(
    ("qos", "message"),
    [
        (0x0D, "fd000664656d6f2f61210d010163"),
        (0x25, "fd000664656d6f2f612125010163"),
    ],
)
def test_a_put_with_a_congestion_control(line: Line, qos: int, message: str) -> None:
    line.client.put("demo/a", b"c", qos=qos)
    assert line.said() == recorded(message)


def test_a_put_with_an_encoding(line: Line) -> None:
    for encoding, schema, payload in (
        (4, b"", b"text"),
        (5, b"utf-8", b"{}"),
        (0xFFFF, b"my/custom", b"{}"),
    ):
        Publication(
            line.client.node, line.client.node.routes, 0, "demo/a", 5, True, encoding, schema, ANY
        ).put(payload)
    assert line.said() == recorded(
        "7d000664656d6f2f6141080474657874",
        "7d000664656d6f2f61410b057574662d38027b7d",
        "7d000664656d6f2f6141ffff07096d792f637573746f6d027b7d",
    )


def test_a_publisher_shows_interest_and_uses_its_number(line: Line) -> None:
    local = line.client.node.local
    publisher = local.publisher("demo/pub", 5, True, 0, b"", ANY)
    assert line.said() == recorded("9e21082001000864656d6f2f707562", "f90153012108")
    line.say(
        Declare(interest_id=1, qos=8, body=DeclareSubscriber(id=1, scope=0, suffix="demo/**")),
        final(1),
    )
    assert publisher.matching
    publisher.put(b"via pub")
    assert line.said() == recorded("5d01010776696120707562")
    local.unpublish(publisher)
    assert line.said() == ["99012108"]


def test_a_publisher_that_nobody_hears_says_nothing(line: Line) -> None:
    publisher = line.client.node.local.publisher("demo/pub", 5, True, 0, b"", ANY)
    line.said()
    line.say(final(1))
    publisher.put(b"x")
    assert line.said() == []


def test_a_matching_listener_says_nothing(line: Line) -> None:
    publisher = line.client.node.local.publisher("demo/pub", 5, True, 0, b"", ANY)
    line.said()
    line.client.node.local.matching.watch(publisher, Statuses())
    assert line.said() == []


def test_a_queryable_says_whether_it_is_complete(line: Line) -> None:
    one = line.client.queryable("q/x", b"", complete=True)
    assert line.said() == ["9e2108200100" + "03712f78", "9e2108c401012101"]
    assert one.queryable is not None
    line.client.node.local.unqueryable(one.queryable)
    assert line.said() == ["9e210885015f020000"]
    line.client.queryable("q/x", b"")
    assert line.said() == ["9e2108440201"]


def test_a_queryable_becomes_complete_when_one_of_several_is(line: Line) -> None:
    line.client.queryable("q", b"")
    line.said()
    complete = line.client.queryable("q", b"", complete=True)
    assert line.said() == ["9e2108c401012101"]
    assert complete.queryable is not None
    line.client.node.local.unqueryable(complete.queryable)
    assert line.said() == ["9e2108440101"]


def test_a_token_and_its_end(line: Line) -> None:
    token = line.client.node.local.liveliness.token("live/tok")
    assert line.said() == ["9e2108200100086c6976652f746f6b", "9e2108460101"]
    line.client.node.local.liveliness.untoken(token)
    assert line.said() == ["9e210887015f020000"]


def test_a_liveliness_get_is_an_interest_in_the_present(line: Line) -> None:
    answers = line.client.liveliness_get("live/**")
    assert line.said() == ["9e2108200100046c697665", "b9017901032f2a2a2108"]
    line.say(
        Declare(interest_id=1, qos=8, body=DeclareToken(id=0, scope=0, suffix="live/tok")), final(1)
    )
    assert (answers.keys(), answers.finals) == (["live/tok"], 1)


def test_a_liveliness_subscriber_with_and_without_history(line: Line) -> None:
    watcher = line.client.watch_liveliness("live/**", history=True)
    assert line.said() == ["9e2108200100046c697665", "f9017901032f2a2a2108"]
    line.client.watch_liveliness("live/*")
    assert line.said() == ["d9027901022f2a2108"]
    line.say(
        Declare(qos=8, body=DeclareKeyExpr(id=7, scope=0, suffix="live/tok")),
        Declare(interest_id=1, qos=8, body=DeclareToken(id=3, scope=7)),
        final(1),
        final(2),
    )
    assert watcher.changes() == [("put", "live/tok")]
    assert watcher.watcher is not None
    line.client.node.local.liveliness.unwatch(watcher.watcher)
    assert line.said() == ["99012108"]


def test_a_querier_shows_interest_in_queryables(line: Line) -> None:
    local = line.client.node.local
    querier = local.querier("q/*", 0, ANY)
    assert line.said() == ["9e210820010001" + "71", "f9017501022f2a2108"]
    line.say(
        Declare(interest_id=1, qos=8, body=DeclareQueryable(id=1, scope=0, suffix="q/**", info=1)),
        final(1),
    )
    assert querier.matching
    local.unquerier(querier)
    assert line.said() == ["99012108"]


def test_a_get_as_recorded(line: Line) -> None:
    answers = line.client.get("q/x")
    assert line.said() == recorded("fc010003712f78a10d26904e2303")
    assert answers.finals == 0


def test_every_option_of_a_get(line: Line) -> None:
    client = line.client
    client.get("q/x", target=1)
    client.get("q/x", consolidation=2)
    client.get("q/x", "_time=[now()..]", timed=True)
    client.get("q/x", timeout=1.5)
    client.get("q/x", body=QueryBody(encoding=0, payload=b"body"))
    client.get("q/x", attachment=b"qa")
    client.get("q/x", qos=0x1D, source_info=SourceInfo(zid=CLIENT, eid=1, sn=2))
    assert line.said() == [
        "fc010003712f78a10db40126904e2303",
        "fc020003712f78a10d26904e2302",
        "fc030003712f78a10d26904e63010f" + b"_time=[now()..]".hex(),
        "fc040003712f78a10d26dc0b2303",
        "fc050003712f78a10d26904ea303430500626f6479",
        "fc060003712f78a10d26904ea30345027161",
        "fc070003712f78a11d26904ea3034113f0" + CLIENT.hex() + "0102",
    ]


def test_an_answer_carries_who_gave_it_and_the_qos_of_the_question(line: Line) -> None:
    replier = line.client.queryable("q/x", b"reply")
    line.said()
    eid = replier.queryable.eid if replier.queryable is not None else 0
    line.say(
        Request(id=1, scope=0, suffix="q/x", qos=0x0D, timeout=10_000, body=Query(consolidation=3))
    )
    responder = Responder(zid=CLIENT, eid=eid)
    assert write(responder).hex() == f"f0{CLIENT.hex()}{eid:02x}"
    assert line.said() == [
        f"fb010003712f78a10d4312f0{CLIENT.hex()}{eid:02x}04" + "01057265706c79",
        "9a01210d",
    ]
    assert write(Reply(body=Put(payload=b"reply"))).hex() == "0401057265706c79"


def test_a_question_for_nobody_is_final_at_once(line: Line) -> None:
    line.say(Request(id=0x15, scope=0, suffix="no", qos=0x0D, timeout=10_000, body=Query()))
    assert line.said() == ["9a15210d"]


def test_a_key_number_that_means_nothing_finishes_the_question(line: Line) -> None:
    line.client.queryable("**", b"x")
    line.said()
    line.say(Request(id=3, scope=9, qos=0x0D, timeout=10_000, body=Query()))
    assert line.said() == ["9a03210d"]


def test_a_sample_by_a_number_of_ours_and_by_one_of_theirs(line: Line) -> None:
    samples = line.client.subscribe("demo/**")
    line.said()
    line.say(
        Push(scope=1, suffix="/a", sender_mapping=False, body=Put(payload=b"1")),
        Declare(qos=8, body=DeclareKeyExpr(id=5, scope=0, suffix="demo")),
        Push(scope=5, suffix="/b", sender_mapping=True, body=Put(payload=b"2")),
        Push(scope=5, suffix="/c", sender_mapping=False, body=Put(payload=b"3")),
        Push(scope=0, suffix="demo/d", body=Put(payload=b"4")),
    )
    assert samples.values() == [("demo/a", b"1"), ("demo/b", b"2"), ("demo/d", b"4")]


def test_a_key_that_the_router_numbered_is_written_with_its_number(line: Line) -> None:
    line.say(Declare(qos=8, body=DeclareKeyExpr(id=5, scope=0, suffix="demo/a")))
    line.client.put("demo/a", b"x")
    line.client.put("demo/a/b", b"x")
    assert line.said() == ["1d05010178", "3d05022f62010178"]


def test_closing_says_goodbye_and_nothing_else(line: Line) -> None:
    line.client.subscribe("demo/**")
    line.said()
    line.network.leave(line.client)
    line.network.run(0.01)
    assert line.router.heard() == [b"\x03\x00"]
    assert line.router.closed


def test_everything_is_ended_when_a_node_closes(line: Line) -> None:
    client = line.client
    samples, answers = client.subscribe("a"), client.get("b")
    replier, watcher = client.queryable("c"), client.watch_liveliness("d")
    alive = client.liveliness_get("e")
    line.network.leave(client)
    assert samples.ended
    assert replier.ended
    assert watcher.ended
    assert (answers.finals, alive.finals) == (1, 1)
    assert isinstance(answers, ReplyRecorder)
    assert isinstance(samples, SampleRecorder)
