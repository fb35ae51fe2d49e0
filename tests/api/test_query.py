from __future__ import annotations

import gc
import threading

import pytest

import zenlake
from tests.api.sessions import joined, until_matched
from tests.waiting import SECONDS
from zenlake import ConsolidationMode, Locality, QueryTarget, ReplyKeyExpr
from zenlake.handlers import Callback

Pair = tuple[zenlake.Session, zenlake.Session]


def texts(replies: object) -> list[str]:
    """What answers say, in order; errors in brackets."""
    found: list[str] = []
    assert isinstance(replies, zenlake.Handler)
    for reply in replies:
        if reply.ok is not None:
            found.append(reply.ok.payload.to_string())
        else:
            found.append(f"({reply.err.payload.to_string()})")
    return found


def test_a_question_and_its_answer_carry_all_their_options(pair: Pair) -> None:
    here, there = pair
    asked: list[zenlake.Query] = []
    stamp = here.new_timestamp()

    def answer(query: zenlake.Query) -> None:
        asked.append(query)
        query.reply("a/1", "yes", encoding="text/plain", attachment="more", timestamp=stamp)
        query.drop()

    queryable = here.declare_queryable("a/*", answer, complete=True)
    until_matched(there.declare_querier("a/1"))
    (reply,) = there.get(
        "a/1?x=1;y",
        target=QueryTarget.ALL,
        payload="why",
        encoding="text/json",
        attachment=b"beside",
        source_info=zenlake.SourceInfo(there.id, 3),
    )
    (query,) = asked
    assert str(query.selector) == "a/1?x=1;y"
    assert query.key_expr == "a/1"
    assert query.parameters.get("x") == "1"
    assert query.payload == b"why"
    assert query.encoding == "text/json"
    assert query.attachment == b"beside"
    assert query.source_info == zenlake.SourceInfo(there.id, 3)
    assert query.accepts_replies() is ReplyKeyExpr.MATCHING_QUERY
    assert str(query) == "Query(a/1?x=1;y)"
    sample = reply.ok
    assert sample is not None
    assert reply.err is None
    assert isinstance(reply.result, zenlake.Sample)
    assert sample.key_expr == "a/1"
    assert sample.payload == b"yes"
    assert sample.encoding == "text/plain"
    assert sample.attachment == b"more"
    assert sample.timestamp == stamp
    assert reply.replier_id == queryable.id


def test_a_bare_question_has_nothing_beside_it(alone: zenlake.Session) -> None:
    queryable = alone.declare_queryable("a")
    alone.get("a")
    query = queryable.recv()
    assert query.payload is None
    assert query.encoding is None
    assert query.attachment is None
    assert query.source_info is None
    assert query.timestamp_stack is None
    assert query.parameters.is_empty()


def test_errors_and_deletions_are_answers_too(pair: Pair) -> None:
    here, there = pair

    def answer(query: zenlake.Query) -> None:
        query.reply_err("broken", encoding="text/plain")
        query.reply_del("a", attachment="why")

    here.declare_queryable("a", answer)
    until_matched(there.declare_querier("a"))
    first, second = there.get("a", consolidation=ConsolidationMode.NONE)
    assert first.ok is None
    assert first.err is not None
    assert first.err.payload == b"broken"
    assert first.err.encoding == "text/plain"
    assert second.ok is not None
    assert second.ok.kind is zenlake.SampleKind.DELETE
    assert second.ok.attachment == b"why"


def test_a_callback_that_returns_without_an_answer_has_answered(pair: Pair) -> None:
    here, there = pair
    here.declare_queryable("a", lambda query: None)
    until_matched(there.declare_querier("a"))
    assert texts(there.get("a", timeout=60)) == []


def test_a_callback_that_fails_has_answered(pair: Pair) -> None:
    here, there = pair

    def answer(query: zenlake.Query) -> None:
        raise RuntimeError("this is logged")

    here.declare_queryable("a", answer)
    until_matched(there.declare_querier("a"))
    assert texts(there.get("a", timeout=60)) == []


def test_a_query_that_is_kept_is_open_until_it_is_let_go_of(pair: Pair) -> None:
    here, there = pair
    kept: list[zenlake.Query] = []
    came = threading.Event()

    def answer(query: zenlake.Query) -> None:
        kept.append(query)
        came.set()

    here.declare_queryable("a", answer)
    until_matched(there.declare_querier("a"))
    replies = there.get("a", timeout=60, consolidation=ConsolidationMode.NONE)
    assert came.wait(SECONDS)
    kept[0].reply("a", "late")
    first = replies.recv()
    assert first.ok is not None
    assert first.ok.payload == b"late"
    assert replies.try_recv() is None
    kept.clear()
    gc.collect()
    assert list(replies) == []


