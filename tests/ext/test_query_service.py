"""The pool that answers queries: askers in turn, within bounds, saying what is wrong."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import pytest

import zenlake
from tests.api.sessions import connected, listening, until_matched
from tests.waiting import SECONDS, until
from zenlake.errors import JournalGap, LocalError, SelectorError
from zenlake.ext.query_service import QueryService, acknowledge, is_quick


class World:
    """A router whose queries a service answers, and two clients that ask."""

    def __init__(self, held: ExitStack, service: QueryService) -> None:
        self.service = service
        self.router = held.enter_context(listening(mode='"router"'))
        self.answer: Callable[[zenlake.Query], None] = lambda query: query.reply(
            query.key_expr, str(query.parameters)
        )
        held.enter_context(self.router.declare_queryable("k/**", self.received))
        self.one, self.other = (
            held.enter_context(connected(self.router, mode='"client"')) for _ in range(2)
        )
        for asker in (self.one, self.other):
            until_matched(held.enter_context(asker.declare_querier("k/a")))

    def received(self, query: zenlake.Query) -> None:
        self.service.later(query, lambda query: self.answer(query))


@pytest.fixture
def world() -> Iterator[World]:
    service = QueryService("test", threads=1, most=8)
    with ExitStack() as held:
        found = World(held, service)
        held.callback(service.close)
        yield found


def asked(session: zenlake.Session, selector: str = "k/a") -> Iterable[zenlake.Reply]:
    """Ask, and wait for no answer."""
    return session.get(selector, timeout=SECONDS)


def words(reply: zenlake.Reply) -> dict[str, object]:
    assert reply.err is not None
    assert str(reply.err.encoding) == "application/json"
    told: dict[str, object] = json.loads(reply.err.payload.to_bytes())
    return told


def test_a_query_is_answered_and_counted(world: World) -> None:
    (reply,) = asked(world.one, "k/a?x=1")
    assert reply.ok is not None
    assert reply.ok.payload.to_string() == "x=1"
    until(lambda: world.service.answered == 1)
    assert world.service.refused.total() == 0


@pytest.mark.parametrize(
    ("error", "told", "reason", "lines"),
    [
        (SelectorError("no such thing"), {"error": "no such thing"}, "invalid", 0),
        (OSError("the disk"), {"error": "the disk"}, "failed", 0),
        (ValueError("a defect"), {"error": "a defect"}, "failed", 1),
        (JournalGap("rows are gone", 3, 17), {"partition": 3, "earliest": 17}, "invalid", 0),
    ],
)
def test_what_is_wrong_is_told_and_counted_and_a_defect_is_logged(
    world: World,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    told: dict[str, object],
    reason: str,
    lines: int,
) -> None:
    def fail(query: zenlake.Query) -> None:
        raise error

    world.answer = fail
    with caplog.at_level(logging.ERROR, "zenlake.ext"):
        (reply,) = asked(world.one)
    assert words(reply).items() >= told.items()
    assert dict(world.service.refused) == {reason: 1}
    assert world.service.answered == 0
    assert len(caplog.records) == lines


def test_who_asks_much_is_refused_and_others_are_answered_in_turn(world: World) -> None:
    go, begun = threading.Event(), threading.Event()
    answered: list[str] = []

    def wait(query: zenlake.Query) -> None:
        begun.set()
        go.wait(SECONDS)
        answered.append(str(query.parameters))
        query.reply(query.key_expr, "late")

    world.answer = wait
    first = asked(world.one, "k/a?begun")
    assert begun.wait(SECONDS)
    # Half of those that may wait may be of one asker.
    waiting = [asked(world.one, f"k/a?{n}") for n in range(4)]
    (reply,) = asked(world.one, "k/a?more")
    assert words(reply) == {"error": "too many queries wait already; ask again"}
    assert dict(world.service.refused) == {"busy": 1}
    other = asked(world.other, "k/a?other")
    until(lambda: world.service._lanes.waiting == 5)
    go.set()
    for replies in (first, *waiting, other):
        assert [reply.ok is not None for reply in replies] == [True]
    assert answered == ["begun", "0", "other", "1", "2", "3"] or answered == [
        "begun", "other", "0", "1", "2", "3",
    ]  # fmt: skip


def test_a_caller_that_holds_the_lock_of_the_node_refuses_too(world: World) -> None:
    go, begun = threading.Event(), threading.Event()

    def wait(query: zenlake.Query) -> None:
        begun.set()
        go.wait(SECONDS)

    def received(query: zenlake.Query) -> None:
        with world.router.runtime.locked():
            world.service.later_locked(query, wait)

    with (
        world.router.declare_queryable("locked", received),
        world.one.declare_querier("locked") as querier,
    ):
        until_matched(querier)
        running = [asked(world.one, "locked")]
        assert begun.wait(SECONDS)
        running += [asked(world.one, "locked") for _ in range(4)]
        (reply,) = asked(world.one, "locked")
        assert words(reply) == {"error": "too many queries wait already; ask again"}
        assert dict(world.service.refused) == {"busy": 1}
        go.set()
        assert [list(replies) for replies in running] == [[]] * 5


def test_who_has_gone_is_answered_no_more(world: World) -> None:
    begun, over = threading.Event(), threading.Event()

    def send(query: zenlake.Query) -> None:
        begun.set()
        until(lambda: world.service.is_over(query))
        over.set()

    world.answer = send
    replies = asked(world.one)
    assert begun.wait(SECONDS)
    assert not over.is_set()
    world.one.close()
    assert over.wait(SECONDS)
    assert list(replies) == []


def test_a_service_that_is_closed_ends_what_it_answers_and_begins_nothing(world: World) -> None:
    begun = threading.Event()

    def send(query: zenlake.Query) -> None:
        begun.set()
        until(lambda: world.service.is_over(query))

    world.answer = send
    running, waiting = asked(world.one), asked(world.one)
    assert begun.wait(SECONDS)
    world.service.close()
    assert list(running) == []
    assert list(waiting) == []
    assert list(asked(world.other)) == []
    assert world.service.refused.total() == 0


def test_one_key_whose_asker_reads_is_quick(world: World) -> None:
    found: dict[str, bool] = {}

    def look(query: zenlake.Query) -> None:
        found[str(query.key_expr)] = is_quick(query)

    world.answer = look
    for key in ("k/a", "k/*"):
        list(asked(world.one, key))
    assert found == {"k/a": True, "k/*": False}


def test_an_acknowledged_put_is_published_and_its_receipt_has_the_time(world: World) -> None:
    def store(key: str, stamp: zenlake.Timestamp, publish: Callable[[], None]) -> dict[str, object]:
        if key == "k/refused":
            raise LocalError("it is not kept")
        publish()
        return {"place": 7}

    world.answer = lambda query: acknowledge(world.router, query, store)
    with world.router.declare_subscriber("k/**") as subscriber:
        (reply,) = world.one.get("k/a", payload="x", attachment="y", timeout=SECONDS)
        heard = subscriber.recv()
        assert reply.ok is not None
        receipt = json.loads(reply.ok.payload.to_bytes())
        assert receipt == {"place": 7, "timestamp": str(heard.timestamp)}
        assert heard.payload.to_string() == "x"
        assert heard.attachment is not None
        assert heard.attachment.to_string() == "y"
        (refused,) = asked(world.one, "k/refused")
        assert words(refused) == {"error": "it is not kept"}
        (wild,) = asked(world.one, "k/*")
        assert "has wildcards" in str(words(wild)["error"])
        assert subscriber.try_recv() is None
