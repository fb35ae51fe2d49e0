"""What every link inside another keeps to, whatever it is."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

import pytest

from tests.links.authority import Authority
from tests.links.conftest import Run
from tests.links.watching import PATIENCE, Visitors, Watched, connected
from zenlake.errors import LinkError

PROTOCOLS = ["tls", "ws", "wss", "quic"]


class Place:
    """Endpoints of a protocol, with what they need to be believed."""

    def __init__(self, protocol: str, authority: Authority) -> None:
        paper = authority.sign("server")
        secure = protocol != "ws"
        self.protocol = protocol
        self.listen = f"{protocol}/127.0.0.1:0"
        self.options = ""
        if secure:
            self.listen += f"#listen_certificate_file={paper.certificate}"
            self.listen += f";listen_private_key_file={paper.key}"
            self.options = f"#root_ca_certificate_file={authority.path}"

    async def pair(self) -> tuple[Visitors, Watched, Watched]:
        """A listening place, the side that connected and the side that accepted."""
        visitors = Visitors()
        listening = await visitors.listen(self.listen)
        here = await connected(listening.locators()[0] + self.options)
        here.link.send(b"knock")
        await visitors.until(1)
        there = visitors.came[0]
        await there.until(lambda: there.size == 5)
        there.datagrams.clear()
        there.size = 0
        return visitors, here, there


@pytest.fixture(params=PROTOCOLS)
def place(request: pytest.FixtureRequest, authority: Authority) -> Place:
    return Place(request.param, authority)


def test_bytes_arrive_in_both_directions(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        assert here.link.send(b"question") == 8
        await there.until(lambda: there.data == b"question")
        assert there.link.send(b"answer") == 6
        await here.until(lambda: here.data == b"answer")
        here.link.close()
        visitors.close()

    run(scene())


def test_the_two_sides_know_each_other(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        assert here.link.dst == visitors.listening.locators()[0]
        assert here.link.src == there.link.dst
        assert here.link.dst == there.link.src
        assert all(side.startswith(f"{place.protocol}/127.0.0.1:") for side in (here.link.src,))
        assert here.link.interfaces == there.link.interfaces == ["lo"]
        assert here.link.auth_identifier == (None if place.protocol == "ws" else "node")
        assert there.link.auth_identifier is None
        here.link.admit()
        here.link.close()
        visitors.close()

    run(scene())


def test_a_reader_who_pauses_makes_the_writer_wait_and_loses_nothing(
    run: Run, place: Place
) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        there.link.pause()
        sent = 0
        batch = bytes(range(250)) * 200
        full = asyncio.Event()
        while taken := here.link.send(batch[sent % len(batch) :]):
            sent += taken
            await asyncio.sleep(0)
            assert sent < 200_000_000, "it takes and takes, though nobody reads"
        here.link.when_writable(full.set)
        there.link.resume()
        async with asyncio.timeout(PATIENCE):
            await full.wait()
        await there.until(lambda: there.size >= sent)
        whole = there.data
        assert whole == (batch * (sent // len(batch) + 1))[:sent]
        here.link.close()
        visitors.close()

    run(scene())


def test_much_arrives_whole_and_in_order(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        data = bytes(range(256)) * 15_000
        step = 60_000 if not here.link.stream else len(data)
        there.link.pause()
        sending = asyncio.ensure_future(_send_in_steps(here, data, step))
        await asyncio.sleep(0)
        there.link.resume()
        await there.until(lambda: there.size == len(data))
        await sending
        assert there.data == data
        if not here.link.stream:
            assert {len(batch) for batch in there.datagrams} == {step}
        here.link.close()
        visitors.close()

    run(scene())


async def _send_in_steps(watched: Watched, data: bytes, step: int) -> None:
    for at in range(0, len(data), step):
        await watched.send_all(data[at : at + step])


def test_a_side_that_closes_is_lost_to_the_other_in_order(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        here.link.send(b"last words")
        here.link.close()
        here.link.close()
        await there.until(lambda: bool(there.lost))
        assert there.data == b"last words"
        assert there.lost == [None]
        with pytest.raises(LinkError, match="the link is closed"):
            here.link.send(b"x")
        visitors.close()

    run(scene())


def test_a_finished_link_waits_for_the_other_side_where_it_can(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        there.link.send(b"bye")
        ended = asyncio.Event()
        waits = there.link.finish(ended.set)
        assert waits == (place.protocol != "quic")
        if not waits:
            there.link.close()
        await here.until(lambda: bool(here.lost))
        assert here.data == b"bye"
        assert here.lost == [None]
        here.link.close()
        if waits:
            async with asyncio.timeout(PATIENCE):
                await ended.wait()
        there.link.close()
        visitors.close()

    run(scene())


def test_after_close_nothing_happens(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        called: list[str] = []
        there.link.when_writable(lambda: called.append("writable"))
        here.link.send(b"unheard")
        there.link.close()
        there.link.when_writable(lambda: called.append("writable"))
        there.link.pause()
        there.link.resume()
        await here.until(lambda: bool(here.lost))
        assert (called, there.datagrams, there.lost) == ([], [], [])
        here.link.close()
        visitors.close()

    run(scene())


def test_a_link_may_be_closed_by_what_it_reads(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        there.link.start(lambda _: there.link.close(), lambda _: None)
        here.link.send(b"x")
        await here.until(lambda: bool(here.lost))
        here.link.close()
        visitors.close()

    run(scene())


def test_what_comes_before_the_start_waits(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors = Visitors(start=False)
        listening = await visitors.listen(place.listen)
        here = await connected(listening.locators()[0] + place.options)
        here.link.send(b"early")
        here.link.close()
        await visitors.until(1)
        there = Watched(visitors.came[0].link)
        await there.until(lambda: bool(there.lost))
        assert (there.data, there.lost) == (b"early", [None])
        visitors.close()

    run(scene())


def test_a_closed_listener_leaves_its_links_alone(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors, here, there = await place.pair()
        where = visitors.listening.locators()[0]
        visitors.listening.close()
        visitors.listening.close()
        here.link.send(b"still here")
        await there.until(lambda: there.size == 10)
        if place.protocol != "quic":  # there nobody says no, there is only silence
            with pytest.raises(LinkError, match="cannot connect to"):
                await connected(where + place.options)
        here.link.close()
        visitors.close()

    run(scene())


def test_many_come_at_once(run: Run, place: Place) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen(place.listen)
        where = listening.locators()[0] + place.options
        guests = await asyncio.gather(*[connected(where) for _ in range(10)])
        for guest in guests:
            guest.link.send(b"here")
        await visitors.until(10)
        for guest in guests:
            guest.link.close()
        visitors.close()

    run(scene())


@pytest.mark.parametrize("protocol", ["tls", "ws", "wss"])
def test_any_thread_may_send_where_it_says_so(
    run: Run, authority: Authority, protocol: str
) -> None:
    async def scene() -> None:
        visitors, here, there = await Place(protocol, authority).pair()
        assert here.link.thread_safe

        def write(letter: bytes) -> None:
            for _ in range(100):
                while not here.link.send(letter * 10):
                    pass  # the system is full until the loop reads

        threads = [threading.Thread(target=write, args=(bytes([65 + i]),)) for i in range(3)]
        for thread in threads:
            thread.start()
        await there.until(lambda: there.size == 3 * 100 * 10)
        for thread in threads:
            thread.join()
        pieces = [there.data[i : i + 10] for i in range(0, there.size, 10)]
        assert all(len(set(piece)) == 1 for piece in pieces)
        here.link.close()
        visitors.close()

    run(scene())


@pytest.mark.parametrize("protocol", ["tls", "ws", "wss"])
def test_strangers_who_say_nothing_are_bounded_and_go_with_the_listener(
    run: Run, authority: Authority, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen(Place(protocol, authority).listen)
        port = int(listening.locators()[0].rpartition(":")[2])
        async with asyncio.timeout(PATIENCE):
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            for reader, _ in silent[:3]:  # the oldest make room for those who come later
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read(1) == b""
            assert visitors.came == []
            visitors.close()
            for reader, _ in silent[3:]:
                with contextlib.suppress(ConnectionResetError):
                    await reader.read()
                assert reader.at_eof() or reader.exception()
        for _, writer in silent:
            writer.close()

    monkeypatch.setattr("zenlake.links.layered.MAX_KNOCKING", 5)
    run(scene())


@pytest.mark.parametrize("limit", ["MAX_KNOCKING", "KNOCKING_OF_ONE"])
def test_a_newcomer_is_let_in_however_many_stall(
    run: Run, authority: Authority, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    async def scene() -> None:
        visitors = Visitors()
        place = Place("tls", authority)
        listening = await visitors.listen(place.listen)
        locator = listening.locators()[0]
        port = int(locator.rpartition(":")[2])
        async with asyncio.timeout(PATIENCE):
            silent = [
                await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.66", 0))
                for _ in range(8)
            ]
            here = await connected(locator + place.options)
            await visitors.until(1)
        here.link.close()
        visitors.close()
        for _, writer in silent:
            writer.close()

    monkeypatch.setattr(f"zenlake.links.layered.{limit}", 5)
    run(scene())


@pytest.mark.parametrize("protocol", ["tls", "ws", "wss"])
def test_a_place_that_never_agrees_is_given_up_in_time(
    run: Run, authority: Authority, protocol: str
) -> None:
    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            place = f"{protocol}/127.0.0.1:{mute.getsockname()[1]}"
            options = Place(protocol, authority).options
            # On a busy machine a short time may be over before there is a connection to agree on.
            timeout = 0.05
            said = "no answer in time"
            while "no answer in time" in said and timeout < PATIENCE:
                with pytest.raises(LinkError) as told:
                    await connected(place + options, timeout=timeout)
                said = str(told.value)
                timeout *= 4
            assert "no agreement within the time" in said

    run(scene())
