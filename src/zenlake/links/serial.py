"""Links over serial lines: `serial//dev/ttyUSB0#baudrate=115200`.

A line has no notion of a connection. The side that connects sends INIT, the one that listens
answers INIT|ACK, and batches follow. A second INIT on a running link means that the other side
started anew: it is sent RESET, the link ends, and its next INIT is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import Final, final

from zenlake.errors import EncodeError, LinkError, LocatorError
from zenlake.links.layered import LayeredLink, opened_in_time
from zenlake.links.link import LinkListener, OnData, OnLink, OnLost, UnicastLink, reason
from zenlake.links.options import BAUD_RATE
from zenlake.links.serial_frame import ACK, INIT, MAX_PAYLOAD, RESET, SerialDeframer, encode
from zenlake.values.locator import EndPoint

__all__ = ["MTU", "PROTOCOL", "connect", "listen"]

PROTOCOL: Final = "serial"
MTU: Final = MAX_PAYLOAD
READ_SIZE: Final = 65536
AGAIN: Final = 0.5
"""How many seconds to wait for an answer to INIT, and after RESET, before the next."""
BREATH: Final = 0.1
"""How many seconds to wait before a line that cannot be opened is tried again."""

log = logging.getLogger("zenlake.links")


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float
) -> UnicastLink:
    """A link to the node that listens at the other end of the line."""
    link = SerialLink(_Port(endpoint, loop), loop, connects=True)
    return await opened_in_time(link, loop, loop.time() + timeout)


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink
) -> LinkListener:
    """Take the links that the other end of the line begins, one after another."""
    return _SerialListener(endpoint, loop, on_link)


@final
class SerialLink(LayeredLink):
    """Batches over a line."""

    stream = False
    reliable = False
    mtu = MTU

    def __init__(self, port: UnicastLink, loop: asyncio.AbstractEventLoop, connects: bool) -> None:
        self._frames = SerialDeframer()
        self._connects = connects
        self._early: list[bytes] = []
        self._next: asyncio.TimerHandle | None = None
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when the link is closed."""
        super().__init__(port, loop, PROTOCOL)
        if connects:
            self._ask()

    def send(self, data: bytes) -> int:
        """Hand a batch to the line, or take nothing."""
        with self._lock:
            self._check_open()
            if not self._flushed():
                return 0
            try:
                self._write(encode(0, data))
            except EncodeError as error:
                raise LinkError(f"{self.dst}: {error}") from error
        return len(data)

    def close(self) -> None:
        """End the link, at once."""
        self._ask_no_more()
        super().close()
        if not self.gone.done():
            self.gone.set_result(None)

    def _arrived(self, data: bytes) -> None:
        for header, payload in self._frames.feed(data):
            if self._closed:
                return
            if not self._agreement.done():
                self._acknowledge(header)
            elif header & (INIT | ACK) == INIT:
                self._say(RESET)
                self._lose(LinkError(f"{self.dst}: the other side started anew"))
            elif header & RESET:
                self._lose(LinkError(f"{self.dst}: the other side is not ready"))
            elif header & INIT:
                pass  # it answers again what it has answered
            elif self._on_data is None:
                self._early.append(payload)
            else:
                self._deliver(payload)

    def _begin(self) -> None:
        early, self._early = self._early, []
        for payload in early:
            self._deliver(payload)

    def _acknowledge(self, header: int) -> None:
        """Handle a frame that came before the link was agreed."""
        if self._connects and header & INIT and header & ACK:
            self._ask_no_more()
            self._agree()
        elif self._connects and header & RESET:
            self._ask_no_more()
            self._next = self._loop.call_later(AGAIN, self._ask)
        elif not self._connects and header & INIT and not header & ACK:
            self._say(INIT | ACK)
            self._agree()

    def _ask(self) -> None:
        self._next = self._loop.call_later(AGAIN, self._ask)
        self._say(INIT)

    def _ask_no_more(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _say(self, header: int) -> None:
        try:
            with self._lock:
                # One byte that means nothing: some implementations count on it.
                self._write(encode(header, b"\0"))
        except LinkError as error:
            self._lose(error)


@final
class _SerialListener(LinkListener):
    def __init__(
        self, endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink
    ) -> None:
        self._endpoint = endpoint
        self._loop = loop
        self._on_link = on_link
        self._closed = False
        first = _Port(endpoint, loop)  # what is wrong with the line is known at once
        self._waiting: SerialLink | None = SerialLink(first, loop, connects=False)
        self._task = loop.create_task(self._run())

    def locators(self) -> list[str]:
        """Where to reach it: nowhere but from the other end of the line."""
        return []

    def close(self) -> None:
        """Accept no more links."""
        self._closed = True
        self._task.cancel()
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None

    async def _run(self) -> None:
        while not self._closed:
            link = self._waiting
            if link is None:
                link = await self._reopened()
            try:
                await link.opened()
            except LinkError as error:
                log.warning("%s", error)
                link.close()
                self._waiting = None
                await asyncio.sleep(BREATH)
                continue
            self._waiting = None
            self._on_link(link)
            await asyncio.shield(link.gone)

    async def _reopened(self) -> SerialLink:
        while True:
            try:
                port = _Port(self._endpoint, self._loop)
            except LinkError as error:  # unplugged, perhaps
                log.debug("%s", error)
                await asyncio.sleep(BREATH)
                continue
            self._waiting = SerialLink(port, self._loop, connects=False)
            return self._waiting


@final
class _Port(UnicastLink):
    """The line itself: a stream of bytes, which may be lost."""

    stream = True
    reliable = False
    thread_safe = False
    mtu = MTU

    def __init__(self, endpoint: EndPoint, loop: asyncio.AbstractEventLoop) -> None:
        path = f"{PROTOCOL}/{endpoint.address}"
        super().__init__(path, path)
        self._fd = _opened(endpoint)
        self._loop = loop
        self._reading = False
        self._closed = False
        self._on_data: OnData | None = None
        self._on_lost: OnLost | None = None
        self._on_writable: Callable[[], None] | None = None

    @property
    def interfaces(self) -> list[str]:
        """None: it is no network."""
        return []

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to read."""
        self._on_data = on_data
        self._on_lost = on_lost
        self.resume()

    def send(self, data: bytes) -> int:
        """Hand bytes to the line; how many it took."""
        if self._closed:
            raise LinkError(f"{self.dst}: the link is closed")
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise LinkError(f"{self.dst}: cannot send: {reason(error)}") from error

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when `send` may take bytes."""
        if self._closed:
            return
        if self._on_writable is None:
            self._loop.add_writer(self._fd, self._writable)
        self._on_writable = callback

    def pause(self) -> None:
        """Read no more for now."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read again."""
        if not (self._reading or self._closed or self._on_data is None):
            self._reading = True
            self._loop.add_reader(self._fd, self._readable)

    def close(self) -> None:
        """Give the line back."""
        if self._closed:
            return
        self._closed = True
        self._on_data = None
        self._on_lost = None
        if not self._loop.is_closed():
            self.pause()
            if self._on_writable is not None:
                self._loop.remove_writer(self._fd)
        self._on_writable = None
        _give_back(self._fd)

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lost(LinkError(f"{self.dst}: the line broke: {reason(error)}"))
            return
        if not data:
            self._lost(LinkError(f"{self.dst}: the line was hung up"))
        elif self._on_data is not None:
            self._on_data(data)

    def _lost(self, error: LinkError) -> None:
        self.pause()
        on_lost = self._on_lost
        self._on_data = None
        self._on_lost = None
        if on_lost is not None:
            on_lost(error)

    def _writable(self) -> None:
        callback = self._on_writable
        self._on_writable = None
        self._loop.remove_writer(self._fd)
        if callback is not None:
            callback()


def _opened(endpoint: EndPoint) -> int:
    """A descriptor of the line: raw bytes, eight bits, no parity, no flow control."""
    try:
        import fcntl
        import termios
        import tty
    except ImportError as error:
        raise LinkError(f"{endpoint}: serial lines need a system with termios") from error
    rate = endpoint.get("baudrate") or str(BAUD_RATE)
    speed: int | None = getattr(termios, f"B{rate}", None)
    if speed is None or rate == "0":
        known = sorted(
            int(name[1:]) for name in dir(termios) if name[:1] == "B" and name[1:].isdigit()
        )
        rates = ", ".join(str(each) for each in known if each >= 1200)
        raise LocatorError(
            f"'{endpoint}': no line runs at {rate} bits a second; these are: {rates}"
        )
    try:
        fd = os.open(endpoint.address, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        raise LinkError(f"{endpoint}: cannot open the line: {reason(error)}") from error
    try:
        tty.setraw(fd)
        attributes = termios.tcgetattr(fd)
        attributes[0] &= ~(termios.IXON | termios.IXOFF | termios.IXANY)
        attributes[2] |= termios.CLOCAL | termios.CREAD
        attributes[2] &= ~(termios.CSTOPB | termios.CRTSCTS)
        attributes[4] = attributes[5] = speed
        termios.tcsetattr(fd, termios.TCSANOW, attributes)
        termios.tcflush(fd, termios.TCIOFLUSH)
        if endpoint.get("exclusive") != "false":
            fcntl.ioctl(fd, termios.TIOCEXCL)
    except (OSError, termios.error) as error:
        os.close(fd)
        why = error.args[-1] if error.args else error
        raise LinkError(f"{endpoint}: {endpoint.address} is no serial line: {why}") from error
    return fd


def _give_back(fd: int) -> None:
    import fcntl
    import termios

    with contextlib.suppress(OSError):
        fcntl.ioctl(fd, termios.TIOCNXCL)
    os.close(fd)
