from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sys
import termios
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.links.conftest import Run
from tests.links.watching import PATIENCE, Visitors, Watched, connected
from zenlake.errors import LinkError, LocatorError
from zenlake.links.serial_frame import ACK, INIT, RESET, SerialDeframer, encode

#: How long an end that is not open yet may leave a frame without an answer, in seconds.
AGAIN = 0.05


def _unread(fd: int) -> int:
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


class Line:
    """Two ends of a serial line, as device files; what one writes the other reads."""

    def __init__(self) -> None:
        (self._a, held_a), (self._b, held_b) = os.openpty(), os.openpty()
        self._held = (held_a, held_b)  # a line that nobody holds is hung up
        self.a, self.b = os.ttyname(held_a), os.ttyname(held_b)
        for fd in (self._a, self._b, held_a, held_b):
            tty.setraw(fd)
            os.set_blocking(fd, False)

    def join(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._a, self._carry, self._a, self._b)
        loop.add_reader(self._b, self._carry, self._b, self._a)

    def part(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._a)
        loop.remove_reader(self._b)

    def hang_up(self) -> None:
        self.part()
        for fd in (self._a, self._b):
            os.close(fd)
        self._a = self._b = -1

    @staticmethod
    def _carry(source: int, target: int) -> None:
        # A full end loses bytes, as real lines do; the tests stay below that.
        with contextlib.suppress(BlockingIOError):
            os.write(target, os.read(source, 1024))

    async def until_unread(self, size: int) -> None:
        """Wait until so many bytes lie unread at the first end, and its reader had a chance."""
        async with asyncio.timeout(PATIENCE):
            while _unread(self._held[0]) < size:
                await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert _unread(self._held[0]) == size

    def close(self) -> None:
        for fd in (self._a, self._b, *self._held):
            if fd >= 0:
                os.close(fd)


class Hand:
    """The bare end of a line: writes and reads frames one by one."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self._frames = SerialDeframer()
        self._heard: list[tuple[int, bytes]] = []

    def say(self, header: int, payload: bytes = b"") -> None:
        self.write(encode(header, payload))

    def write(self, data: bytes) -> None:
        os.write(self._fd, data)

    async def hear(self) -> tuple[int, bytes]:
        async with asyncio.timeout(PATIENCE):
            while not self._heard:
                with contextlib.suppress(BlockingIOError):
                    self._heard += self._frames.feed(os.read(self._fd, 4096))
                await asyncio.sleep(0.001)
        return self._heard.pop(0)

    async def until_answered(self, header: int) -> tuple[int, bytes]:
        """Say a frame again and again, for a line that is not open loses it; the first answer."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.say(header)
                with contextlib.suppress(TimeoutError):
                    return await asyncio.wait_for(self.hear(), AGAIN)

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


async def met(line: Line) -> tuple[Visitors, Watched, Watched]:
    line.join()
    visitors = Visitors()
    await visitors.listen(f"serial/{line.a}#baudrate=115200")
    here = await connected(f"serial/{line.b}#baudrate=115200")
    await visitors.until(1)
    return visitors, here, visitors.came[0]


def test_batches_arrive_in_both_directions(run: Run, line: Line) -> None:
    async def scene() -> None:
        visitors, here, there = await met(line)
        assert (here.link.stream, here.link.reliable, here.link.mtu) == (False, False, 1500)
        assert here.link.dst == f"serial/{line.b}"
        assert here.link.interfaces == []
        assert visitors.listening.locators() == []
        for batch in (b"one", bytes(1500), b"\xff" * 1500):
            while not here.link.send(batch):
                await asyncio.sleep(0)
            await there.until(lambda sent=batch: there.datagrams[-1:] == [sent])  # type: ignore[misc]
        there.link.send(b"back")
        await here.until(lambda: here.datagrams == [b"back"])
        here.link.close()
        visitors.close()
        line.part()

    run(scene())


def test_a_batch_that_does_not_fit_is_refused(run: Run, line: Line) -> None:
    async def scene() -> None:
        visitors, here, _ = await met(line)
        with pytest.raises(LinkError, match="at most 1500"):
            here.link.send(bytes(1501))
        here.link.close()
        with pytest.raises(LinkError, match="the link is closed"):
            here.link.send(b"x")
        visitors.close()
        line.part()

    run(scene())


def test_a_full_line_takes_no_more_until_it_is_read(run: Run, line: Line) -> None:
    async def scene() -> None:
        visitors, here, there = await met(line)
        line.part()
        sent = 0
        while here.link.send(bytes([sent % 256]) * 1000):
            sent += 1
            assert sent < 1000, "nobody reads, and it takes and takes"
        again = asyncio.Event()
        here.link.when_writable(again.set)
        line.join()
        async with asyncio.timeout(PATIENCE):
            await again.wait()
        await there.until(lambda: len(there.datagrams) == sent)
        assert there.datagrams == [bytes([i % 256]) * 1000 for i in range(sent)]
        here.link.close()
        visitors.close()
        line.part()

    run(scene())