def test_a_finalised_query_takes_no_more_answers(alone: zenlake.Session) -> None:
    queryable = alone.declare_queryable("a")
    replies = alone.get("a")
    with queryable.recv() as query:
        query.reply("a", "1")
    query.drop()
    with pytest.raises(zenlake.ZError, match="finalised"):
        query.reply("a", "2")
    assert texts(replies) == ["1"]


def test_an_answer_about_another_key_is_refused_unless_it_is_welcome(
    alone: zenlake.Session,
) -> None:
    queryable = alone.declare_queryable("a")
    alone.get("a")
    with queryable.recv() as query, pytest.raises(zenlake.ZError, match="does not match"):
        query.reply("b", "x")
    replies = alone.get("a?x=1", accept_replies=ReplyKeyExpr.ANY)
    with queryable.recv() as query:
        assert query.accepts_replies() is ReplyKeyExpr.ANY
        assert query.parameters.get("x") == "1"
        query.reply("b", "x")
    assert texts(replies) == ["x"]


def test_of_several_answers_for_a_key_consolidation_passes_on_some(alone: zenlake.Session) -> None:
    stamps = [alone.new_timestamp() for _ in range(3)]

    def answer(query: zenlake.Query) -> None:
        for name in (1, 0, 2):
            query.reply("a", str(name), timestamp=stamps[name])

    alone.declare_queryable("a", answer)
    for mode, expected in (
        (ConsolidationMode.NONE, ["1", "0", "2"]),
        (ConsolidationMode.MONOTONIC, ["1", "2"]),
        (ConsolidationMode.LATEST, ["2"]),
        (zenlake.QueryConsolidation.AUTO, ["2"]),
        (None, ["2"]),
    ):
        assert texts(alone.get("a", consolidation=mode)) == expected
    assert texts(alone.get("a?_time=[now(-1h)..]")) == ["1", "0", "2"]


def test_a_question_that_nobody_answers_ends_in_time(alone: zenlake.Session) -> None:
    queryable = alone.declare_queryable("a")
    assert texts(alone.get("a", timeout=0.01)) == ["(Timeout)"]
    assert queryable.recv().key_expr == "a"
    assert texts(alone.get("nobody")) == []
    with pytest.raises(ValueError, match="negative timeout"):
        alone.get("a", timeout=-1)


def test_locality_decides_who_is_asked(pair: Pair) -> None:
    here, there = pair
    here.declare_queryable("a", lambda query: query.reply("a", "here"))
    there.declare_queryable("a", lambda query: query.reply("a", "there"))
    until_matched(there.declare_querier("a", allowed_destination=Locality.REMOTE))

    def ask(locality: Locality) -> list[str]:
        return sorted(
            texts(
                there.get(
                    "a",
                    target=QueryTarget.ALL,
                    consolidation=ConsolidationMode.NONE,
                    allowed_destination=locality,
                )
            )
        )

    assert ask(Locality.REMOTE) == ["here"]
    assert ask(Locality.SESSION_LOCAL) == ["there"]
    assert ask(Locality.ANY) == ["here", "there"]


def test_answers_may_come_to_a_callback(pair: Pair) -> None:
    here, there = pair
    here.declare_queryable("a", lambda query: query.reply("a", "x"))
    until_matched(there.declare_querier("a"))
    got: list[zenlake.Reply] = []
    over = threading.Event()
    assert there.get("a", Callback[zenlake.Reply](got.append, over.set)) is None
    assert over.wait(SECONDS)
    assert [reply.ok.payload for reply in got if reply.ok is not None] == [b"x"]


def test_a_querier_asks_as_it_was_declared(pair: Pair) -> None:
    here, there = pair
    queryable = here.declare_queryable("a/**")
    querier = there.declare_querier("a/b", accept_replies=ReplyKeyExpr.ANY, timeout=60)
    until_matched(querier)
    assert querier.matching_status.matching
    assert querier.key_expr == "a/b"
    assert querier.accept_replies is ReplyKeyExpr.ANY
    assert querier.id.zid == there.zid()
    replies = querier.get(parameters={"x": "1"}, payload="p", attachment="q")
    with queryable.recv() as query:
        assert query.parameters.get("x") == "1"
        assert query.accepts_replies() is ReplyKeyExpr.ANY
        assert query.payload == b"p"
        assert query.attachment == b"q"
        query.reply("elsewhere", "x")
    assert texts(replies) == ["x"]
    querier.undeclare()
    with pytest.raises(zenlake.ZError, match="Undeclared querier"):
        querier.get()


