"""Results of views and alerts on the bus: none is lost because a router is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import zenlake
from tests.api.sessions import config, connected, listening, where
from tests.ext.cable import Cable
from tests.ports import free_port
from tests.waiting import until
from zenlake.lake.continuous.publishing import MOST, RECENT, ResultPublisher


@contextmanager
def router(port: int) -> Iterator[list[tuple[str, int]]]:
    """A router that can be reached once it has a subscriber, and what that hears."""
    heard: list[tuple[str, int]] = []

    def take(sample: zenlake.Sample) -> None:
        heard.append((str(sample.key_expr), json.loads(sample.payload.to_bytes())["n"]))

    # What comes before somebody subscribes is heard by nobody, and does not come again.
    with (
        listening(mode='"router"') as session,
        session.declare_subscriber("alert/**", take),
        Cable(where(session), port=port),
    ):
        yield heard


def lake(port: int) -> zenlake.Session:
    """As a lake connects: the router may come later, or again."""
    retry = "{period_init_ms: 10, period_max_ms: 50}"
    return zenlake.open(
        config(
            mode='"client"',
            connect__endpoints=f'["tcp/127.0.0.1:{port}"]',
            connect__timeout_ms="-1",
            connect__exit_on_failure="false",
            connect__retry=retry,
        )
    )


def test_results_wait_for_a_router_and_come_again_if_their_link_broke() -> None:
    port = free_port()

    def come(count: int) -> bool:
        publisher.look()  # as the lake does every second
        return len(heard) >= count

    with ExitStack() as first:
        heard = first.enter_context(router(port))
        with lake(port) as session:
            publisher = ResultPublisher(session, "alert/low")
            publisher.put("robot/1", {"n": 0})
            publisher.put("robot/1", {"n": 1})
            until(lambda: come(2))
            publisher.look()
            assert heard == [("alert/low/robot/1", n) for n in range(2)]
            first.close()
            until(lambda: not session.info.links())
            publisher.put("robot/2", {"n": 2})
            assert (publisher.published, publisher.waiting) == (2, 1)
            with router(port) as heard:
                until(lambda: come(3))
                publisher.look()
                # Nobody knows whether the first two came before the link broke.
                assert heard == [(f"alert/low/robot/{1 + n // 2}", n) for n in range(3)]
            publisher.close()


def test_what_was_published_long_ago_does_not_come_again_and_so_many_wait() -> None:
    port = free_port()
    now = 0.0

    def come(count: int) -> bool:
        publisher.look()
        return len(heard) >= count

    with ExitStack() as first:
        heard = first.enter_context(router(port))
        with lake(port) as session:
            publisher = ResultPublisher(session, "alert/low", lambda: now)
            publisher.put("a", {"n": -1})
            until(lambda: come(1))
            now = RECENT + 1.0
            publisher.look()  # it has come by now, or the link would have broken
            first.close()
            until(lambda: not session.info.links())
            for n in range(MOST + 3):
                publisher.put("a", {"n": n})
            assert (publisher.waiting, publisher.lost) == (MOST, 3)
            with router(port) as heard:
                until(lambda: come(MOST))
                assert heard == [("alert/low/a", n) for n in range(3, MOST + 3)]


def test_however_long_there_is_no_link_what_went_into_the_broken_one_comes_again() -> None:
    port = free_port()
    now = 0.0
    with ExitStack() as first:
        first.enter_context(router(port))
        with lake(port) as session:
            until(lambda: session.info.links())
            publisher = ResultPublisher(session, "alert/low", lambda: now)
            publisher.put("a", {"n": 1})
            first.close()
            until(lambda: not session.info.links())
            publisher.look()
            now = 10 * RECENT
            publisher.look()
            with router(port) as heard:
                until(lambda: session.info.links())
                publisher.look()
                until(lambda: heard == [("alert/low/a", 1)])


def test_one_more_link_is_no_loss() -> None:
    with (
        listening(mode='"router"') as session,
        session.declare_subscriber("alert/**") as heard,
        connected(session),
    ):
        publisher = ResultPublisher(session, "alert/low")
        publisher.put("a", {"n": 1})
        before = len(session.info.links())
        with connected(session):
            until(lambda: len(session.info.links()) > before)
            publisher.look()
        assert publisher.published == 1
        publisher.look()  # but one less may be
        assert publisher.published == 2
        assert [str(heard.recv().key_expr) for _ in range(2)] == ["alert/low/a"] * 2


def test_a_router_needs_nobody_else_to_publish() -> None:
    with listening(mode='"router"') as session, session.declare_subscriber("alert/**") as heard:
        ResultPublisher(session, "alert/low").put("", {"n": 1})
        assert str(heard.recv().key_expr) == "alert/low"


def test_what_was_held_goes_on_with_its_results_and_none_that_its_owner_may_not_put() -> None:
    port = free_port()

    def come(count: int) -> bool:
        publisher.look()
        return len(heard) >= count

    with ExitStack() as first:
        first.enter_context(router(port))
        with lake(port) as session:
            first.close()
            until(lambda: not session.info.links())
            held = ResultPublisher(session, "alert/low")
            held.put("robot/1", {"n": 0})
            unsent = held.unsent()
            held.close()
            held.put("robot/1", {"n": 7})  # by a batch that ends too late
            publisher = ResultPublisher(
                session, "alert/low", may_put=lambda key: "/no/" not in key, unsent=unsent
            )
            publisher.put("no/1", {"n": 1})
            publisher.put("robot/2", {"n": 2})
            with router(port) as heard:
                until(lambda: come(2))
                held.look()
                publisher.look()
                assert heard == [("alert/low/robot/1", 0), ("alert/low/robot/2", 2)]
            assert (publisher.published, publisher.denied, held.published) == (2, 1, 0)
            publisher.close()
