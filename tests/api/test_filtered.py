from __future__ import annotations

import asyncio
import json

import pytest

import zenlake
from tests.api.sessions import config, connected, connecting_to, listening, where
from tests.waiting import until
from zenlake import aio
from zenlake.errors import SelectorError


def test_a_subscriber_hears_only_what_its_filter_is_true_of() -> None:
    asked = "robot/**?_filter=battery<20 AND chunk(1)<>'x'"
    with listening() as here, connected(here) as there, here.declare_subscriber(asked) as heard:
        with there.declare_publisher("robot/a") as publisher:
            until(lambda: publisher.matching_status.matching)
        for n, key in enumerate(["robot/a", "robot/x", "robot/b"] * 10):
            there.put(key, json.dumps({"battery": n}))
        there.put("robot/a", b"no JSON")
        there.delete("robot/a")
        there.put("robot/last", json.dumps({"battery": -1}))
        found: list[int] = []
        while not found or found[-1] != -1:
            found.append(json.loads(heard.recv().payload.to_bytes())["battery"])
        assert found == [n for n in range(20) if n % 3 != 1] + [-1]
        assert str(heard.key_expr) == "robot/**"


@pytest.mark.parametrize(
    ("text", "named"),
    [("a?_filter=", "write a filter"), ("a?_filter=b<", "'b<'"), ("a?_limit=3", "'_limit'"),
     ("a?_filter=b=1;_filter=b=2", "2 times")],
)  # fmt: skip
def test_a_filter_that_means_nothing_is_refused(text: str, named: str) -> None:
    with zenlake.open(config()) as session, pytest.raises(SelectorError, match=named):
        session.declare_subscriber(text)


def test_a_filter_works_where_subscribers_are_awaited() -> None:
    def publish(there: zenlake.Session) -> None:
        with there.declare_publisher("n/a") as publisher:
            until(lambda: publisher.matching_status.matching)
            for n in range(6):
                publisher.put(str(n))

    async def hear() -> list[int]:
        with listening() as there:
            settings = config(**connecting_to(where(there)))
            async with (
                aio.open(settings) as session,
                session.declare_subscriber("n/**?_filter=value()>=3") as heard,
            ):
                # This loop is the session's own: who waits must not hold it up.
                await asyncio.to_thread(publish, there)
                return [int((await heard.recv()).payload.to_bytes()) for _ in range(3)]

    assert asyncio.run(hear()) == [3, 4, 5]
