"""An exception leaves the block of anything that is declared, whatever build is running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import zenlake
from tests.api.sessions import config
from tests.waiting import SECONDS

ENTITIES: dict[str, Callable[[zenlake.Session], Any]] = {
    "subscriber": lambda session: session.declare_subscriber("a/**"),
    "callback": lambda session: session.declare_subscriber("a/**", lambda sample: None),
    "publisher": lambda session: session.declare_publisher("a/b"),
    "queryable": lambda session: session.declare_queryable("a/b"),
    "querier": lambda session: session.declare_querier("a/b"),
    "token": lambda session: session.liveliness().declare_token("a/b"),
    "liveliness": lambda session: session.liveliness().declare_subscriber("a/**"),
    "matching": lambda session: session.declare_publisher("a/c").declare_matching_listener(),
    "transports": lambda session: session.info.declare_transport_events_listener(),
    "links": lambda session: session.info.declare_link_events_listener(),
    "advanced publisher": lambda session: zenlake.ext.declare_advanced_publisher(session, "a/b"),
    "advanced subscriber": lambda session: zenlake.ext.declare_advanced_subscriber(session, "a/b"),
}


class Interruption(BaseException):
    """What nobody expects inside a block."""


@pytest.mark.parametrize("name", ENTITIES)
def test_an_exception_leaves_the_block_of_what_nothing_else_holds(name: str) -> None:
    with zenlake.open(config()) as session:
        # Nothing but the block holds the entity: it dies while the exception is on its way.
        with pytest.raises(Interruption), ENTITIES[name](session):
            raise Interruption
        assert not session.is_closed()


def test_an_exception_leaves_the_block_of_a_question() -> None:
    with zenlake.open(config()) as session:
        asked = session.declare_queryable("a")
        replies = session.get("a", timeout=SECONDS)
        with pytest.raises(Interruption), asked.recv():
            raise Interruption
        assert list(replies) == []


def test_an_exception_leaves_the_block_of_a_session() -> None:
    with pytest.raises(Interruption), zenlake.open(config()):
        raise Interruption
