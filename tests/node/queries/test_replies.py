"""Answers are the same on the short way and on the long one, written and read."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.node.queries.replies import put_of, reply_value
from zenlake.testing import spec
from zenlake.testing.network import Host, Network, Stranger
from zenlake.testing.strategies import messages
from zenlake.transport.framing import vle
from zenlake.wire import (
    Declare,
    DeclareQueryable,
    Err,
    Frame,
    InitAck,
    InitSyn,
    Message,
    OpenSyn,
    Push,
    Put,
    Query,
    Reply,
    Request,
    Responder,
    Response,
    ResponseFinal,
    Timestamp,
    read_batch,
    write,
)
from zenlake.wire.codec_zenoh import put_head

NONE, MONOTONIC, LATEST = 1, 2, 3


@given(messages(spec("Put")), st.binary(max_size=40))
def test_a_put_is_made_again_from_its_head_and_a_value(put: Message, value: bytes) -> None:
    assert isinstance(put, Put)
    head = put_head(
        timestamp=put.timestamp,
        encoding=put.encoding,
        schema=put.schema,
        source_info=put.source_info,
        attachment=put.attachment,
    )
    made = put_of(head, value)
    assert made.payload == value
    made.payload = put.payload
    made.shm, made.slices, made.extensions = put.shm, put.slices, put.extensions
    assert made == put


class Line:
    """A peer, and a client of it that the test plays."""

    def __init__(self, beside: Line | None = None) -> None:
        self.network: Network = Network() if beside is None else beside.network
        self.peer: Host = self.network.node("peer", zid=b"\x0f") if beside is None else beside.peer
        self.sn = 0
        zid = b"\x01" if beside is None else b"\x02"
        self.client: Stranger = self.network.stranger(self.peer)
        self.client.say(write(InitSyn(version=9, whatami=2, zid=zid, qos=True, patch=1)))
        self.network.run(0.01)
        [ack] = read_batch(self.client.heard()[0])
        assert isinstance(ack, InitAck)
        self.client.say(write(OpenSyn(lease=10_000, initial_sn=0, cookie=ack.cookie)))
        if beside is None:
            self.say(Declare(body=DeclareQueryable(id=1, scope=0, suffix="**")))
        self.client.heard()

    def say(self, *said: Message) -> None:
        self.client.say(write(Frame(sn=self.sn, reliable=True, messages=said)))
        self.sn += 1
        self.network.run(0.01)

    def heard(self) -> list[Message]:
        """The messages that the client heard."""
        self.network.run(0.01)
        found: list[Message] = []
        for batch in self.client.heard():
            for frame in read_batch(batch):
                if isinstance(frame, Frame):
                    found.extend(frame.messages)
        return found


# ----------------------------------------------------------------------------------- written


@given(st.sampled_from(["k", "a/b", "é" * 40, "x" * 200]), st.binary(max_size=200))
@settings(max_examples=20, deadline=None)
def test_an_answer_is_written_alike(key: str, value: bytes) -> None:
    line = Line()
    replier = line.peer.queryable("**")
    for qos, id in ((5, 1), (13, 300)):
        line.say(Request(id=id, scope=0, suffix="**", qos=qos, body=Query()))
        question = replier.queries[-1]
        line.heard()
        assert replier.reply(question, key, value)
        raw = key.encode()
        assert reply_value(question, vle(len(raw)) + raw, value)
        replier.finish(question)
        long, short, final = line.heard()
        assert isinstance(long, Response)
        assert isinstance(final, ResponseFinal)
        assert write(short) == write(long)


def test_nothing_is_written_to_a_question_that_is_over() -> None:
    line = Line()
    replier = line.peer.queryable("**")
    line.say(Request(id=1, scope=0, suffix="**", body=Query()))
    [question] = replier.queries
    replier.finish(question)
    line.heard()
    assert reply_value(question, b"\x01k", b"late")
    assert line.heard() == []


def test_our_own_questions_are_answered_on_the_long_way() -> None:
    network = Network()
    peer = network.node("peer")
    replier = peer.queryable("**")
    answers = peer.get("k")
    [question] = replier.queries
    assert not reply_value(question, b"\x01k", b"v")
    assert replier.reply(question, "k", b"v")
    replier.finish(question)
    assert answers.values() == [("k", b"v")]


# -------------------------------------------------------------------------------------- read


def is_plain(response: Message) -> bool:
    assert isinstance(response, Response)
    body = response.body
    value = body.body if isinstance(body, Reply) else None
    return response.timestamp_stack is None and not (isinstance(value, Put) and value.shm)


@given(
    st.lists(messages(spec("Response")).filter(is_plain), min_size=1, max_size=4),
    st.sampled_from(["k", "a/é"]),
)
@settings(max_examples=60, deadline=None)
def test_what_is_answered_is_heard(said: list[Message], key: str) -> None:
    line = Line()
    answers = line.peer.get("**", consolidation=NONE)
    [request] = line.heard()
    assert isinstance(request, Request)
    for response in said:
        assert isinstance(response, Response)
        response.id, response.scope, response.suffix = request.id, 0, key
        line.say(response, response)
        body = response.body
        expected = (key, body.body if isinstance(body, Reply) else body, response.responder)
        assert answers.all[-2:] == [expected, expected]
    line.say(ResponseFinal(id=request.id))
    assert answers.finals == 1


# --------------------------------------------------------------------------------- passed on


@given(
    st.lists(messages(spec("Response")).filter(is_plain), min_size=1, max_size=4),
    st.sampled_from(["k", "a/é"]),
    st.sampled_from([5, 13, 29]),
)
@settings(max_examples=60, deadline=None)
def test_what_is_answered_is_passed_on_alike(said: list[Message], key: str, qos: int) -> None:
    line = Line()
    asker = Line(line)
    asker.say(Request(id=700, scope=0, suffix="**", qos=qos, body=Query()))
    [request] = line.heard()
    assert isinstance(request, Request)
    for response in said:
        assert isinstance(response, Response)
        response.id, response.scope, response.suffix = request.id, 0, key
        line.say(response, response)
        expected = Response(
            id=700, scope=0, suffix=key, qos=qos, responder=response.responder, body=response.body
        )
        assert [write(one) for one in asker.heard()] == [write(expected)] * 2
    line.say(ResponseFinal(id=request.id))
    assert asker.heard() == [ResponseFinal(id=700, qos=qos)]


def test_ordinary_answers_are_passed_on_without_a_message() -> None:
    line = Line()
    asker = Line(line)
    asker.say(Request(id=700, scope=0, suffix="**", body=Query()))
    [request] = line.heard()
    assert isinstance(request, Request)
    [branch] = [
        branch for face in line.peer.node.tables.faces.values() for branch in face.requests.values()
    ]
    stamp = Timestamp(seconds=1 << 30, fraction=5, id=b"\x09")
    for put in (Put(payload=b"v"), Put(payload=b"v" * 300, timestamp=stamp, encoding=5)):
        line.say(response_to(request, "k", put))
        assert branch.passed is not None
        [passed] = asker.heard()
        assert isinstance(passed, Response)
        assert passed.body == Reply(body=put)
    # Who asked has gone, or has lost interest: nothing is passed on, and nothing breaks.
    branch.query.branches.clear()
    line.say(response_to(request, "k", Put(payload=b"late")))
    assert asker.heard() == []


def response_to(request: Message, key: str, body: Put) -> Response:
    assert isinstance(request, Request)
    return Response(
        id=request.id,
        scope=0,
        suffix=key,
        responder=Responder(zid=b"\x01", eid=1),
        body=Reply(body=body),
    )


def test_of_several_answers_for_a_key_the_newest_is_heard_whatever_way_they_came() -> None:
    old, new = (Timestamp(seconds=seconds, fraction=0, id=b"\x01") for seconds in (10, 20))
    plain = [Put(payload=b"old", timestamp=old), Put(payload=b"new", timestamp=new)]
    rare = [Put(payload=put.payload, timestamp=put.timestamp, attachment=b"") for put in plain]
    for first, second in [(p, q) for p in (*plain, *rare) for q in (*plain, *rare)]:
        line = Line()
        answers = line.peer.get("k", consolidation=LATEST)
        [request] = line.heard()
        line.say(response_to(request, "k", first), response_to(request, "k", second))
        assert answers.all == []
        assert isinstance(request, Request)
        line.say(ResponseFinal(id=request.id))
        newest = b"new" if b"new" in (first.payload, second.payload) else b"old"
        assert answers.values() == [("k", newest)]


def test_answers_about_other_keys_are_not_heard_unless_they_are_welcome() -> None:
    for any_key, expected in ((False, ["a/b"]), (True, ["a/b", "c", "c"])):
        line = Line()
        answers = line.peer.get("a/*", consolidation=NONE, any_key=any_key)
        [request] = line.heard()
        put = Put(payload=b"v")
        line.say(*[response_to(request, key, put) for key in ("a/b", "c", "c")])
        assert answers.keys() == expected
        # The same keys answer another question.
        again = line.peer.get("c", consolidation=NONE)
        [request] = line.heard()
        line.say(*[response_to(request, key, put) for key in ("a/b", "c")])
        assert again.keys() == ["c"]


def test_a_question_that_is_over_is_forgotten_at_once() -> None:
    line = Line()
    line.peer.get("k")
    [request] = line.heard()
    assert isinstance(request, Request)
    assert len(line.peer.node.local.gets) == 1
    line.say(ResponseFinal(id=request.id))
    assert not line.peer.node.local.gets


def test_whom_to_ask_is_found_anew_when_somebody_leaves() -> None:
    line = Line()
    line.peer.get("k")
    line.peer.get("k")
    assert len(line.heard()) == 2
    line.client.hang_up()
    line.network.run(0.01)
    assert line.peer.get("k").finals == 1


def test_damaged_answers_end_the_session() -> None:
    line = Line()
    line.peer.get("k")
    [request] = line.heard()
    whole = write(response_to(request, "k", Put(payload=b"value")))
    line.client.say(write(Frame(sn=line.sn, reliable=True, messages=()))[:2] + whole[:-1])
    line.network.run(0.01)
    assert line.client.closed


def test_errors_and_publications_are_not_taken_for_answers() -> None:
    line = Line()
    answers = line.peer.get("k", consolidation=NONE)
    [request] = line.heard()
    assert isinstance(request, Request)
    line.say(
        Push(scope=0, suffix="k", body=Put(payload=b"no answer")),
        Response(id=request.id, scope=0, suffix="k", body=Err(payload=b"no")),
        Response(id=request.id + 1, scope=0, suffix="k", body=Reply(body=Put(payload=b"whose?"))),
    )
    assert answers.errors() == [b"no"]
    assert answers.values() == []
