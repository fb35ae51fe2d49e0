"""Asking a lake that runs on this machine, over its socket; nothing else is imported for it.

    answer = ask(folder, {"do": "sql", "sql": "SELECT 1"})
    if answer is None: ...               # no lake runs there

`ask.json` in the lake's folder says where the socket is, which only its owner can open. A request
is a line of JSON; the reply is a row of frames, each a letter, a length of four bytes and so many
bytes:

    A   a piece of an Arrow IPC stream
    J   a fact as JSON; the last one is the end
    E   what went wrong, as JSON: {"error": "…"}
"""

from __future__ import annotations

import io
import json
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import LocalError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ARROW", "ERROR", "FACT", "HEAD", "PAGE", "LocalRequest", "ask"]

PAGE: Final = "ask.json"
HEAD: Final = struct.Struct(">cI")
ARROW: Final = b"A"
FACT: Final = b"J"
ERROR: Final = b"E"
LONGEST: Final = 64 << 20
PIECE: Final = 1 << 20
CONNECT: Final = 1.0


@final
class LocalRequest:
    """One request to a running lake, and what comes back."""

    def __init__(self, line: socket.socket, request: Mapping[str, Any]) -> None:
        """Send the request."""
        self._line = line
        line.sendall(json.dumps(dict(request)).encode() + b"\n")
        self._file = line.makefile("rb")

    def __enter__(self) -> LocalRequest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Go away; what still runs for this request is cancelled."""
        self._file.close()
        self._line.close()

    def fact(self) -> dict[str, Any]:
        """The next fact; raises `LocalError` with what the lake says went wrong."""
        kind, data = self._frame()
        if kind != FACT:
            raise LocalError(f"the lake sent {kind!r} where a fact was expected")
        fact: dict[str, Any] = json.loads(data)
        return fact

    def table(self) -> pa.Table:
        """The rows, all that are sent."""
        import pyarrow as pa

        pieces = _Pieces(self)
        # Buffered, for a reader that asks for so many bytes wants all of them.
        with pa.ipc.open_stream(pa.PythonFile(io.BufferedReader(pieces, PIECE), "r")) as reader:
            rows = reader.read_all()
        pieces.drain()
        self.fact()
        return rows

    def _frame(self) -> tuple[bytes, bytes]:
        head = self._file.read(HEAD.size)
        if len(head) < HEAD.size:
            raise LocalError("the lake went away before it had answered; ask again")
        kind, size = HEAD.unpack(head)
        if size > LONGEST:
            raise LocalError(f"the lake sent a piece of {size} bytes; that is too much")
        data = self._file.read(size)
        if kind == ERROR:
            raise LocalError(str(json.loads(data)["error"]))
        return kind, data


class _Pieces(io.RawIOBase):
    """The Arrow pieces of an answer as one file; an empty one ends it."""

    def __init__(self, asking: LocalRequest) -> None:
        self._asking = asking
        self._held = b""
        self._over = False

    def readable(self) -> bool:
        return True

    def drain(self) -> None:
        """Take what is left up to the end."""
        while not self._over:
            kind, self._held = self._asking._frame()
            self._over = kind != ARROW or not self._held

    def readinto(self, into: Any) -> int:
        while not self._held and not self._over:
            kind, self._held = self._asking._frame()
            self._over = kind != ARROW or not self._held
        count = min(len(into), len(self._held))
        into[:count] = self._held[:count]
        self._held = self._held[count:]
        return count


def ask(lake: str | Path, request: Mapping[str, Any]) -> LocalRequest | None:
    """Ask the lake that runs in this folder; None if none does."""
    if "://" in str(lake) or not hasattr(socket, "AF_UNIX"):
        return None
    try:
        page = json.loads((Path(lake).expanduser() / PAGE).read_text("utf-8"))
        place = str(page["socket"])
        # Only a socket of our own user, or of root, is asked.
        if os.stat(place).st_uid not in (os.getuid(), 0):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(CONNECT)
        line.connect(place)
        line.settimeout(None)
        return LocalRequest(line, request)
    except OSError:
        line.close()
        return None
