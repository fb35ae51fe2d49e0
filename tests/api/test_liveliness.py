from __future__ import annotations

import gc
import threading

import pytest

import zenlake
from tests.waiting import SECONDS
from zenlake import SampleKind

Pair = tuple[zenlake.Session, zenlake.Session]


def test_tokens_are_seen_to_come_and_go(pair: Pair) -> None:
    here, there = pair
    subscriber = here.liveliness().declare_subscriber("alive/*")
    token = there.liveliness().declare_token("alive/1")
    born = subscriber.recv()
    assert born.kind is SampleKind.PUT
    assert born.key_expr == "alive/1"
    token.undeclare()
    died = subscriber.recv()
    assert died.kind is SampleKind.DELETE
    assert died.key_expr == "alive/1"
    with pytest.raises(zenlake.ZError, match="Undeclared liveliness token"):
        token.undeclare()


def test_with_history_those_who_are_alive_are_told_first(pair: Pair) -> None:
    here, there = pair
    with there.liveliness().declare_token("alive/1"):
        first = here.liveliness().declare_subscriber("alive/*", history=True)
        assert first.recv().key_expr == "alive/1"
        again = here.liveliness().declare_subscriber("alive/*", history=True)
        assert again.recv().key_expr == "alive/1"
        later = here.liveliness().declare_subscriber("alive/*")
        assert later.try_recv() is None
    assert later.recv().kind is SampleKind.DELETE


def test_the_end_of_a_session_is_the_end_of_its_tokens(pair: Pair) -> None:
    here, there = pair
    subscriber = here.liveliness().declare_subscriber("alive/*")
    token = there.liveliness().declare_token("alive/1")
    assert subscriber.recv().kind is SampleKind.PUT
    there.close()
    assert subscriber.recv().kind is SampleKind.DELETE
    token.undeclare()


def test_a_forgotten_token_is_undeclared(alone: zenlake.Session) -> None:
    subscriber = alone.liveliness().declare_subscriber("alive/*")
    token = alone.liveliness().declare_token("alive/1")
    assert subscriber.recv().kind is SampleKind.PUT
    del token
    gc.collect()
    assert subscriber.recv().kind is SampleKind.DELETE


def test_who_is_alive_can_be_asked(pair: Pair) -> None:
    here, there = pair
    seen = here.liveliness().declare_subscriber("alive/*")
    tokens = [there.liveliness().declare_token(f"alive/{n}") for n in range(3)]
    for _ in tokens:
        seen.recv()
    replies = list(here.liveliness().get("alive/**"))
    keys = sorted(str(reply.ok.key_expr) for reply in replies if reply.ok is not None)
    assert keys == ["alive/0", "alive/1", "alive/2"]
    assert list(here.liveliness().get("nobody")) == []
    over = threading.Event()
    callback = zenlake.handlers.Callback[zenlake.Reply](lambda reply: None, over.set)
    assert here.liveliness().get("alive/**", callback, timeout=60) is None
    assert over.wait(SECONDS)


def test_a_cancelled_token_asks_nobody(alone: zenlake.Session) -> None:
    token = zenlake.CancellationToken()
    token.cancel()
    with pytest.raises(zenlake.ZError, match="Query was cancelled"):
        alone.liveliness().get("alive/**", cancellation_token=token)
