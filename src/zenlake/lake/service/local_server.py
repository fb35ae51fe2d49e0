"""The socket of a running lake: requests of programs on this machine, each on a thread of its own.

What it answers to is registered by name: `sql` and `tables` here, and whatever else runs in the
lake's process. `lake_client` is the other side.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import LocalError, ZError
from zenlake.lake_client import ARROW, ERROR, FACT, HEAD, PAGE

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Handler", "LocalCaller", "LocalServer"]

log = logging.getLogger("zenlake.lake")

MOST: Final = 64
LONGEST: Final = 1 << 20
PIECE: Final = 4 << 20
PATIENCE: Final = 30.0
"""Seconds that a visitor may take to read a piece of the answer."""


@final
class LocalCaller:
    """Who asked, over one connection."""

    def __init__(self, line: socket.socket, number: int) -> None:
        """`number` tells visitors apart."""
        self._line = line
        self.name = f"terminal {number}"

    def gone(self) -> bool:
        """Whether the program that asked waits no longer."""
        try:
            readable, _, _ = select.select([self._line], [], [], 0)
            return bool(readable) and not self._line.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def fact(self, fact: object) -> None:
        """Send a fact."""
        self._send(FACT, json.dumps(fact).encode())

    def refuse(self, why: str) -> None:
        """Say what went wrong."""
        self._send(ERROR, json.dumps({"error": why}).encode())

    def table(self, rows: pa.Table) -> None:
        """Send rows, piece by piece."""
        import pyarrow as pa

        sink = _Sink(lambda data: self._send(ARROW, data))
        with pa.ipc.new_stream(pa.PythonFile(sink, "w"), rows.schema) as writer:
            for batch in rows.to_batches(max_chunksize=65536):
                writer.write_batch(batch)
        sink.flush()
        self._send(ARROW, b"")

    def _send(self, kind: bytes, data: bytes) -> None:
        self._line.sendall(HEAD.pack(kind, len(data)) + data)


class _Sink:
    """Gathers what is written into pieces."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._held = bytearray()
        self.closed = False

    def write(self, data: bytes) -> int:
        self._held += data
        while len(self._held) >= PIECE:
            self._send(bytes(self._held[:PIECE]))
            del self._held[:PIECE]
        return len(data)

    def flush(self) -> None:
        if self._held:
            self._send(bytes(self._held))
            self._held.clear()

    def close(self) -> None:
        self.closed = True


Handler = Callable[[dict[str, Any], LocalCaller], None]
"""Answers a request; what it raises is sent as the error."""


@final
class LocalServer:
    """Listens beside a lake until it is closed."""

    def __init__(self, folder: str | Path) -> None:
        """Listen, and say where in the lake's folder."""
        self._handlers: dict[str, Handler] = {}
        self._page = Path(folder) / PAGE
        # In a folder that only this user may enter, with a name short enough for a socket.
        self._private = tempfile.mkdtemp(prefix="zenlake-")
        place = f"{self._private}/lake"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(place)
        self._listener.listen(MOST)
        self._over = False
        self._slots = threading.BoundedSemaphore(MOST)
        self._number = 0
        self._sweep()
        fresh = self._page.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"pid": os.getpid(), "socket": place}), "utf-8")
        fresh.replace(self._page)
        self._thread = threading.Thread(target=self._listen, name="zenlake socket", daemon=True)
        self._thread.start()

    def _sweep(self) -> None:
        """Take away the socket of a lake that was killed here."""
        try:
            page = json.loads(self._page.read_text("utf-8"))
            old = Path(str(page["socket"])).parent
            os.kill(int(page["pid"]), 0)
        except ProcessLookupError:
            if old.name.startswith("zenlake-") and old.parent == Path(tempfile.gettempdir()):
                shutil.rmtree(old, ignore_errors=True)
        except (OSError, ValueError, KeyError, TypeError):
            return

    def handle(self, name: str, handler: Handler) -> None:
        """Answer requests whose `do` is this name."""
        self._handlers[name] = handler

    def close(self) -> None:
        """Listen no more."""
        self._over = True
        self._page.unlink(missing_ok=True)
        # A listener that is only closed keeps the thread in `accept`.
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
            try:
                last.connect(self._listener.getsockname())
            except OSError:
                log.debug("the socket was closed already")
        self._thread.join(5.0)
        self._listener.close()
        shutil.rmtree(self._private, ignore_errors=True)

    def _listen(self) -> None:
        while not self._over:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            if self._over:
                line.close()
                return
            self._number += 1
            caller = LocalCaller(line, self._number)
            if not self._slots.acquire(blocking=False):
                with line:
                    caller.refuse(f"{MOST} programs ask already; ask again in a moment")
                continue
            threading.Thread(
                target=self._serve, args=(line, caller), name="zenlake visitor", daemon=True
            ).start()

    def _serve(self, line: socket.socket, caller: LocalCaller) -> None:
        try:
            with line:
                line.settimeout(PATIENCE)
                self._answer(line, caller)
        except OSError as error:
            log.debug("%s went away: %s", caller.name, error)
        finally:
            self._slots.release()

    def _answer(self, line: socket.socket, caller: LocalCaller) -> None:
        try:
            request = json.loads(_read_line(line))
            name = request.get("do") if isinstance(request, dict) else None
            handler = self._handlers.get(str(name))
            if handler is None:
                raise LocalError(
                    f"the lake knows no '{name}'; it knows {', '.join(sorted(self._handlers))}"
                )
            handler(request, caller)
        except (ZError, ValueError) as error:
            caller.refuse(str(error))
        except OSError:
            raise
        except Exception as error:
            log.exception("a request failed")
            caller.refuse(f"the lake failed: {error}")


def _read_line(line: socket.socket) -> bytes:
    request = bytearray()
    while not request.endswith(b"\n"):
        data = line.recv(65536)
        if not data:
            raise OSError("no request came")
        request += data
        if len(request) > LONGEST:
            raise LocalError(f"a request of more than {LONGEST >> 20} MB")
    return bytes(request)
