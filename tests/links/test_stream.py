"""What tcp and unix links have in common."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.links.conftest import Run
from tests.links.watching import PATIENCE, Visitors, Watched, connected, pair
from zenlake.errors import LinkError
from zenlake.links.stream import StreamAcceptor, StreamLink


@pytest.fixture(params=["tcp/127.0.0.1:0", "tcp/[::1]:0", "unixsock-stream"])
def endpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "unixsock-stream":
        yield f"unixsock-stream/{tmp_path}/a.sock"
        return
    if "::1" in request.param and not _ipv6_loopback():
        pytest.fail("this machine has no IPv6 loopback address [::1]; give it one")
    yield request.param


def _ipv6_loopback() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


def test_bytes_go_both_ways(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        assert here.link.send(b"hello") == 5
        await there.until(lambda: there.size == 5)
        assert there.link.send(b"to you too") == 10
        await here.until(lambda: here.size == 10)
        assert (there.data, here.data) == (b"hello", b"to you too")
        here.link.close()
        visitors.close()

    run(scene())


def test_a_link_says_what_it_is(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        for link in (here.link, there.link):
            assert (link.stream, link.reliable, link.thread_safe) == (True, True, True)
            assert link.mtu == 65535
        protocol = endpoint.partition("/")[0]
        if protocol == "tcp":
            assert here.link.src == there.link.dst
            assert here.link.interfaces == ["lo"]
        else:
            assert here.link.interfaces == []
        assert here.link.dst == there.link.src == visitors.listening.locators()[0]
        assert repr(here.link) == f"<StreamLink {here.link.src} => {here.link.dst}>"
        here.link.close()
        visitors.close()

    run(scene())


def test_the_other_side_leaving_is_no_error(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        there.link.send(b"last words")
        there.link.close()
        await here.until(lambda: bool(here.lost))
        assert here.data == b"last words"
        assert here.lost == [None]
        here.link.close()
        visitors.close()

    run(scene())


def test_last_words_survive_unread_bytes(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        there.link.pause()
        here.link.send(b"x" * 1000)
        await asyncio.sleep(0)
        there.link.send(b"bye")
        there.link.close()
        await here.until(lambda: bool(here.lost))
        assert here.data == b"bye"
        assert here.lost == [None]
        here.link.close()
        visitors.close()

    run(scene())


def test_a_finished_link_takes_what_still_comes_until_the_other_side_ends(
    run: Run, endpoint: str
) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        ended = asyncio.Event()
        there.link.pause()
        there.link.send(b"bye")
        assert there.link.finish(ended.set)
        await here.until(lambda: bool(here.lost))
        assert here.data == b"bye"
        assert here.lost == [None]
        here.link.send(b"not heard")  # would reset a connection whose other side is closed
        here.link.send(b"not heard either")
        assert not ended.is_set()
        here.link.close()
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
        assert there.data == b""
        there.link.close()
        assert not there.link.finish(ended.set)
        visitors.close()

    run(scene())


def test_a_side_that_sends_on_and_on_ends_a_finished_link(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        ended = asyncio.Event()
        there.link.finish(ended.set)
        sending = asyncio.create_task(here.send_all(b"x" * 50_000_000))
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
        assert not sending.done()
        sending.cancel()
        here.link.close()
        there.link.close()
        visitors.close()

    run(scene())


def test_back_pressure_stops_the_writer_and_nothing_is_lost(run: Run, endpoint: str) -> None:
    data = bytes(range(256)) * 65536  # 16 MiB

    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        there.link.pause()
        sending = asyncio.ensure_future(here.send_all(data))
        await _full(here)
        assert not sending.done()
        assert there.size == 0
        there.link.resume()
        await there.until(lambda: there.size == len(data))
        assert await sending > 0
        assert there.data == data
        here.link.close()
        visitors.close()

    run(scene())


async def _full(watched: Watched) -> None:
    """Wait until the link has a writer armed, which is when the system took no more."""
    assert isinstance(watched.link, StreamLink)
    async with asyncio.timeout(PATIENCE):
        while watched.link._on_writable is None:
            await asyncio.sleep(0)


def test_a_part_may_be_taken(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        there.link.pause()
        taken: list[int] = []
        size = 50_000_000
        while not taken or taken[-1]:
            taken.append(here.link.send(bytes(size)))
        assert 0 < sum(taken) < size
        there.link.resume()
        await there.until(lambda: there.size == sum(taken))
        here.link.close()
        visitors.close()

    run(scene())


def test_any_thread_may_send(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)

        def write(letter: bytes) -> None:
            for _ in range(200):
                while not here.link.send(letter * 10):
                    pass  # the system is full until the loop reads

        threads = [threading.Thread(target=write, args=(bytes([65 + i]),)) for i in range(4)]
        for thread in threads:
            thread.start()
        await there.until(lambda: there.size == 4 * 200 * 10)
        for thread in threads:
            thread.join()
        pieces = [there.data[i : i + 10] for i in range(0, there.size, 10)]
        assert all(len(set(piece)) == 1 for piece in pieces)
        here.link.close()
        visitors.close()

    run(scene())


def test_closing_while_others_send_is_safe(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        begun = threading.Barrier(4)
        ends: list[str] = []

        def write() -> None:
            begun.wait()
            try:
                while True:
                    here.link.send(b"x" * 1000)
            except LinkError as error:
                ends.append(str(error))

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        begun.wait()
        await there.until(lambda: there.size > 100_000)
        here.link.close()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(ends) == 3
        assert all("the link is closed" in end for end in ends)
        visitors.close()

    run(scene())


def test_after_close_nothing_happens(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        called: list[str] = []
        there.link.when_writable(lambda: called.append("writable"))
        here.link.send(b"unheard")
        there.link.close()
        there.link.close()
        there.link.when_writable(lambda: called.append("writable"))
        there.link.resume()
        there.link.pause()
        there.link.resume()
        await here.until(lambda: bool(here.lost))
        assert (called, there.datagrams, there.lost) == ([], [], [])
        with pytest.raises(LinkError, match="the link is closed"):
            there.link.send(b"x")
        here.link.close()
        visitors.close()

    run(scene())


def test_a_link_may_be_closed_by_what_it_reads(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        heard = asyncio.Event()

        def close(_: bytes) -> None:
            there.link.close()
            heard.set()

        there.link.start(close, lambda _: heard.set())
        here.link.send(b"x")
        await heard.wait()
        await here.until(lambda: bool(here.lost))
        here.link.close()
        visitors.close()

    run(scene())


def test_the_last_callback_for_writing_counts(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, _ = await pair(endpoint)
        called: list[int] = []
        done = asyncio.Event()
        here.link.when_writable(lambda: called.append(1))
        here.link.when_writable(done.set)
        await done.wait()
        await asyncio.sleep(0)
        assert called == []
        here.link.close()
        visitors.close()

    run(scene())


def test_a_closed_listener_leaves_its_links_alone(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors, here, there = await pair(endpoint)
        place = visitors.listening.locators()[0]
        visitors.listening.close()
        visitors.listening.close()
        here.link.send(b"still here")
        await there.until(lambda: there.size == 10)
        with pytest.raises(LinkError, match="cannot connect to"):
            await connected(place)
        here.link.close()
        visitors.close()

    run(scene())


def test_a_listener_that_closes_before_it_accepts_drops_who_waits(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen(endpoint)
        if endpoint.startswith("unix"):
            waiting = socket.socket(socket.AF_UNIX)
            waiting.connect(listening.locators()[0].partition("/")[2])
        else:
            family = socket.AF_INET6 if "[" in endpoint else socket.AF_INET
            waiting = socket.socket(family)
            port = int(listening.locators()[0].rpartition(":")[2])
            waiting.connect(("::1" if "[" in endpoint else "127.0.0.1", port))
        listening.close()  # the loop had no chance to accept
        waiting.settimeout(PATIENCE)
        with waiting, contextlib.suppress(ConnectionResetError):
            assert waiting.recv(1) == b""
        assert visitors.came == []

    run(scene())


def test_many_come_at_once(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen(endpoint)
        place = listening.locators()[0]
        guests = await asyncio.gather(*[connected(place) for _ in range(40)])
        await visitors.until(40)
        for guest in guests:
            guest.link.close()
        visitors.close()

    run(scene())


def test_a_reset_is_an_error_that_names_the_other_side(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0")
        port = int(listening.locators()[0].rpartition(":")[2])
        rude = socket.create_connection(("127.0.0.1", port))
        await visitors.until(1)
        there = visitors.came[0]
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        rude.close()
        await there.until(lambda: bool(there.lost))
        (error,) = there.lost
        assert isinstance(error, LinkError)
        assert "Connection reset by peer" in str(error)
        assert there.link.dst in str(error)
        with pytest.raises(LinkError, match="cannot send: Broken pipe"):
            there.link.send(b"x")
        visitors.close()

    run(scene())


def test_a_side_that_only_stops_writing_can_still_be_written_to(run: Run) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("tcp/127.0.0.1:0")
        port = int(listening.locators()[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as half:
            await visitors.until(1)
            there = visitors.came[0]
            half.shutdown(socket.SHUT_WR)
            await there.until(lambda: bool(there.lost))
            assert there.lost == [None]
            assert there.link.send(b"farewell") == 8
            assert half.recv(100) == b"farewell"
        visitors.close()

    run(scene())


def test_a_link_that_was_never_started_can_be_closed(run: Run, endpoint: str) -> None:
    async def scene() -> None:
        visitors = Visitors(start=False)
        listening = await visitors.listen(endpoint)
        here = await connected(listening.locators()[0])
        await visitors.until(1)
        visitors.came[0].link.resume()
        visitors.came[0].link.close()
        await here.until(lambda: bool(here.lost))
        here.link.close()
        visitors.close()

    run(scene())


class _NoMoreDescriptors:
    """A listening socket of a process that has opened all the files it may."""

    def __init__(self, real: socket.socket) -> None:
        self._real = real
        self.tries = 0

    def accept(self) -> tuple[socket.socket, object]:
        self.tries += 1
        if self.tries == 1:
            raise OSError(24, "Too many open files")
        return self._real.accept()

    def fileno(self) -> int:
        return self._real.fileno()

    def close(self) -> None:
        self._real.close()


@pytest.mark.parametrize("early", [True, False])
def test_an_acceptor_rests_when_there_are_no_descriptors(
    run: Run, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    monkeypatch.setattr("zenlake.links.stream.BREATH", 100.0 if early else 0.001)

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        accepted: asyncio.Queue[socket.socket] = asyncio.Queue()
        acceptor = StreamAcceptor(
            socket.create_server(("127.0.0.1", 0)), loop, lambda sock, _: accepted.put_nowait(sock)
        )
        full = _NoMoreDescriptors(acceptor.sock)
        acceptor.sock = full  # type: ignore[assignment]
        with socket.create_connection(full._real.getsockname()):
            if early:
                while acceptor._rest is None:
                    await asyncio.sleep(0)
            else:
                (await asyncio.wait_for(accepted.get(), PATIENCE)).close()
            acceptor.close()

    run(scene())
