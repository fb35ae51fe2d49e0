"""The interface of links, as the engine sees them.

A link carries bytes to one neighbour and back. It is an edge with no opinion: it does not know
batches, sessions or leases. Its life:

    connect() ──► Link ──► start(on_data, on_lost) ──► send … when_writable … ──► close()
    listen()  ──► LinkListener ──► on_link(Link) for each neighbour that comes

Everything is called on the thread of the loop, but for `send` of a link that is `thread_safe`.
"""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from zenlake.errors import LinkError

__all__ = [
    "MAX_BATCH",
    "UDP_BATCH",
    "LinkListener",
    "OnData",
    "OnLink",
    "OnLost",
    "UnicastLink",
    "reason",
]

MAX_BATCH: Final = 65535
UDP_BATCH: Final = 65487
"""The largest batch that fits into a datagram, in bytes."""

OnData = Callable[[bytes], None]
OnLost = Callable[[Exception | None], None]


class UnicastLink(ABC):
    """A connection that carries bytes to one neighbour and back."""

    stream: bool
    """Whether bytes arrive without boundaries; else each `send` is one datagram."""
    reliable: bool
    """Whether what was accepted arrives, in order, or the link breaks."""
    thread_safe: bool
    """Whether `send` may be called from any thread; then each class says how a thread waits."""
    mtu: int
    """The largest batch to offer, with its length prefix on a stream."""
    burst: int = 0
    """How many bytes to give to `send` at once; 0: each batch by itself."""
    auth_identifier: str | None = None
    """The common name in the certificate that the other side proved to own, if it has one."""

    def __init_subclass__(cls) -> None:
        """Refuse a class that any thread may write and none can wait for."""
        super().__init_subclass__()
        # A class that does not set it may set it for each link: it has to be ready for both.
        if getattr(cls, "thread_safe", True) and cls.wait_writable is UnicastLink.wait_writable:
            raise TypeError(
                f"{cls.__name__} may be written by any thread, and has no wait_writable; "
                "define it, or set thread_safe = False"
            )

    def __init__(self, src: str, dst: str) -> None:
        self.src = src
        """The locator of this side."""
        self.dst = dst
        """The locator of the other side."""

    @property
    @abstractmethod
    def interfaces(self) -> list[str]:
        """The network interfaces it runs over."""

    @abstractmethod
    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        """Begin to read.

        `on_data` gets what arrives; on a datagram link each call is one datagram. `on_lost` is
        called once when the link breaks: with None if the other side closed it in order, else
        with a `LinkError`. Neither is called after `close`.
        """

    @abstractmethod
    def send(self, data: bytes) -> int:
        """Hand bytes to the network, without waiting; how many it took.

        0 means that nothing fits now: try again when writable. A stream may take a part, a
        datagram is taken completely or not at all. Raises `LinkError` when the link is broken.
        """

    @abstractmethod
    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, on the loop, when `send` may take bytes; it replaces an earlier."""

    def wait_writable(self, seconds: float) -> None:
        """Wait until `send` may take bytes, but not longer, on any thread that can wait.

        Only for links that any thread may write, which must define it.
        """
        raise NotImplementedError(f"{type(self).__name__} is written by the loop alone")

    @property
    def fd(self) -> int:
        """A descriptor that shows when `read_now` has something to read; -1: there is none."""
        return -1

    def read_now(self) -> None:  # noqa: B027 - only links with a descriptor have it
        """Read what is there, on any thread, and give it to `on_data` on that thread."""

    def read_at_most(self, size: int) -> None:  # noqa: B027 - where one read is one message
        """Read about so many bytes at once from now on: they become many more inside."""

    def unwatch(self) -> None:  # noqa: B027
        """Leave the reading to `read_now`; unlike `pause`, data is still wanted."""

    def watch(self) -> None:  # noqa: B027
        """Read by itself again."""

    @abstractmethod
    def pause(self) -> None:
        """Read no more for now, so that the other side comes to wait."""

    @abstractmethod
    def resume(self) -> None:
        """Read again."""

    def finish(self, on_end: Callable[[], None]) -> bool:
        """Send nothing more; read and drop what still arrives, until the other side ends.

        `on_end` is called then, on the loop thread: `close` is still needed. Returns False if this
        kind of link has no end to wait for.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """End the link at once; never raises, a second time does nothing."""

    def admit(self) -> None:  # noqa: B027 - most links have no use for it
        """A session runs over it: it no longer counts among those that have not opened one."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.src} => {self.dst}>"


OnLink = Callable[[UnicastLink], None]


class LinkListener(ABC):
    """Accepts links from neighbours that connect."""

    @abstractmethod
    def locators(self) -> list[str]:
        """Where to reach it, with `0.0.0.0` and `[::]` replaced by the addresses they stand for."""

    @abstractmethod
    def close(self) -> None:
        """Accept no more links; those that were accepted live on. A second time does nothing."""


def reason(error: BaseException) -> str:
    """Why something failed, as the system words it and without its numbers."""
    if isinstance(error, LinkError):
        return str(error)
    if isinstance(error, TimeoutError) and not error.args:
        return "no answer in time"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
