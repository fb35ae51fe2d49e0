"""Every way into a router, as one user: what a program says through it, and what it is told.

A door does not judge: each verb gives what a program saw from outside. What is refused looks as if
nothing had happened.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, Protocol

import httpx
import pyarrow.parquet as pq

import zenlake
from tests.remote.wsclient import AttentiveWebSocket
from tests.waiting import SECONDS, until
from zenlake import xrce
from zenlake.agents.asking import Agent
from zenlake.agents.server import server
from zenlake.remote.fields import RemoteEncoding
from zenlake.remote.messages import FROM_CLIENT, FROM_SERVER, RemoteMessage, decode, encode

__all__ = ["Door", "EclipseDoor", "Mcp", "Native", "OldDevice", "Rest", "Sockets"]

Put = Callable[[], None]


class Door(Protocol):
    """What all doors have; what one does not have is missing in its row of the test's table."""

    def put(self, key: str, value: bytes) -> None: ...

    def get(self, selector: str) -> set[str]: ...


class Native:
    """A client of Zenoh 1.x: this project's."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def put(self, key: str, value: bytes) -> None:
        self.session.put(key, value)

    def delete(self, key: str) -> None:
        self.session.delete(key)

    def get(self, selector: str) -> set[str]:
        """The keys that were answered; an error is answered under the key that was asked."""
        replies = list(self.session.get(selector, timeout=SECONDS))
        return {selector if one.ok is None else str(one.ok.key_expr) for one in replies}

    def put_acknowledged(self, key: str, value: bytes) -> None:
        """A query that has a storage put its payload."""
        list(self.session.get(f"{key}?_ack_put=true", payload=value, timeout=SECONDS))

    def get_by_querier(self, key: str) -> set[str]:
        with self.session.declare_querier(key, timeout=SECONDS) as querier:
            # Eclipse's asks nobody before it has heard of queryables: they come before this ends.
            self.get(key)
            return {str(one.ok.key_expr) for one in querier.get() if one.ok is not None}

    def receive(self, expr: str, done: str, happens: Put) -> set[str]:
        """The keys of what came until `done`, which is put last."""
        declare = self.session.declare_subscriber
        with declare(expr) as subscriber, declare(done) as marks:
            happens()
            return self._until(subscriber, marks)

    def see(self, expr: str, done: str, happens: Put) -> set[str]:
        declare = self.session.liveliness().declare_subscriber
        with declare(expr) as subscriber, declare(done) as marks:
            happens()
            return self._until(subscriber, marks)

    @staticmethod
    def _until(subscriber: Any, marks: Any) -> set[str]:
        """One thread takes in all that the router sends: what came before a mark is there."""
        marks.recv()
        heard = set()
        while (sample := subscriber.try_recv()) is not None:
            heard.add(str(sample.key_expr))
        return heard

    @contextmanager
    def answering(self, expr: str, error: bool) -> Iterator[None]:
        def answer(query: Any) -> None:
            with query:
                if error:
                    query.reply_err(b"no")
                else:
                    query.reply(str(query.key_expr), b"by the user")

        with self.session.declare_queryable(expr, answer):
            yield

    @contextmanager
    def alive_as(self, key: str) -> Iterator[None]:
        token = self.session.liveliness().declare_token(key)
        try:
            yield
        finally:
            token.undeclare()

    def who_lives(self, expr: str) -> set[str]:
        replies = self.session.liveliness().get(expr, timeout=SECONDS)
        return {str(one.ok.key_expr) for one in replies if one.ok is not None}

    def matches(self, key: str, mark: str) -> bool:
        """Whether a publisher hears of a subscriber; one of `mark` is known not before."""
        with (
            self.session.declare_publisher(key) as publisher,
            self.session.declare_publisher(mark) as marked,
        ):
            until(lambda: marked.matching_status.matching)
            return bool(publisher.matching_status.matching)

    def close(self) -> None:
        self.session.close()


class EclipseDoor(Native):
    """A client of Zenoh 1.x: Eclipse's."""

    def __init__(self, place: str, user: str, password: str) -> None:
        import zenoh

        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([place]))
        config.insert_json5("scouting/multicast/enabled", "false")
        config.insert_json5("transport/auth/usrpwd/user", json.dumps(user))
        config.insert_json5("transport/auth/usrpwd/password", json.dumps(password))
        super().__init__(zenoh.open(config))


