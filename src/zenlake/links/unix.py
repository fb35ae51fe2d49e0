"""Links over stream sockets of the file system: `unixsock-stream/run/zenoh.sock`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import stat
from typing import Final, final

from zenlake.errors import LinkError
from zenlake.links.link import LinkListener, OnLink, UnicastLink, reason
from zenlake.links.stream import StreamAcceptor, StreamLink
from zenlake.values.locator import EndPoint

__all__ = ["PROTOCOL", "connect", "listen"]

PROTOCOL: Final = "unixsock-stream"

# A side that connects has no name of its own; locators want one.
_anonymous: Final = itertools.count(1)


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float
) -> UnicastLink:
    """A link to the process that listens at the path."""
    sock = _socket(endpoint)
    try:
        async with asyncio.timeout(timeout):
            await loop.sock_connect(sock, endpoint.address)
    except OSError as error:  # a timeout is one, too
        sock.close()
        raise LinkError(
            f"{endpoint}: cannot connect to {endpoint.address}: {reason(error)}"
        ) from error
    except BaseException:
        sock.close()
        raise
    return StreamLink(sock, loop, _nameless(), f"{PROTOCOL}/{endpoint.address}")


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink
) -> LinkListener:
    """Take connections at the path; a socket that a dead process left there is replaced."""
    path = endpoint.address
    _unlink_stale(endpoint)
    sock = _socket(endpoint)
    try:
        sock.bind(path)
        return _UnixListener(path, sock, loop, on_link)
    except OSError as error:
        sock.close()
        raise LinkError(f"{endpoint}: cannot listen at {path}: {reason(error)}") from error


@final
class _UnixListener(LinkListener):
    def __init__(
        self, path: str, sock: socket.socket, loop: asyncio.AbstractEventLoop, on_link: OnLink
    ) -> None:
        self._path = path
        self._loop = loop
        self._on_link = on_link
        self._file = _identity(path)
        self._acceptor = StreamAcceptor(sock, loop, self._accepted)

    def locators(self) -> list[str]:
        """Where to reach it."""
        return [f"{PROTOCOL}/{self._path}"]

    def close(self) -> None:
        """Accept no more links, and remove the path unless another socket is there by now."""
        self._acceptor.close()
        if self._file is not None and _identity(self._path) == self._file:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._file = None

    def _accepted(self, sock: socket.socket, _address: object) -> None:
        self._on_link(StreamLink(sock, self._loop, f"{PROTOCOL}/{self._path}", _nameless()))


def _socket(endpoint: EndPoint) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise LinkError(f"{endpoint}: this system has no sockets in its file system; use tcp")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    return sock


def _unlink_stale(endpoint: EndPoint) -> None:
    """Remove a socket that no process listens at; refuse to touch anything else."""
    path = endpoint.address
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LinkError(f"{endpoint}: cannot look at {path}: {reason(error)}") from error
    if not stat.S_ISSOCK(status.st_mode):
        raise LinkError(f"{endpoint}: {path} is there and is not a socket; choose another path")
    with _socket(endpoint) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return
        except FileNotFoundError:
            return
        except BlockingIOError:
            pass  # its queue is full: a process listens
        except OSError as error:
            raise LinkError(
                f"{endpoint}: cannot find out whether a process listens at {path}: {reason(error)}"
            ) from error
    raise LinkError(f"{endpoint}: another process listens at {path}; choose another path")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _nameless() -> str:
    return f"{PROTOCOL}/anonymous-{next(_anonymous)}"
