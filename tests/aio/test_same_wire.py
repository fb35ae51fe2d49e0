"""A blocking session and an awaiting one put the same messages on the wire.

Every call of both surfaces is made with no option, with each option by itself, and with all of
them, over a connection that is listened in on; the messages of both are compared.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import zenlake
from tests.api.sessions import config, listening, where
from tests.waiting import SECONDS, holding
from tools.signatures import parameters
from zenlake import aio
from zenlake.wire.codec_declare import DeclareKeyExpr
from zenlake.wire.codec_network import (
    Declare,
    Interest,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenlake.wire.codec_transport import Frame, read_transport
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message

#: A value for each option; a call is made with those that it has.
VALUES: dict[str, Any] = {
    "accept_replies": zenlake.ReplyKeyExpr.ANY,
    "allowed_destination": zenlake.Locality.REMOTE,
    "allowed_origin": zenlake.Locality.REMOTE,
    "attachment": b"beside",
    "complete": True,
    "congestion_control": zenlake.CongestionControl.BLOCK,
    "consolidation": zenlake.ConsolidationMode.NONE,
    "encoding": "text/plain;utf-8",
    "express": True,
    "history": True,
    "parameters": "a=1",
    "payload": b"with it",
    "priority": zenlake.Priority.INTERACTIVE_HIGH,
    "reliability": zenlake.Reliability.BEST_EFFORT,
    "source_info": zenlake.SourceInfo(zenlake.EntityGlobalId(zenlake.ZenohId.parse("a1"), 3), 7),
    "target": zenlake.QueryTarget.ALL,
    "timeout": 5.0,
    "timestamp": zenlake.Timestamp.parse("7708799755718648968/a1"),
    "timestamp_instrumentation": zenlake.TimestampInstrumentationBuilder().set_send(True).build(),
}
#: Says when to stop, which is no matter of the wire.
TOKEN = "cancellation_token"

SETTINGS: dict[str, dict[str, str]] = {
    "plain": {},
    "stamped": {"timestamping__enabled": "true"},
    "overwritten": {
        "qos__publication": '[{key_exprs: ["demo/**"], config: '
        '{priority: "real_time", congestion_control: "block", express: true}}]'
    },
}


class Tap:
    """A relay before an endpoint, which keeps what was said to it."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp/").rpartition(":")
        self._to = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(SECONDS)
        self.endpoint = f"tcp/127.0.0.1:{self._server.getsockname()[1]}"
        self.said = bytearray()
        self.heard = bytearray()
        self._relaying = threading.Thread(target=self._relay)
        self._relaying.start()

    def _relay(self) -> None:
        near, _ = self._server.accept()
        far = socket.create_connection(self._to)
        back = threading.Thread(target=self._copy, args=(far, near, self.heard))
        back.start()
        self._copy(near, far, self.said)
        back.join()
        for one in (near, far, self._server):
            one.close()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
        try:
            while data := source.recv(1 << 16):
                kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other direction has ended it

    def messages(self) -> list[object]:
        """What was said, once the connection is over: sorted, for lanes overtake each other."""
        self._relaying.join(SECONDS)
        assert not self._relaying.is_alive()
        said, heard = messages_in(bytes(self.said)), messages_in(bytes(self.heard))
        numbers = {True: numbers_in(said), False: numbers_in(heard)}
        found = [shown(one, numbers) for one in said if isinstance(one, COMPARED)]
        return sorted((one for one in found if "DeclareKeyExpr" not in str(one)), key=str)


COMPARED = (Push, Request, Response, ResponseFinal, Declare, Interest)

Numbers = dict[bool, dict[int, str]]


def messages_in(said: bytes) -> list[Message]:
    """The network messages of one direction."""
    found: list[Message] = []
    while said:
        size = int.from_bytes(said[:2], "little")
        r = Reader(said[2 : 2 + size], 0, size)
        said = said[2 + size :]
        while r.pos < r.end:
            message = read_transport(r)
            if isinstance(message, Frame):
                found += message.messages
    return found


