"""Answers are held among those of all clients until they are taken, and refused without room."""

from __future__ import annotations

import socket
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

import zenlake
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS, until
from zenlake.http.connections import Connections
from zenlake.rest import RestService
from zenlake.rest.streams import WAITING_BYTES

VALUE = 8 << 20
BOUNDS = {"max_answer": 2 * VALUE, "max_unsent": 1}
"""Answers hold four values in all, and three of one address."""


@pytest.fixture(scope="module")
def node() -> Iterator[zenlake.Session]:
    with router(plugins(**BOUNDS)) as session:
        session.put("demo/large", bytes(VALUE))
        session.put("demo/marks", b"<" * VALUE)
        until(lambda: len(list(session.get("demo/*"))) == 2)
        yield session


def connections(node: zenlake.Session) -> Connections:
    service = node.runtime.services["zenlake.rest"]
    assert isinstance(service, RestService)
    assert service._serving is not None
    return service._serving.connections


def asking(
    node: zenlake.Session, target: str, method: str = "GET", accept: str = "*/*"
) -> socket.socket:
    """A client that asks and takes nothing of the answer."""
    host, _, port = url_of(node).removeprefix("http://").rpartition(":")
    link = socket.socket()
    link.settimeout(SECONDS)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect((host, int(port)))
    heads = f"Host: localhost\r\nAccept: {accept}\r\n"
    link.sendall(f"{method} {target} HTTP/1.1\r\n{heads}\r\n".encode())
    return link


def head(link: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += link.recv(4096)
    return data.partition(b"\r\n\r\n")[0]


def client(node: zenlake.Session, source: str = "127.0.0.1") -> httpx.Client:
    transport = httpx.HTTPTransport(local_address=source)
    return httpx.Client(base_url=url_of(node), timeout=SECONDS, transport=transport)


def test_who_takes_nothing_holds_the_share_of_an_address_and_others_are_answered(
    node: zenlake.Session,
) -> None:
    answers = connections(node).answers
    with ExitStack() as held:
        many = [held.enter_context(asking(node, "/demo/large")) for _ in range(10)]
        heads = [head(link) for link in many]
        refused = [one for one in heads if one.startswith(b"HTTP/1.1 503 ")]
        answered = [one for one in heads if one.startswith(b"HTTP/1.1 200 ")]
        assert len(refused) + len(answered) == 10
        assert answered
        assert len(refused) > 5
        assert all(b"retry-after: 1" in one for one in refused)
        assert VALUE < answers.taken <= answers.most_of_one
        with client(node) as mine, client(node, "127.0.0.2") as other:
            assert mine.get("/health").status_code == 200
            assert mine.get("/demo/large?_raw").status_code == 503
            assert other.get("/demo/large?_raw").content == bytes(VALUE)
            told = mine.get("/metrics").text
            assert any("http_refused" in one and '"memory"' in one for one in told.splitlines())
            (unsent,) = (line for line in told.splitlines() if line.startswith("zenoh_http_unsent"))
            assert int(unsent.split()[-1]) > VALUE
            shown = mine.get("/status").json()["services"]["status/plugins/rest/connections"]
            assert shown["unsent_bytes"] > VALUE
            assert shown["most_unsent_bytes"] == answers.most
    until(lambda: answers.taken == 0)


def test_of_an_answer_without_a_body_nothing_waits(node: zenlake.Session) -> None:
    answers = connections(node).answers
    with ExitStack() as held:
        for _ in range(10):
            link = held.enter_context(asking(node, "/demo/large", "HEAD"))
            assert head(link).startswith(b"HTTP/1.1 200 ")
        until(lambda: answers.taken == 0)


def test_who_takes_a_large_answer_gets_all_of_it_again_and_again(node: zenlake.Session) -> None:
    with client(node) as web:
        for _ in range(5):
            assert len(web.get("/demo/large").json()[0]["value"]) > VALUE
    until(lambda: connections(node).answers.taken == 0)


def test_an_answer_that_no_address_may_have_is_refused_for_good(node: zenlake.Session) -> None:
    with client(node) as web:
        refused = web.get("/demo/marks", headers={"accept": "text/html"})
    assert refused.status_code == 413
    assert "max_unsent" in refused.text
    assert "retry-after" not in refused.headers


def test_replies_hold_memory_while_they_come(node: zenlake.Session) -> None:
    answers = connections(node).answers
    asked: list[zenlake.Query] = []
    with node.declare_queryable("slow/**", asked.append), asking(node, "/slow/**") as link:
        until(lambda: asked)
        for number in range(2):
            asked[0].reply(f"slow/{number}", bytes(VALUE))
        until(lambda: 2 * VALUE <= answers.taken <= answers.most_of_one)
        with asking(node, "/demo/large") as second:
            assert head(second).startswith(b"HTTP/1.1 503 ")
        asked.pop().drop()
        assert head(link).startswith(b"HTTP/1.1 200 ")
    until(lambda: answers.taken == 0)


def test_replies_for_which_there_is_no_room_end_the_question(node: zenlake.Session) -> None:
    answers = connections(node).answers
    asked: dict[str, zenlake.Query] = {}
    with (
        node.declare_queryable("slow/**", lambda query: asked.update({str(query.key_expr): query})),
        asking(node, "/slow/a/**") as first,
        asking(node, "/slow/b/**") as second,
    ):
        until(lambda: len(asked) == 2)
        for number in range(2):
            asked["slow/a/**"].reply(f"slow/a/{number}", bytes(VALUE))
        until(lambda: answers.taken > 2 * VALUE)
        asked["slow/b/**"].reply("slow/b/0", bytes(VALUE))
        assert head(second).startswith(b"HTTP/1.1 503 ")
        for query in asked.values():
            query.drop()
        asked.clear()
        assert head(first).startswith(b"HTTP/1.1 200 ")
    until(lambda: answers.taken == 0)


def test_what_waits_for_a_reader_of_events_is_held(node: zenlake.Session) -> None:
    answers = connections(node).answers
    with asking(node, "/flood/**?_cut=999999", accept="text/event-stream") as slow:
        assert head(slow).startswith(b"HTTP/1.1 200 ")

        def is_held() -> bool:
            node.put("flood/a", bytes(100_000))
            return answers.taken > WAITING_BYTES

        until(is_held)
        for _ in range(100):
            node.put("flood/a", bytes(100_000))
        assert answers.taken < VALUE
    until(lambda: answers.taken == 0)


def test_of_replies_that_the_node_keeps_no_more_are_kept_than_an_answer_may_have() -> None:
    asked: list[zenlake.Query] = []
    with (
        router(plugins(max_rows=3, max_answer=10_000)) as bus,
        bus.declare_queryable("many/**", asked.append),
        client(bus) as web,
    ):
        answers: list[httpx.Response] = []
        for reply in (bytes(10), bytes(4000)):
            asking = threading.Thread(target=lambda: answers.append(web.get("/many/**")))
            asking.start()
            until(lambda: asked)
            for number in range(9):
                asked[0].reply(f"many/{number}", b"old")
                asked[0].reply(f"many/{number}", reply)
            asked.pop().drop()
            asking.join()
        rows, size = answers
        assert rows.headers["zenlake-truncated"] == "rows; plugins/rest/max_rows is 3"
        assert [len(b64decode(row["value"])) for row in rows.json()] == [10, 10, 10]
        assert size.headers["zenlake-truncated"] == "bytes; plugins/rest/max_answer is 10000"
        assert [row["key"] for row in size.json()] == ["many/0", "many/1"]
