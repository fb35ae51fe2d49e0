"""One who asks much, and others, behind a router: a service answers each in turn."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
import zenoh
import zenoh.ext

import zenlake
from tests.api.sessions import connected, listening, where
from tests.hostile.doors import Sockets
from tests.rest.conftest import plugins, url_of
from tests.waiting import SECONDS, until
from zenlake.ext.query_service import JSON, QueryService

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

#: A lake has these, only more of each.
THREADS, SHARE, MOST = 2, 1, 16
KEY = "@lake/sql"
SLOW = "SLOW"
MANY = 2 * MOST


class Lake:
    """Answers on `@lake/sql` behind a router, slow questions when it is told to."""

    def __init__(self, session: zenlake.Session) -> None:
        self.go = threading.Event()
        self.service = QueryService("lake", THREADS, SHARE, most=MOST)
        self._queryable = session.declare_queryable(
            KEY, lambda query: self.service.later(query, self._answer)
        )

    def _answer(self, query: zenlake.Query) -> None:
        if str(query.parameters).endswith(SLOW):
            assert self.go.wait(SECONDS)
        query.reply(KEY, b"1", encoding=JSON)

    @property
    def refused(self) -> int:
        return self.service.refused["busy"]

    def close(self) -> None:
        self.go.set()
        self.service.close()


class World:
    """A router with HTTP, and a lake that is a client of it."""

    def __init__(self, router: zenlake.Session, lake: Lake, closing: ExitStack) -> None:
        self.router = router
        self.lake = lake
        self.closing = closing

    def client(self) -> zenlake.Session:
        return self.closing.enter_context(connected(self.router, mode='"client"'))

    def eclipse(self) -> zenoh.Session:
        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where(self.router)]))
        return self.closing.enter_context(zenoh.open(config))

    def web(self, address: str, **more: Any) -> httpx.Client:
        transport = httpx.HTTPTransport(
            local_address=address, limits=httpx.Limits(max_connections=None)
        )
        made = httpx.Client(
            base_url=url_of(self.router), timeout=SECONDS, transport=transport, **more
        )
        return self.closing.enter_context(made)

    @contextmanager
    def greed(self, ask: Any) -> Iterator[None]:
        """Somebody asks slow questions until the lake refuses some, and waits for the others.

        `ask`: asks one of them, with a number, and returns when it was answered.
        """
        before = self.lake.refused
        with ThreadPoolExecutor(MANY) as threads:
            waiting = [threads.submit(ask, number) for number in range(MANY)]
            try:
                # One is being answered, and as many wait as may of one asker.
                until(lambda: self.lake.refused - before >= MANY - MOST // 2 - SHARE)
                yield
                assert any(not one.done() for one in waiting)
            finally:
                self.lake.go.set()
            for one in waiting:
                one.result()
        self.lake.go.clear()


@contextmanager
def world_of(**rest: object) -> Iterator[World]:
    with ExitStack() as closing:
        router = closing.enter_context(
            listening(mode='"router"', plugins=plugins(**rest), adminspace__enabled="true")
        )
        bus = closing.enter_context(connected(router, mode='"client"'))
        lake = Lake(bus)
        closing.callback(lake.close)
        yield World(router, lake, closing)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with world_of() as made:
        yield made


def answer(session: Any, selector: str = KEY) -> bytes:
    """The answer to a question, or the error."""
    (reply,) = session.get(selector, timeout=SECONDS)
    told = reply.err if reply.ok is None else reply.ok
    return bytes(told.payload.to_bytes())


def page(web: httpx.Client, sql: str = "QUICK", **more: Any) -> Any:
    (row,) = web.get(f"/{KEY}", params={"_sql": sql}, **more).json()
    return row["value"]


@pytest.mark.parametrize("greedy", ["zenlake", "eclipse"])
def test_one_client_that_asks_much_keeps_nobody_waiting(world: World, greedy: str) -> None:
    many = world.client() if greedy == "zenlake" else world.eclipse()
    others = [world.eclipse(), *(world.client() for _ in range(4)), world.eclipse()]

    def ask(number: int) -> None:
        # It would be somebody else each time.
        answer(many, f"{KEY}?_asker=forged{number};_sql={SLOW}")

    with world.greed(ask):
        for _ in range(3):
            assert [answer(one) for one in others] == [b"1"] * len(others)
        assert page(world.web("127.0.0.1")) == 1


def test_one_address_that_asks_much_over_http_keeps_nobody_waiting(world: World) -> None:
    many, other = world.web("127.0.0.2"), world.web("127.0.0.3")
    client = world.client()

    def ask(number: int) -> None:
        page(many, SLOW, headers={"x-number": str(number)})

    with world.greed(ask):
        assert page(other) == 1
        assert answer(client) == b"1"
        # Its address is known by, whatever it writes.
        forged = many.get(f"/{KEY}?_asker=forged").json()
        assert "too many queries wait" in str(forged)


def test_an_address_is_one_asker_over_http_and_websockets(world: World) -> None:
    asked = f"{KEY}?_sql=QUICK"
    socket = Sockets(url_of(world.router).replace("http:", "ws:"), "/@ws", "", "")
    world.closing.callback(socket.close)
    elsewhere, here = world.web("127.0.0.2"), world.web("127.0.0.1")
    with world.greed(lambda number: page(elsewhere, SLOW)):
        assert socket.get(asked) == {KEY}
    with world.greed(lambda number: page(here, SLOW)):
        # An error is given under what was asked.
        assert socket.get(asked) == {asked}
        assert socket.get(f"{KEY}?_asker=forged") == {f"{KEY}?_asker=forged"}


def test_one_user_that_asks_much_over_http_keeps_no_other_user_waiting(tmp_path: Any) -> None:
    tokens = tmp_path / "tokens"
    words = {"ada": "ada-ada-ada-ada-ada", "bob": "bob-bob-bob-bob-bob"}
    tokens.write_text("".join(f"{user}:{word}\n" for user, word in words.items()))
    tokens.chmod(0o600)
    with world_of(tokens_file=str(tokens)) as world:
        ada, bob = (
            world.web("127.0.0.1", headers={"authorization": f"Bearer {word}"})
            for word in words.values()
        )
        with world.greed(lambda number: page(ada, SLOW)):
            assert page(bob) == 1
            elsewhere = world.web("127.0.0.2", headers={"authorization": f"Bearer {words['ada']}"})
            assert "too many queries wait" in str(elsewhere.get(f"/{KEY}").json())


def test_applications_of_eclipse_are_asked_what_was_asked(world: World) -> None:
    one, other = world.eclipse(), world.eclipse()
    asked: list[str] = []

    def reply(query: zenoh.Query) -> None:
        with query:
            asked.append(str(query.parameters))
            query.reply("robot/1", b"1")

    span = "_time=[now(-1h)..]"
    with other.declare_queryable("robot/1", reply):
        for parameters in ("", "speed=3;x", "_max=1;_sn=1..2", f"{span};x=1"):
            assert answer(one, f"robot/1?{parameters}") == b"1"
    *plain, past = asked
    assert plain == ["", "speed=3;x", "_max=1;_sn=1..2"]
    assert past.startswith("_asker=")
    assert past.endswith(f";{span};x=1")


def test_a_cache_of_eclipse_gives_what_is_not_too_old(world: World) -> None:
    one, other = world.eclipse(), world.eclipse()
    publisher = zenoh.ext.declare_advanced_publisher(
        other,
        "cached/1",
        cache=zenoh.ext.CacheConfig(max_samples=10),
        sample_miss_detection=zenoh.ext.MissDetectionConfig(
            heartbeat=None, sporadic_heartbeat=None
        ),
        publisher_detection=True,
    )
    with publisher:
        publisher.put(b"before")
        history = zenoh.ext.HistoryConfig(detect_late_publishers=True, max_age=600.0)
        heard: list[bytes] = []
        subscriber = zenoh.ext.declare_advanced_subscriber(
            one,
            "cached/1",
            lambda sample: heard.append(sample.payload.to_bytes()),
            history=history,
        )
        with subscriber:
            until(lambda: heard == [b"before"])
