"""Threads that wait for data read the links themselves.

A wake from one thread to another costs more than everything else that happens to a small message.
So a program's thread that finds its channel empty, in `recv()` or between two callbacks, does not
go to sleep at once: it takes the loop's place at the sockets of its node, and what it reads it
has. One thread helps at a time; the others sleep as before.

While there is a helper the loop does not watch the sockets (the links are *hot*); every
millisecond it looks whether the helper has gone to do something else, and reads in its place.
After a few such looks the links are its own again.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import TYPE_CHECKING, Final

from zenlake.engine.channel import Channel

if TYPE_CHECKING:
    from zenlake.engine.pump import Pump
    from zenlake.engine.runtime import Runtime

#: How long a helper stays without anything to read, in seconds.
STAY: Final = 0.02
#: How often the loop looks after hot links, in seconds, and how often before they are its own.
LOOK: Final = 0.001
LOOKS: Final = 5


class SocketPoller:
    """The sockets of one node, and the thread that reads them just now."""

    def __init__(self, runtime: Runtime) -> None:
        """Nobody helps yet."""
        self.runtime = runtime
        self._turn = threading.Lock()
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._by_fd: dict[int, Pump] = {}
        self._helper = 0
        #: Whether the loop leaves the sockets to a helper, and looks every millisecond.
        self.hot = False
        self._missed = 0
        self._closed = False

    def add(self, pump: Pump) -> None:
        """A link has come; on the loop thread."""
        fd = pump.link.fd
        if fd >= 0 and not self._closed:
            self._by_fd[fd] = pump
            self._epoll.register(fd, select.EPOLLIN)
            if self.hot:
                pump.link.unwatch()

    def remove(self, pump: Pump) -> None:
        """A link is about to be closed; on the loop thread."""
        fd = pump.link.fd
        if fd >= 0 and self._by_fd.pop(fd, None) is not None and not self._closed:
            with contextlib.suppress(OSError):  # the socket may be closed already
                self._epoll.unregister(fd)

    def poll_for(self, channel: Channel) -> bool:
        """Read the links until the channel has something; False if the thread had better sleep."""
        if not self._by_fd or self._closed or not self._turn.acquire(blocking=False):
            return False
        try:
            self._helper = threading.get_ident()
            if not self.hot:
                self.hot = True
                self.runtime.loop.soon(self._heat)
            channel.takers.interrupt = self.interrupt
            deadline = 0.0
            while not channel.queue.items and not channel.ended and not self._closed:
                if self._read():
                    deadline = 0.0
                    continue
                now = time.monotonic()
                if not deadline:
                    deadline = now + STAY
                elif now >= deadline:
                    return False
            return True
        finally:
            channel.takers.interrupt = None
            self._helper = 0
            self._turn.release()

    def _read(self) -> bool:
        """Wait for a while; whether anything was there."""
        events = self._epoll.poll(STAY)
        for fd, _ in events:
            pump = self._by_fd.get(fd)
            if pump is not None:
                if not pump.pauses:
                    pump.link.read_now()
            elif fd == self._bell:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._bell)
        return bool(events)

    def interrupt(self) -> None:
        """Something came another way: the helper looks at its channel."""
        if self._helper and self._helper != threading.get_ident() and not self._closed:
            os.eventfd_write(self._bell, 1)

    # ------------------------------------------------------------------------ on the loop thread

    def _heat(self) -> None:
        """Leave the sockets to the helper."""
        if self._closed:
            self.hot = False
            return
        for pump in list(self._by_fd.values()):
            pump.link.unwatch()
        self._missed = 0
        self.runtime.loop.loop.call_later(LOOK, self._look)

    def _look(self) -> None:
        """See that somebody reads."""
        if self._closed:
            return
        self.runtime.flush_later()
        if self._turn.locked():
            self._missed = 0
        else:
            self._missed += 1
            if self._missed >= LOOKS:
                self.hot = False
                self.runtime.flush_later()
                for pump in list(self._by_fd.values()):
                    pump.link.watch()
                return
            for pump in list(self._by_fd.values()):
                if not pump.pauses:
                    pump.link.read_now()
        self.runtime.loop.loop.call_later(LOOK, self._look)

    def close(self) -> None:
        """End it; the helper, if there is one, comes back."""
        if self._closed:
            return
        self._closed = True
        os.eventfd_write(self._bell, 1)
        with self._turn:
            self._epoll.close()
            os.close(self._bell)
            self._by_fd.clear()


def is_supported() -> bool:
    """Whether this system has what helping needs."""
    return hasattr(select, "epoll") and hasattr(os, "eventfd")