def test_cancelling_ends_a_question_at_once(alone: zenlake.Session) -> None:
    queryable = alone.declare_queryable("a")
    token = zenlake.CancellationToken()
    replies = alone.get("a", timeout=3600, cancellation_token=token)
    query = queryable.recv()
    assert not token.is_cancelled
    token.cancel()
    token.cancel()
    assert token.is_cancelled
    assert list(replies) == []
    query.reply("a", "too late")
    with pytest.raises(zenlake.ZError, match="Query was cancelled"):
        alone.get("a", cancellation_token=token)


def test_cancelling_waits_for_the_callback_that_is_running(alone: zenlake.Session) -> None:
    queryable = alone.declare_queryable("a")
    token = zenlake.CancellationToken()
    entered, leave = threading.Event(), threading.Event()
    got: list[str] = []

    def callback(reply: zenlake.Reply) -> None:
        entered.set()
        leave.wait(SECONDS)
        got.append("called")

    alone.get(
        "a", callback, timeout=3600, cancellation_token=token, consolidation=ConsolidationMode.NONE
    )
    query = queryable.recv()
    query.reply("a", "1")
    query.reply("a", "2")
    assert entered.wait(SECONDS)
    canceller = threading.Thread(target=token.cancel)
    canceller.start()
    assert canceller.is_alive()
    leave.set()
    canceller.join(SECONDS)
    assert got == ["called"]


def test_a_callback_may_cancel_its_own_question(alone: zenlake.Session) -> None:
    queryable = alone.declare_queryable("a")
    token = zenlake.CancellationToken()
    over = threading.Event()
    callback = Callback[zenlake.Reply](lambda reply: token.cancel(), over.set)
    alone.get(
        "a", callback, timeout=3600, cancellation_token=token, consolidation=ConsolidationMode.NONE
    )
    query = queryable.recv()
    query.reply("a", "1")
    assert over.wait(SECONDS)


def test_a_thousand_answers_all_arrive(pair: Pair) -> None:
    here, there = pair

    def answer(query: zenlake.Query) -> None:
        for n in range(1000):
            query.reply(f"a/{n}", str(n))

    here.declare_queryable("a/*", answer)
    until_matched(there.declare_querier("a/*"))
    assert sorted(texts(there.get("a/*")), key=int) == [str(n) for n in range(1000)]


def test_closing_a_session_ends_the_questions_it_asked(alone: zenlake.Session) -> None:
    queryable = alone.declare_queryable("a")
    replies = alone.get("a", timeout=3600)
    query = queryable.recv()
    alone.close()
    assert list(replies) == []
    query.drop()
    with pytest.raises(zenlake.ZError, match=r"closed|finalised"):
        query.reply("a", "x")


def test_a_reply_has_the_qos_of_its_query_and_what_says_otherwise_is_refused() -> None:
    def answer(query: zenlake.Query) -> None:
        with pytest.raises(zenlake.ZError, match="priority of its query, DATA_HIGH"):
            query.reply("a", b"", priority=zenlake.Priority.BACKGROUND)
        with pytest.raises(zenlake.ZError, match="congestion control of its query, BLOCK"):
            query.reply_del("a", congestion_control=zenlake.CongestionControl.DROP)
        query.reply("a", b"1", priority=zenlake.Priority.DATA_HIGH, express=True)
        query.reply("a", b"2", congestion_control=zenlake.CongestionControl.BLOCK)

    with joined() as (here, there):
        queryable = here.declare_queryable("a", answer)
        querier = there.declare_querier(
            "a",
            priority=zenlake.Priority.DATA_HIGH,
            consolidation=zenlake.ConsolidationMode.NONE,
        )
        until_matched(querier)
        samples = [reply.ok for reply in querier.get()]
        queryable.undeclare()
    assert [one.payload.to_string() for one in samples if one] == ["1", "2"]
    assert {one.priority for one in samples if one} == {zenlake.Priority.DATA_HIGH}
