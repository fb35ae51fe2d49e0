"""A link over a connected stream socket, and the socket that takes such connections.

The socket is ours, not an asyncio transport: so any thread may write to it, and a read takes all
that has arrived, up to half a megabyte, with one call.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import select
import socket
import threading
from collections.abc import Callable
from typing import Final, final

from zenlake.errors import LinkError
from zenlake.links.interfaces import interfaces_at
from zenlake.links.link import MAX_BATCH, OnData, OnLost, UnicastLink, reason
from zenlake.links.refusals import RefusalLog

__all__ = ["READ_SIZE", "StreamAcceptor", "StreamLink"]

READ_SIZE: Final = 524288
LEAST_READ: Final = 4096
PATIENCE: Final = 0.1
"""How long a thread waits at most before it looks whether it still wants to."""
LAST_READS: Final = 8
"""How many reads are dropped of a side that sends on while the link ends."""
BACKLOG: Final = 128
ACCEPTS_AT_ONCE: Final = 32
"""How many connections are accepted before other callbacks of the loop run."""
BREATH: Final = 0.2
"""How many seconds to wait when the process has no more descriptors for connections."""


@final
class StreamLink(UnicastLink):
    """A connected stream socket, which the link owns from now on."""

    stream = True
    reliable = True
    thread_safe = True
    mtu = MAX_BATCH
    burst = 1 << 20

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        src: str,
        dst: str,
        host: str = "",
    ) -> None:
        super().__init__(src, dst)
        sock.setblocking(False)
        self._sock = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._host = host
        # Closing waits for a `send` of another thread: its descriptor must not become another
        # connection's while the system call is under way.
        self._lock = threading.Lock()
        self._closed = False
        self._reading = False
        self._paused = False
        self._read_size = READ_SIZE
        self._unwatched = False
        #: Held while bytes are read and handed over: two threads would mix them up.
        self._reader = threading.Lock()
        self._on_data: OnData | None = None
        self._on_lost: OnLost | None = None
        self._on_writable: Callable[[], None] | None = None

    @property
    def interfaces(self) -> list[str]:
        """The interfaces that have this side's address."""
        return interfaces_at(self._host) if self._host else []

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to read."""
        self._on_data = on_data
        self._on_lost = on_lost
        self._read_if_wanted()

    def send(self, data: bytes) -> int:
        """Hand bytes to the network, without waiting; how many it took."""
        with self._lock:
            if self._closed:
                raise LinkError(f"{self.dst}: the link is closed")
            try:
                return self._sock.send(data)
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

    def wait_writable(self, seconds: float) -> None:
        """Wait until `send` may take bytes, but not longer.

        Should the socket be closed meanwhile, the worst that happens is a wait for nothing.
        """
        if self._closed:
            return
        seconds = min(seconds, PATIENCE)
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._fd, select.POLLOUT)
            poll.poll(seconds * 1000)
        else:
            select.select([], [self._fd], [], seconds)

    @property
    def fd(self) -> int:
        """The socket's."""
        return self._fd

    def read_now(self) -> None:
        """Read what is there, on any thread."""
        self._readable()

    def read_at_most(self, size: int) -> None:
        """Read about so many bytes at once from now on."""
        self._read_size = min(max(size, LEAST_READ), READ_SIZE)

    def unwatch(self) -> None:
        """Leave the reading to others."""
        self._unwatched = True
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def watch(self) -> None:
        """Read by itself again."""
        self._unwatched = False
        self._read_if_wanted()

    def pause(self) -> None:
        """Read no more for now."""
        self._paused = True
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read again."""
        self._paused = False
        self._read_if_wanted()

    def finish(self, on_end: Callable[[], None]) -> bool:
        """Shut the writing half down, and drop what arrives until the other side does the same.

        Bytes that arrive at a closed socket reset the connection, and a reset may overtake what
        this side sent last.
        """
        with self._lock:
            if self._closed:
                return False
            try:
                self._sock.shutdown(socket.SHUT_WR)
            except OSError:
                return False
        left = LAST_READS

        def drop(_data: bytes) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                on_end()

        self._on_data = drop
        self._on_lost = lambda _error: on_end()
        self._paused = False
        self._unwatched = False
        self._read_if_wanted()
        return True

    def close(self) -> None:
        """End the link, at once."""
        if self._closed:
            return
        self._closed = True
        self._stop_waiting()
        self._on_data = None
        self._on_lost = None
        with self._lock, contextlib.suppress(OSError):
            # A socket closed over unread bytes resets the connection, and the other side may
            # then lose what we sent last. So what has arrived is read, within reason.
            with contextlib.suppress(OSError):
                for _ in range(LAST_READS):
                    if not self._sock.recv(READ_SIZE):
                        break
            self._sock.close()

    def _read_if_wanted(self) -> None:
        if self._on_data is None or self._paused or self._reading or self._closed:
            return
        if self._unwatched:
            return
        self._reading = True
        self._loop.add_reader(self._fd, self._readable)

    def _readable(self) -> None:
        if not self._reader.acquire(blocking=False):
            return  # another thread is at it
        try:
            on_data = self._on_data
            if on_data is None or self._closed:
                return
            error: LinkError | None = None
            try:
                with self._lock:
                    if self._closed:
                        return
                    data = self._sock.recv(self._read_size)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as broken:
                data = b""
                error = LinkError(f"{self.dst}: the link broke: {reason(broken)}")
            if data:
                on_data(data)
                return
        finally:
            self._reader.release()
        if self._unwatched:
            # Perhaps not on the loop thread, where links are lost.
            self._on_data = None
            self._loop.call_soon_threadsafe(self._lost, error)
        else:
            self._lost(error)

    def _writable(self) -> None:
        callback = self._on_writable
        self._on_writable = None
        self._loop.remove_writer(self._fd)
        if callback is not None:
            callback()

    def _lost(self, error: LinkError | None) -> None:
        on_lost = self._on_lost
        self._on_data = None
        self._on_lost = None
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)
        if on_lost is not None:
            on_lost(error)

    def _stop_waiting(self) -> None:
        # The loop may be closed already when a process ends in disorder.
        if self._loop.is_closed():
            return
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)
        if self._on_writable is not None:
            self._on_writable = None
            self._loop.remove_writer(self._fd)


@final
class StreamAcceptor:
    """A bound socket that takes connections and hands them over, until it is closed."""

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        on_socket: Callable[[socket.socket, object], None],
    ) -> None:
        sock.setblocking(False)
        sock.listen(BACKLOG)
        self.sock = sock
        self._loop = loop
        self._on_socket = on_socket
        self._refusals = RefusalLog()
        self._closed = False
        self._rest: asyncio.TimerHandle | None = None
        loop.add_reader(sock.fileno(), self._acceptable)

    def close(self) -> None:
        """Take no more connections; those that wait in the system are refused."""
        if self._closed:
            return
        self._closed = True
        if not self._loop.is_closed():
            if self._rest is None:
                self._loop.remove_reader(self.sock.fileno())
            else:
                self._rest.cancel()
        self._rest = None
        self.sock.close()

    def _acceptable(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted, address = self.sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._refusals.warn(f"cannot take a connection: {reason(error)}")
                    return
                self._refusals.warn(f"no connection can be taken for now: {reason(error)}")
                self._loop.remove_reader(self.sock.fileno())
                self._rest = self._loop.call_later(BREATH, self._rested)
                return
            self._on_socket(accepted, address)
            if self._closed:
                return

    def _rested(self) -> None:
        self._rest = None
        self._loop.add_reader(self.sock.fileno(), self._acceptable)
