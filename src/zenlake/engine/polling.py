"""Threads that wait for data poll the sockets themselves (the leader of leader/followers).

A wake from one thread to another costs more than everything else that happens to a small message.
So a program's thread that finds its channel empty, in `recv()` or between two callbacks, does not
sleep at once: it polls the sockets of its node in the loop's place, and has what it reads. One
thread polls at a time; the others sleep.

States, of all links together:

    cold   the loop watches the sockets
    hot    the loop does not watch them. Every `LOOK` seconds it checks whether a thread polls; if
           none does, it reads in its place; after `LOOKS` such checks in a row they are cold

    cold ──poll_for──► hot       `_hand_over`, on the loop
    hot ──`LOOKS` checks without a polling thread──► cold

A link that is paused would be readable again and again: it is left out of what is polled until it
is resumed (`resumed`).

Locks: the thread that polls holds `_polling`, and takes the node's lock for each read as the loop
does. `_by_fd` changes on the loop thread alone. `close` takes `_polling`, so that no descriptor is
closed under a thread that polls it.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import TYPE_CHECKING, Final

from zenlake.engine.channel import Channel
from zenlake.engine.flushing import LoopCheck

if TYPE_CHECKING:
    from zenlake.engine.pump import Pump
    from zenlake.engine.running_node import RunningNode

#: How long a thread polls without anything to read before it sleeps, in seconds.
STAY: Final = 0.02
#: How often the loop checks hot links, in seconds.
LOOK: Final = 0.001
#: So many checks in a row without a polling thread make the links cold.
LOOKS: Final = 5
#: With more links than this no thread polls: each change of hands visits all of them.
FEW: Final = 256


class SocketPoller(LoopCheck):
    """The sockets of one node, and the thread that polls them."""

    def __init__(self, runtime: RunningNode) -> None:
        """No thread polls yet, and the loop watches the sockets."""
        super().__init__()
        self.runtime = runtime
        self._polling = threading.Lock()
        self._epoll = select.epoll()
        #: Written to call back the thread that polls.
        self._interrupt = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._interrupt, select.EPOLLIN)
        self._by_fd: dict[int, Pump] = {}
        #: The descriptors of paused links, which are not polled; changed by both threads.
        self._left_out: set[int] = set()
        #: The thread that polls; 0: none. (The compiler cannot have a `_thread`.)
        self._owner = 0
        #: Checks in a row without a polling thread.
        self._missed = 0
        self._closed = False

    def add(self, pump: Pump) -> None:
        """Poll a link that was opened; on the loop thread."""
        fd = pump.link.fd
        if fd >= 0 and not self._closed:
            self._by_fd[fd] = pump
            self._epoll.register(fd, select.EPOLLIN)
            pump.poller = self
            if self.hot:
                pump.link.unwatch()

    def remove(self, pump: Pump) -> None:
        """Forget a link that is about to be closed; on the loop thread."""
        fd = pump.link.fd
        if fd >= 0 and self._by_fd.pop(fd, None) is not None and not self._closed:
            pump.poller = None
            self._left_out.discard(fd)
            with contextlib.suppress(OSError):  # the socket may be closed already
                self._epoll.unregister(fd)

    def resumed(self, pump: Pump) -> None:
        """Poll a link again that was paused; on the loop thread."""
        self._poll_again(pump.link.fd)

    def _poll_again(self, fd: int) -> None:
        if fd in self._left_out:
            self._left_out.discard(fd)
            with contextlib.suppress(OSError, ValueError):  # it is polled already, or no more
                self._epoll.register(fd, select.EPOLLIN)

    # ---------------------------------------------------------------------- on a waiting thread

    def poll_for(self, channel: Channel) -> bool:
        """Read the links until the channel has an item or ends; False: the thread should sleep."""
        if not self._by_fd or len(self._by_fd) > FEW:
            return False
        if self._closed or not self._polling.acquire(blocking=False):
            return False
        try:
            self._owner = threading.get_ident()
            if not self.hot:
                self.hot = True
                self.runtime.loop.soon(self._hand_over)
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
            self._owner = 0
            self._polling.release()

    def _read(self) -> bool:
        """Wait for up to `STAY` seconds and read what came; whether there was anything."""
        events = self._epoll.poll(STAY)
        for fd, _ in events:
            pump = self._by_fd.get(fd)
            if pump is not None:
                if pump.pauses:
                    self._leave_out(fd)
                else:
                    pump.link.read_now()
            elif fd == self._interrupt:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._interrupt)
        return bool(events)

    def _leave_out(self, fd: int) -> None:
        """Do not poll a link that is paused."""
        with contextlib.suppress(OSError):
            self._epoll.unregister(fd)
        self._left_out.add(fd)
        pump = self._by_fd.get(fd)
        if pump is not None and not pump.pauses:
            self._poll_again(fd)  # it was resumed meanwhile

    def interrupt(self) -> None:
        """Have the polling thread look at its channel; from any thread."""
        if self._owner and self._owner != threading.get_ident() and not self._closed:
            os.eventfd_write(self._interrupt, 1)

    # ------------------------------------------------------------------------ on the loop thread

    def _hand_over(self) -> None:
        """Stop watching the sockets, and begin to check."""
        if self._closed:
            self.hot = False
            return
        for pump in list(self._by_fd.values()):
            pump.link.unwatch()
        self._missed = 0
        self.runtime.loop.loop.call_later(LOOK, self._check)

    def _check(self) -> None:
        """Read in place of a thread that does not; watch again if none has come back."""
        if self._closed:
            return
        self.runtime.flushing.flush_later()
        if self._polling.locked():
            self._missed = 0
        else:
            self._missed += 1
            if self._missed >= LOOKS:
                self.hot = False
                self.runtime.flushing.flush_later()
                for pump in list(self._by_fd.values()):
                    pump.link.watch()
                return
            for pump in list(self._by_fd.values()):
                if not pump.pauses:
                    pump.link.read_now()
        self.runtime.loop.loop.call_later(LOOK, self._check)

    def close(self) -> None:
        """Stop; a thread that polls comes back."""
        if self._closed:
            return
        self._closed = True
        os.eventfd_write(self._interrupt, 1)
        with self._polling:
            self._epoll.close()
            os.close(self._interrupt)
            self._by_fd.clear()


def is_supported() -> bool:
    """Whether this system has the calls that polling from any thread needs."""
    return hasattr(select, "epoll") and hasattr(os, "eventfd")