class Rest:
    """HTTP."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self.web = httpx.Client(
            base_url=url, auth=(user, password), timeout=SECONDS, trust_env=False
        )

    def put(self, key: str, value: bytes) -> None:
        self.web.put(f"/{key}", content=value)

    def delete(self, key: str) -> None:
        self.web.delete(f"/{key}")

    def put_acknowledged(self, key: str, value: bytes) -> None:
        self.web.put(f"/{key}?_ack_put=true", content=value)

    def get(self, selector: str) -> set[str]:
        answer = self.web.get(f"/{selector}", headers={"accept": "application/json"})
        if answer.status_code != 200:
            return set()
        keys = {row["key"] for row in answer.json()}
        return {selector if key == "ERROR" else key for key in keys}

    def receive(self, expr: str, done: str, happens: Put, after: str = "") -> set[str]:
        """The keys of the events until one that ends with `/mark`."""
        headers = {"accept": "text/event-stream"} | ({"last-event-id": after} if after else {})
        heard: set[str] = set()
        with self.web.stream("GET", f"/{expr}", headers=headers) as stream:
            if stream.status_code != 200:
                return heard
            happens()
            for line in stream.iter_lines():
                if line.startswith('data: {"key"'):
                    heard.add(json.loads(line.removeprefix("data: "))["key"])
                if any(key.endswith("/mark") for key in heard):
                    break
        return heard

    def download(self, selector: str, form: str) -> set[str]:
        """The keys in a file of this form."""
        answer = self.web.get(f"/{selector}?_download={form}")
        if answer.status_code != 200:
            return set()
        if form == "csv":
            return {row["key"] for row in csv.DictReader(io.StringIO(answer.text))}
        return set(pq.read_table(io.BytesIO(answer.content)).column("key").to_pylist())

    def page(self, path: str) -> bool:
        return self.web.get(path).status_code == 200

    def close(self) -> None:
        self.web.close()


PLAIN = RemoteEncoding(0, "")
BARE: dict[str, Any] = {"attachment": None, "timestamp": None}
ANYWHERE = 2
"""An origin of samples and queries."""
ASKING: dict[str, Any] = {"payload": None, "encoding": None, "attachment": None}
WAITING: dict[str, Any] = {"qos": 0xAD, "settings": 0x10, "timeout": int(SECONDS * 1000)}


class Sockets:
    """The remote API over a WebSocket: of the page, or of browsers and Node."""

    def __init__(self, url: str, target: str, user: str, password: str) -> None:
        basic = httpx.BasicAuth(user, password)._auth_header
        self.socket = AttentiveWebSocket(url, {"authorization": basic}, target=target)
        self.numbers = count(1)
        self.later: list[RemoteMessage] = []

    def _ask(self, name: str, **body: Any) -> RemoteMessage:
        """The answer to a message; what comes before it is kept."""
        sequence = next(self.numbers)
        self.socket.say(encode(name, sequence, FROM_CLIENT, **body))
        while True:
            found = decode(self.socket.hear(), FROM_SERVER)
            if found.sequence == sequence:
                return found
            self.later.append(found)

    def _did(self, name: str, **body: Any) -> bool:
        return self._ask(name, **body).kind.name == "Ok"

    def _next(self) -> RemoteMessage:
        return self.later.pop(0) if self.later else decode(self.socket.hear(), FROM_SERVER)

    def put(self, key: str, value: bytes) -> None:
        self._ask("Put", key=key, payload=value, encoding=PLAIN, **BARE, qos=0xAD)

    def delete(self, key: str) -> None:
        self._ask("Delete", key=key, **BARE, qos=0xAD)

    def _replies(self, id: int, asked: str) -> set[str]:
        heard: set[str] = set()
        while True:
            found = self._next()
            if found.body.get("id") != id:
                continue
            if found.kind.name == "QueryResponseFinal":
                return heard
            ok, content = found.body["reply"]
            heard.add(content.key if ok else asked)

    def get(self, selector: str) -> set[str]:
        return self._get(selector, **ASKING)

    def put_acknowledged(self, key: str, value: bytes) -> None:
        self._get(f"{key}?_ack_put=true", payload=value, encoding=PLAIN, attachment=None)

    def _get(self, selector: str, **value: Any) -> set[str]:
        id = next(self.numbers)
        key, _, parameters = selector.partition("?")
        self._ask("Get", id=id, key=key, parameters=parameters, **value, **WAITING)
        return self._replies(id, selector)

    def get_by_querier(self, key: str) -> set[str]:
        id, querier = next(self.numbers), next(self.numbers)
        if not self._did("DeclareQuerier", id=querier, key=key, **WAITING):
            return set()
        if not self._did("QuerierGet", id=id, querier=querier, parameters="", **ASKING):
            return set()
        heard = self._replies(id, key)
        self._ask("UndeclareQuerier", id=querier)
        return heard

    def who_lives(self, expr: str) -> set[str]:
        id = next(self.numbers)
        self._ask("LivelinessGet", id=id, key=expr, timeout=int(SECONDS * 1000))
        return self._replies(id, expr)

    def receive(self, expr: str, done: str, happens: Put) -> set[str]:
        body = {"key": expr, "origin": ANYWHERE}
        return self._until_mark("DeclareSubscriber", "UndeclareSubscriber", body, happens)

    def see(self, expr: str, done: str, happens: Put) -> set[str]:
        body = {"key": expr, "history": False}
        return self._until_mark(
            "DeclareLivelinessSubscriber", "UndeclareLivelinessSubscriber", body, happens
        )

    def _until_mark(
        self, declare: str, undeclare: str, body: dict[str, Any], happens: Put
    ) -> set[str]:
        """The keys of what came until one that ends with `/mark`; nothing if it was refused."""
        id = next(self.numbers)
        heard: set[str] = set()
        if not self._did(declare, id=id, **body):
            return heard
        happens()
        while not any(key.endswith("/mark") for key in heard):
            found = self._next()
            if found.kind.name == "Sample" and found.body["id"] == id:
                heard.add(found.body["sample"].key)
        self._ask(undeclare, id=id)
        return heard

    @contextmanager
    def answering(self, expr: str, error: bool) -> Iterator[None]:
        """A queryable: `serve` answers what it is asked meanwhile."""
        id = next(self.numbers)
        if not self._did("DeclareQueryable", id=id, key=expr, complete=True, origin=ANYWHERE):
            yield
            return
        yield
        self._ask("UndeclareQueryable", id=id)
        self.later.clear()

    def serve(self, asked: Callable[[], bool], error: bool) -> None:
        """Answer queries until the one who asked has what there is."""
        while not asked():
            self._ask("Ping")
            while self.later:
                found = self.later.pop(0)
                if found.kind.name != "Query":
                    continue
                query, key = found.body["query"], found.body["key"]
                if error:
                    self._ask("ReplyErr", id=query, payload=b"no", encoding=PLAIN)
                else:
                    self._ask(
                        "ReplyOk", id=query, key=key, payload=b"by the user", encoding=PLAIN,
                        **BARE, qos=0xAD,
                    )  # fmt: skip
                self._ask("QueryResponseFinal", id=query)

    @contextmanager
    def alive_as(self, key: str) -> Iterator[None]:
        id = next(self.numbers)
        declared = self._did("DeclareLivelinessToken", id=id, key=key)
        yield
        if declared:
            self._ask("UndeclareLivelinessToken", id=id)

    def matches(self, key: str, mark: str) -> bool:
        id = next(self.numbers)
        if not self._did("DeclarePublisher", id=id, key=key, encoding=PLAIN, qos=0xAD):
            return False
        answer = self._ask("PublisherGetMatchingStatus", id=id)
        self._ask("UndeclarePublisher", id=id)
        return bool(answer.body.get("matching"))

    def close(self) -> None:
        self.socket.close()


class Mcp:
    """The tools of an assistant, over a session of its own."""

    def __init__(self, session: zenlake.Session) -> None:
        self.session = session
        self.server = server(Agent(session, timeout=SECONDS), may_write=True)

    def _called(self, tool: str, **arguments: object) -> tuple[dict[str, Any], str]:
        """What a tool found, or the error that it told."""
        from mcp import Client

        async def run() -> Any:
            async with Client(self.server) as client:
                return await client.call_tool(tool, arguments)

        result = asyncio.run(run())
        if result.is_error:
            return {}, "".join(getattr(part, "text", "") for part in result.content)
        return dict(result.structured_content), ""

    def put(self, key: str, value: bytes) -> None:
        self._called("put", key=key, value=value.decode())

    def delete(self, key: str) -> None:
        self._called("delete", key=key)

    def get(self, selector: str) -> set[str]:
        return {row["key"] for row in self._called("get", selector=selector)[0].get("rows", ())}

    def error_of(self, selector: str) -> str:
        """What an assistant is told of answers that are errors."""
        return self._called("get", selector=selector)[1]

    def close(self) -> None:
        self.session.close()


class OldDevice:
    """A device of the 2018 protocol, at a broker beside the router."""

    def __init__(self, locator: str, closing: ExitStack) -> None:
        self._closing = closing
        self.device = closing.enter_context(xrce.open(locator))

    def put(self, key: str, value: bytes) -> None:
        self.device.write(f"/{key}", value)

    def get(self, selector: str) -> set[str]:
        chosen = self.device.selection(f"/{selector}", "pull")
        heard = {key for key, _ in chosen.pull()}
        chosen.undeclare()
        return heard

    def receive(self, expr: str, done: str, happens: Put) -> set[str]:
        subscriber = self.device.subscriber(f"/{expr}")
        marks = self.device.subscriber(f"/{done}")
        happens()
        marks.recv(SECONDS)
        heard = set()
        while (sample := subscriber.try_recv()) is not None:
            heard.add(sample[0])
        subscriber.undeclare()
        marks.undeclare()
        return heard

    @contextmanager
    def answering(self, expr: str, error: bool) -> Iterator[None]:
        """A resource that lasts: the broker answers for it."""
        self.device.write(f"/{expr.replace('*', 'value')}#persistent", b"by the user")
        self.device.flushed()
        yield

    def close(self) -> None:
        self._closing.close()