def test_who_pauses_reads_later(run: Run, line: Line) -> None:
    async def scene() -> None:
        visitors, here, there = await met(line)
        there.link.pause()
        here.link.send(b"later")
        here.link.send(b"too")
        await line.until_unread(len(encode(0, b"later") + encode(0, b"too")))
        assert there.datagrams == []
        there.link.resume()
        await there.until(lambda: there.datagrams == [b"later", b"too"])
        here.link.close()
        visitors.close()
        line.part()

    run(scene())


def test_the_listener_answers_begin_and_nothing_else(run: Run, line: Line) -> None:
    async def scene() -> None:
        line.join()
        visitors = Visitors()
        await visitors.listen(f"serial/{line.a}")
        hand = Hand(line.b)
        hand.write(b"noise\0")
        hand.say(0, b"data too early")
        hand.say(INIT | ACK)
        hand.say(INIT)
        assert await hand.hear() == (INIT | ACK, b"\0")
        await visitors.until(1)
        there = visitors.came[0]
        hand.say(0, b"batch")
        hand.write(b"\x07damaged\0")
        hand.say(0, b"another")
        await there.until(lambda: len(there.datagrams) == 2)
        assert there.datagrams == [b"batch", b"another"]
        hand.close()
        visitors.close()
        line.part()

    run(scene())


def test_a_second_begin_ends_the_link_and_the_third_starts_another(run: Run, line: Line) -> None:
    async def scene() -> None:
        line.join()
        visitors = Visitors()
        await visitors.listen(f"serial/{line.a}")
        hand = Hand(line.b)
        hand.say(INIT)
        await hand.hear()
        await visitors.until(1)
        there = visitors.came[0]
        hand.say(INIT)
        assert await hand.hear() == (RESET, b"\0")
        await there.until(lambda: bool(there.lost))
        assert "started anew" in str(there.lost[0])
        there.link.close()
        assert await hand.until_answered(INIT) == (INIT | ACK, b"\0")
        await visitors.until(2)
        hand.close()
        visitors.close()
        line.part()

    run(scene())


def test_the_side_that_connects_asks_until_it_is_answered(
    run: Run, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zenlake.links.serial.AGAIN", 0.01)

    async def scene() -> None:
        line.join()
        hand = Hand(line.a)
        coming = asyncio.ensure_future(connected(f"serial/{line.b}"))
        assert (await hand.hear())[0] == INIT
        assert (await hand.hear())[0] == INIT
        hand.say(0, b"from another time")
        hand.say(RESET)
        assert (await hand.hear())[0] == INIT
        hand.say(INIT | ACK)
        hand.say(INIT | ACK)
        hand.say(0, b"welcome")
        here = await coming
        await here.until(lambda: here.datagrams == [b"welcome"])
        hand.say(RESET)
        await here.until(lambda: bool(here.lost))
        assert "not ready" in str(here.lost[0])
        here.link.close()
        hand.close()
        line.part()

    run(scene())


def test_silence_is_given_up_in_time(run: Run, line: Line) -> None:
    async def scene() -> None:
        with pytest.raises(LinkError, match="no agreement within the time"):
            await connected(f"serial/{line.b}", timeout=0.02)

    run(scene())


def test_a_line_that_is_hung_up_is_lost(run: Run, line: Line) -> None:
    async def scene() -> None:
        visitors, here, _ = await met(line)
        line.hang_up()
        await here.until(lambda: bool(here.lost))
        assert isinstance(here.lost[0], LinkError)
        here.link.close()
        visitors.close()

    run(scene())


@pytest.mark.parametrize("side", ["connect", "listen"])
def test_what_is_no_line_is_named(run: Run, tmp_path: Path, side: str) -> None:
    plain = tmp_path / "file"
    plain.touch()

    async def attempt(endpoint: str) -> None:
        if side == "connect":
            await connected(endpoint)
        else:
            await Visitors().listen(endpoint)

    async def scene() -> None:
        with pytest.raises(LinkError, match="cannot open the line: No such file"):
            await attempt(f"serial/{tmp_path}/nowhere")
        with pytest.raises(LinkError, match="is no serial line"):
            await attempt(f"serial/{plain}")
        with pytest.raises(LocatorError, match="no line runs at 12345 bits a second"):
            await attempt(f"serial/{plain}#baudrate=12345")
        with pytest.raises(LocatorError, match="'parity' is not honoured"):
            await attempt(f"serial/{plain}#parity=even")

    run(scene())


def test_a_closed_listener_gives_the_line_back(run: Run, line: Line) -> None:
    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(f"serial/{line.a}#exclusive=true")
        visitors.close()
        visitors.close()
        again = Visitors()
        await again.listen(f"serial/{line.a}#exclusive=false")
        again.close()

    run(scene())