def numbers_in(messages: list[Message]) -> dict[int, str]:
    """The keys that one side has given numbers."""
    found: dict[int, str] = {0: ""}
    for one in messages:
        if isinstance(one, Declare) and isinstance(one.body, DeclareKeyExpr):
            found[one.body.id] = found[one.body.scope] + one.body.suffix
    return found


def shown(value: object, numbers: Numbers) -> object:
    """A message as plain values, without what differs from run to run."""
    if isinstance(value, Message):
        made = {name: shown(getattr(value, name), numbers) for name in value.FIELDS}
        if "scope" in made:
            # When a number for a key is known is a matter of time.
            known = numbers[bool(made.pop("sender_mapping", True))]
            made["key"] = known[int(str(made.pop("scope")))] + str(made.pop("suffix"))
        for name in ("id", "stamp", "time", "zid", "seconds", "fraction", "interest_id"):
            made.pop(name, None)
        return {"is": value.NAME, **made}
    return [shown(one, numbers) for one in value] if isinstance(value, list | tuple) else value


async def settled(value: Any) -> Any:
    """The outcome of a call, which an awaiting surface has to be awaited for."""
    return await value if inspect.isawaitable(value) else value


def variants(call: Callable[..., object]) -> Iterator[dict[str, Any]]:
    """The options of a call: none, each by itself, all together."""
    names = [
        one.name
        for one in parameters(call)
        if one.kind is inspect.Parameter.KEYWORD_ONLY and one.name != TOKEN
    ]
    yield {}
    for name in names:
        yield {name: VALUES[name]}
    if len(names) > 1:
        yield {name: VALUES[name] for name in names}


Surface = Any
Act = Callable[[Surface, zenlake.Session], Awaitable[None]]


async def until_matching(entity: Any) -> None:
    await holding(lambda: entity.matching_status.matching)


async def put_and_delete(session: Surface, other: zenlake.Session) -> None:
    publisher = await settled(session.declare_publisher("demo/ready"))
    await until_matching(publisher)
    for options in variants(session.put):
        await settled(session.put("demo/a", b"value", **options))
    for options in variants(session.try_put):
        session.try_put("demo/a", b"value", **options)
    for options in variants(session.delete):
        await settled(session.delete("demo/a", **options))
    # Not left to its finaliser, which another thread runs, perhaps after the session is closed.
    await settled(publisher.undeclare())


async def publishers(session: Surface, other: zenlake.Session) -> None:
    for declared in variants(session.declare_publisher):
        publisher = await settled(session.declare_publisher("demo/p", **declared))
        await until_matching(publisher)
        for options in variants(publisher.put):
            await settled(publisher.put(b"value", **options))
        for options in variants(publisher.try_put):
            publisher.try_put(b"value", **options)
        for options in variants(publisher.delete):
            await settled(publisher.delete(**options))
        await settled(publisher.undeclare())


async def declarations(session: Surface, other: zenlake.Session) -> None:
    key = await settled(session.declare_keyexpr("demo/k"))
    await settled(session.put(key, b"value"))
    for name in ("declare_subscriber", "declare_queryable"):
        declare = getattr(session, name)
        for options in variants(declare):
            await settled((await settled(declare("demo/d/**", **options))).undeclare())
    liveliness = session.liveliness()
    token = await settled(liveliness.declare_token("demo/alive"))
    for options in variants(liveliness.declare_subscriber):
        watching = await settled(liveliness.declare_subscriber("demo/*", **options))
        await settled(watching.undeclare())
    await settled(token.undeclare())
    await settled(session.undeclare(key))


async def drained(replies: Any) -> None:
    if hasattr(replies, "__aiter__"):
        async for _ in replies:
            pass
    else:
        for _ in replies:
            pass


async def queries(session: Surface, other: zenlake.Session) -> None:
    for options in variants(session.get):
        await drained(session.get("demo/q?x=1", **options))
    for declared in variants(session.declare_querier):
        querier = await settled(session.declare_querier("demo/q", **declared))
        await until_matching(querier)
        for options in variants(querier.get):
            await drained(querier.get(**options))
        await settled(querier.undeclare())
    for options in variants(session.liveliness().get):
        await drained(session.liveliness().get("demo/**", **options))


