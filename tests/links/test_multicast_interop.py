"""Scouting beside Eclipse Zenoh's own, over loopback."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import zenoh

from tests.ports import free_port
from zenlake.clock import ZenohId
from zenlake.links import MulticastSockets
from zenlake.scouting import DiscoveredNode, HelloResponder, ScoutSender

pytestmark = pytest.mark.interop

PATIENCE = 60.0


def config(mode: str, group: str, listen: list[str]) -> zenoh.Config:
    made = zenoh.Config()
    for key, value in {
        "mode": mode,
        "listen/endpoints": listen,
        "scouting/multicast/address": group,
        "scouting/multicast/interface": "127.0.0.1",
        "transport/shared_memory/enabled": False,
    }.items():
        made.insert_json5(key, json.dumps(value))
    return made


@contextmanager
def opened(made: zenoh.Config) -> Iterator[zenoh.Session]:
    session = zenoh.open(made)
    try:
        yield session
    finally:
        session.close()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("mode", "role"), [("peer", 2), ("router", 1)])
def test_a_real_node_answers_our_question(mode: str, role: int) -> None:
    group = f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}"
    place = f"tcp/127.0.0.1:{free_port(socket.SOCK_STREAM)}"

    async def ask(matcher: int) -> list[DiscoveredNode]:
        loop = asyncio.get_running_loop()
        scouting = ScoutSender(b"\x01", 4, matcher, period=0.1)
        answers: asyncio.Queue[bytes] = asyncio.Queue()
        sockets = MulticastSockets(loop, group, "127.0.0.1", listen=False)
        sockets.open(lambda *_: None, lambda data, *_: answers.put_nowait(data))
        scouting.start(loop.time())
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    question = scouting.tick(loop.time())
                    if question is not None:
                        assert sockets.send_to_group(question) == 1
                    assert scouting.deadline is not None
                    try:
                        async with asyncio.timeout_at(scouting.deadline):
                            answer = await answers.get()
                    except TimeoutError:
                        continue
                    if found := scouting.received(answer, loop.time()):
                        return found
        finally:
            sockets.close()

    with opened(config(mode, group, [place])) as session:
        zid = bytes(ZenohId.parse(str(session.info.zid())))
        assert asyncio.run(ask(role)) == [DiscoveredNode(zid, role, (place,))]


def test_a_real_scout_finds_us() -> None:
    group = f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}"
    zid = ZenohId(bytes(range(1, 17)))

    async def be_found() -> zenoh.Hello:
        loop = asyncio.get_running_loop()
        answering = HelloResponder(bytes(zid), 1, lambda: ["tcp/127.0.0.1:7447"])
        sockets = MulticastSockets(loop, group, "127.0.0.1")
        found: asyncio.Queue[zenoh.Hello] = asyncio.Queue()

        def question(data: bytes, address: tuple[str, int], _: str) -> None:
            hello = answering.received(data, sockets.is_local(address))
            if hello is not None:
                sockets.send_to(hello, address)

        def heard(hello: zenoh.Hello) -> None:
            loop.call_soon_threadsafe(found.put_nowait, hello)

        sockets.open(question, lambda *_: None)
        scout = zenoh.scout(
            heard,  # type: ignore[arg-type]
            what="router",
            config=config("client", group, []),
        )
        try:
            return await asyncio.wait_for(found.get(), PATIENCE)
        finally:
            scout.stop()  # type: ignore[no-untyped-call]
            sockets.close()

    hello = asyncio.run(be_found())
    assert str(hello.zid) == str(zid)
    assert str(hello.whatami) == "router"
    assert hello.locators == ["tcp/127.0.0.1:7447"]
