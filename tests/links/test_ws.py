from __future__ import annotations

import asyncio
import logging

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    Request,
    TextMessage,
)

from tests.links.conftest import Run
from tests.links.watching import PATIENCE, Visitors, Watched, connected
from zenlake.errors import LimitError, LinkError, LocatorError
from zenlake.links import check
from zenlake.links.link import MAX_BATCH
from zenlake.links.ws import IDLE_FRAMES
from zenlake.values.locator import EndPoint


class Stranger:
    """Somebody with a WebSocket of their own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.ws = WSConnection(ConnectionType.CLIENT)

    @classmethod
    async def come(cls, place: str) -> Stranger:
        port = int(place.rpartition(":")[2])
        self = cls(*await asyncio.open_connection("127.0.0.1", port))
        self.say(Request(host="127.0.0.1", target="/any/path"))
        assert isinstance(await self.hear(), AcceptConnection)
        return self

    def say(self, event: Event) -> None:
        self.writer.write(self.ws.send(event))

    async def hear(self) -> Event:
        async with asyncio.timeout(PATIENCE):
            while True:
                for event in self.ws.events():
                    return event
                self.ws.receive_data(await self.reader.read(65536) or None)


async def met() -> tuple[Visitors, Stranger, Watched]:
    visitors = Visitors()
    listening = await visitors.listen("ws/127.0.0.1:0")
    stranger = await Stranger.come(listening.locators()[0])
    await visitors.until(1)
    return visitors, stranger, visitors.came[0]


def test_each_message_is_one_batch_without_a_prefix(run: Run) -> None:
    async def scene() -> None:
        visitors, stranger, there = await met()
        assert (there.link.stream, there.link.reliable, there.link.mtu) == (False, True, MAX_BATCH)
        stranger.say(BytesMessage(data=b"one"))
        stranger.say(BytesMessage(data=b"two"))
        await there.until(lambda: len(there.datagrams) == 2)
        assert there.datagrams == [b"one", b"two"]
        there.link.send(b"three")
        said = await stranger.hear()
        assert isinstance(said, BytesMessage)
        assert bytes(said.data) == b"three"
        stranger.writer.close()
        visitors.close()

    run(scene())


def test_a_message_in_pieces_is_one_batch(run: Run) -> None:
    async def scene() -> None:
        visitors, stranger, there = await met()
        stranger.say(BytesMessage(data=b"one ", message_finished=False))
        stranger.say(Ping(payload=b"between"))
        stranger.say(BytesMessage(data=b"batch"))
        await there.until(lambda: bool(there.datagrams))
        assert there.datagrams == [b"one batch"]
        answer = await stranger.hear()
        assert isinstance(answer, Pong)
        assert bytes(answer.payload) == b"between"
        stranger.writer.close()
        visitors.close()

    run(scene())


def test_the_largest_batch_passes_and_a_larger_message_ends_the_link(run: Run) -> None:
    async def scene() -> None:
        visitors, stranger, there = await met()
        stranger.say(BytesMessage(data=bytes(MAX_BATCH)))
        await there.until(lambda: there.size == MAX_BATCH)
        stranger.say(BytesMessage(data=bytes(MAX_BATCH + 1)))
        await there.until(lambda: bool(there.lost))
        assert "longer than 65535 bytes" in str(there.lost[0])
        assert len(there.datagrams) == 1
        stranger.writer.close()
        visitors.close()

    run(scene())


def test_endless_pieces_are_not_collected(run: Run) -> None:
    async def scene() -> None:
        visitors, stranger, there = await met()
        for _ in range(70):
            stranger.say(BytesMessage(data=bytes(1000), message_finished=False))
        await there.until(lambda: bool(there.lost))
        assert "longer than 65535 bytes" in str(there.lost[0])
        stranger.writer.close()
        visitors.close()

    run(scene())


@pytest.mark.parametrize("bad", [b"\x83\x00", b"\x81\x80\0\0\0\0", b"\xff" * 20])
def test_what_is_no_batch_ends_the_link(run: Run, bad: bytes) -> None:
    async def scene() -> None:
        visitors, stranger, there = await met()
        stranger.writer.write(bad)
        await there.until(lambda: bool(there.lost))
        assert isinstance(there.lost[0], LinkError)
        assert there.datagrams == []
        stranger.writer.close()
        visitors.close()

    run(scene())


def test_text_is_refused(run: Run) -> None:
    async def scene() -> None:
        visitors, stranger, there = await met()
        stranger.say(TextMessage(data="hello"))
        await there.until(lambda: bool(there.lost))
        assert "sent text" in str(there.lost[0])
        stranger.writer.close()
        visitors.close()

    run(scene())


def test_a_goodbye_is_answered(run: Run) -> None:
    async def scene() -> None:
        visitors, stranger, there = await met()
        stranger.say(CloseConnection(code=1000))
        await there.until(lambda: bool(there.lost))
        assert there.lost == [None]
        assert isinstance(await stranger.hear(), CloseConnection)
        with pytest.raises(LinkError, match="closed the WebSocket"):
            there.link.send(b"x")
        stranger.writer.close()
        visitors.close()

    run(scene())


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x0b\x00\xc1\x09", b"x" * 100_000]
)
def test_who_asks_for_something_else_is_not_let_in(
    run: Run, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("ws/127.0.0.1:0")
        port = int(listening.locators()[0].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said + b"\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            try:
                answer = await reader.read()
            except ConnectionResetError:
                answer = b""
        assert b"101" not in answer
        assert visitors.came == []
        assert "this is no WebSocket" in caplog.text
        writer.close()
        visitors.close()

    caplog.set_level(logging.WARNING, "zenlake.links")
    run(scene())


def test_a_place_that_serves_something_else_is_named(run: Run) -> None:
    async def scene() -> None:
        async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            await reader.read()
            writer.close()
            await writer.wait_closed()
            served.set()

        served = asyncio.Event()
        server = await asyncio.start_server(page, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(LinkError, match="the other side answered 404"):
            await connected(f"ws/127.0.0.1:{port}")
        await served.wait()
        server.close()
        await server.wait_closed()

    run(scene())


def test_without_its_package_it_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zenlake.links.registry.find_spec", lambda _: None)
    for protocol, extra in (("ws", "ws"), ("wss", "ws"), ("quic", "quic")):
        with pytest.raises(LocatorError, match=rf"pip install 'zenlake\[{extra}\]'"):
            check(EndPoint.parse(f"{protocol}/a:1"), "connect")


@pytest.mark.parametrize("idle", [Ping(), Pong(), BytesMessage(b"", message_finished=False)])
def test_frames_that_carry_nothing_end_the_link(run: Run, idle: Event) -> None:
    async def scene() -> None:
        visitors, stranger, link = await met()
        for _ in range(IDLE_FRAMES + 1):
            stranger.say(idle)
        await link.until(lambda: bool(link.lost))
        assert "frames without a batch" in str(link.lost[0])
        assert isinstance(link.lost[0], LimitError)  # so that the node names who did it
        stranger.writer.close()
        visitors.close()

    run(scene())


def test_a_batch_now_and_then_allows_for_any_number_of_pings(run: Run) -> None:
    async def scene() -> None:
        visitors, stranger, link = await met()
        for turn in range(3):
            for _ in range(IDLE_FRAMES):
                stranger.say(Ping())
            stranger.say(BytesMessage(b"batch %d" % turn))
        await link.until(lambda: link.datagrams == [b"batch 0", b"batch 1", b"batch 2"])
        stranger.writer.close()
        visitors.close()

    run(scene())
