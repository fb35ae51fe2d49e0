"""The event loops that nodes run on: the loop thread of the process, or the program's own loop.

The loop thread is started with the first node, and all nodes share it. A program that has an event
loop of its own runs its nodes there instead (`CallerLoop`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")
#: The C library returns free memory to the system by the half megabyte, and every large read and
#: payload then pays for getting it back, page by page. Once it has seen a block of this size come
#: and go it keeps twice as much.
LARGE: Final = 1 << 24
log = logging.getLogger("zenlake.engine")


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop: uvloop's if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class EventLoop:
    """An event loop, and the thread that runs it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        """`ident`: of the thread."""
        with contextlib.suppress(MemoryError):  # where even asking for it is too much
            bytes(LARGE)  # which touches none of it
        self.loop = loop
        self.ident = ident
        self.pid = os.getpid()

    @property
    def alive(self) -> bool:
        """Whether it runs in this very process (a fork leaves threads behind)."""
        return self.pid == os.getpid() and self.loop.is_running()

    def is_current(self) -> bool:
        """Whether the caller is the thread of the loop."""
        return threading.get_ident() == self.ident

    def soon(self, call: Callable[..., object], *arguments: object) -> None:
        """Have the loop call something, from any thread; nothing happens if it runs no more.

        It runs in no child of a fork, either.
        """
        if self.alive:
            try:
                self.loop.call_soon_threadsafe(call, *arguments)
            except RuntimeError:
                if not self.loop.is_closed():  # which may have happened since it was asked
                    raise

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for it."""
        if self.is_current():
            work.close()
            raise RuntimeError("the loop thread cannot wait for itself")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        return future.result(timeout)


class LoopThread(EventLoop):
    """A thread that runs an event loop until it is closed, or the process ends."""

    def __init__(self) -> None:
        """Start it."""
        super().__init__(new_loop(), 0)
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="zenlake-loop", daemon=True)
        self.thread.start()
        self._ready.wait()

    def _run(self) -> None:
        self.ident = threading.get_ident()
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._ready.set)
        self.loop.run_forever()

    @property
    def alive(self) -> bool:
        """Whether it runs in this very process (a fork leaves threads behind)."""
        return self.pid == os.getpid() and self.thread.is_alive()

    def close(self, patience: float = 5.0) -> None:
        """Stop the thread, and give back what its loop holds of the system.

        A thread that does not end within `patience` seconds keeps its loop.
        """
        self.soon(self.loop.stop)
        self.thread.join(patience)
        if not self.thread.is_alive():
            self.loop.close()


class CallerLoop(EventLoop):
    """The event loop that the caller runs on."""

    def __init__(self) -> None:
        """Raises `RuntimeError` where no loop runs."""
        super().__init__(asyncio.get_running_loop(), threading.get_ident())

    def soon(self, call: Callable[..., object], *arguments: object) -> None:
        """Have the loop call something; nothing happens when it runs no more."""
        if self.is_current():
            if not self.loop.is_closed():
                self.loop.call_soon(call, *arguments)
        else:
            super().soon(call, *arguments)


_lock = threading.Lock()
_shared: LoopThread | None = None


def shared_loop() -> LoopThread:
    """The loop thread of this process."""
    global _shared
    with _lock:
        if _shared is None or not _shared.alive:
            _shared = LoopThread()
        return _shared


def _after_fork() -> None:
    """A child has none of the threads, and perhaps a lock that no thread will release."""
    global _lock, _shared
    _lock = threading.Lock()
    _shared = None


def _stop() -> None:
    """End the thread before the interpreter does, which takes its modules away."""
    loop = _shared
    if loop is not None and loop.alive and not loop.is_current():
        loop.soon(loop.loop.stop)
        loop.thread.join(1.0)


# Registered before sessions are: what they do at exit still finds the loop running.
atexit.register(_stop)
os.register_at_fork(after_in_child=_after_fork)