async def replies(session: Surface, other: zenlake.Session) -> None:
    queryable = await settled(session.declare_queryable("demo/r"))
    querier = other.declare_querier(
        "demo/r", priority=VALUES["priority"], congestion_control=VALUES["congestion_control"]
    )
    await until_matching(querier)
    for name, given in (
        ("reply", ("demo/r", b"value")),
        ("reply_del", ("demo/r",)),
        ("reply_err", (b"why",)),
    ):
        for options in variants(getattr(zenlake.Query, name)):
            answers = querier.get()
            query = await settled(queryable.recv())
            await settled(getattr(query, name)(*given, **options))
            await settled(query.drop())
            del query
            assert len(await asyncio.to_thread(list, answers)) == 1
    await settled(queryable.undeclare())


ACTS: dict[str, Act] = {
    act.__name__: act for act in (put_and_delete, publishers, declarations, queries, replies)
}


@contextmanager
def neighbour() -> Iterator[zenlake.Session]:
    """A router that takes everything, and answers everything but `demo/r`."""
    with listening(mode='"router"') as router:
        taken = router.declare_subscriber("demo/**", lambda sample: None)
        answered = router.declare_queryable("demo/q", lambda query: query.reply("demo/q", b"yes"))
        yield router
        taken.undeclare()
        answered.undeclare()


def said(act: Act, awaiting: bool, settings: dict[str, str]) -> list[object]:
    """What one surface says while it does something."""
    with neighbour() as router:
        tap = Tap(where(router))
        mine = config(mode='"client"', connect__endpoints=f'["{tap.endpoint}"]', **settings)

        async def run() -> None:
            async with asyncio.timeout(SECONDS):
                if awaiting:
                    async with aio.open(mine) as session:
                        await act(session, router)
                else:
                    with zenlake.open(mine) as session:
                        await act(session, router)

        asyncio.run(run())
        return tap.messages()


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", ACTS)
def test_both_surfaces_put_the_same_on_the_wire(name: str, settings: str) -> None:
    blocking = said(ACTS[name], False, SETTINGS[settings])
    awaiting = said(ACTS[name], True, SETTINGS[settings])
    assert len(blocking) > 10
    assert awaiting == blocking


def test_a_reply_obeys_express_and_has_the_rest_of_its_querys_qos() -> None:
    messages = [one for one in said(replies, False, {}) if isinstance(one, dict)]
    found = {one["qos"] for one in messages if one["is"] == "Response"}
    query = zenlake.Priority.INTERACTIVE_HIGH.value | 8
    assert found == {query, query | 0x10}


#: Attributes for other modules of zenlake, which are no part of the API.
INTERNAL = {
    "builder", "channels", "entity", "gone", "incoming", "kept", "publication", "receiver",
    "runtime", "stamps",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "Liveliness", "LivelinessToken", "LinkEventsListener", "MatchingListener", "Publisher",
        "Querier", "Query", "Queryable", "Session", "SessionInfo", "Subscriber",
        "TransportEventsListener",
    ],
)  # fmt: skip
def test_both_surfaces_have_the_same_members_with_the_same_options(name: str) -> None:
    ours, theirs = getattr(zenlake, name), getattr(aio, name)

    def place(one: inspect.Parameter) -> str:
        """The order of options does not matter."""
        return one.name if one.kind is one.KEYWORD_ONLY else ""

    def members(owner: type) -> dict[str, list[tuple[str, str, object]] | None]:
        found = {}
        for member in dir(owner):
            value = inspect.getattr_static(owner, member)
            if member.startswith("_") or member.isupper() or member in INTERNAL:
                continue
            taken = None
            if callable(value):
                ordered = sorted(parameters(value), key=place)
                taken = [(one.name, one.kind.name, one.default) for one in ordered]
            found[member] = taken
        return found

    assert members(theirs) == members(ours)
