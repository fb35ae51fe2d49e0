"""Waiting: saying what is waited for, and after a while that nobody is there."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from zenlake.cli.connection import Connection, note

if TYPE_CHECKING:
    from zenlake.api.matching import MatchingStatus
    from zenlake.api.publish import Publisher
    from zenlake.api.querier import Querier
    from zenlake.api.session import Session

LONG = 2.0
"""From how many seconds on a terminal shows what is being waited for."""

ERASE = "\r\x1b[K"


class WaitNotice:
    """Shows on a terminal what is being waited for, once that takes long."""

    def __init__(self, what: str) -> None:
        """In words: `opening a session`."""
        self._what = what
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._shown = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin to wait."""
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._tell, name="zenlake waiting", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Waited enough."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self.clear()

    def clear(self) -> None:
        """Take the line away, so that another can be printed; it comes back by itself."""
        with self._lock:
            if self._shown:
                self._shown = False
                sys.stderr.write(ERASE)
                sys.stderr.flush()

    def _tell(self) -> None:
        seconds = LONG
        over = self._over.wait(LONG)
        while not over:
            with self._lock:
                self._shown = True
                sys.stderr.write(f"{ERASE}{self._what} … {seconds:.0f} s")
                sys.stderr.flush()
            over = self._over.wait(1.0)
            seconds += 1


@contextmanager
def looking_out(session: Session, connection: Connection) -> Iterator[None]:
    """Note once that no neighbour came before the patience of `connection` ended."""
    came = threading.Event()

    def look() -> None:
        if not came.wait(connection.wait) and not session.is_closed():
            note(nobody(session))

    with session.info.declare_transport_events_listener(lambda _: came.set(), history=True):
        looking = threading.Thread(target=look, name="zenlake looking out", daemon=True)
        looking.start()
        try:
            yield
        finally:
            came.set()
            looking.join()


def matched(entity: Publisher | Querier, session: Session, connection: Connection) -> bool:
    """Whether a subscriber or queryable matches before the patience of `connection` ends.

    If none does, a note says so.
    """
    came = threading.Event()

    def changed(status: MatchingStatus) -> None:
        if status.matching:
            came.set()

    if entity.matching_status.matching:
        return True
    with entity.declare_matching_listener(changed), WaitNotice("waiting for a neighbour"):
        if came.wait(connection.wait):
            return True
    if session.info.transports():
        note(f"nobody has declared an interest in '{entity.key_expr}'")
    else:
        note(nobody(session))
    return False


def neighboured(session: Session, connection: Connection) -> bool:
    """Whether there is a neighbour before the patience of `connection` ends; if not, it is told."""
    came = threading.Event()
    with (
        session.info.declare_transport_events_listener(lambda _: came.set(), history=True),
        WaitNotice("waiting for a neighbour"),
    ):
        if came.wait(connection.wait):
            return True
    note(nobody(session))
    return False


def nobody(session: Session) -> str:
    """A sentence: there is no neighbour, what was tried, and what can be done."""
    runtime = session.runtime
    with runtime.locked() as node:
        tried = [
            f"{endpoint.text} ({_why(endpoint.text, endpoint.error)})"
            for endpoint in node.plan.endpoints
        ]
        listening = list(node.settings.locators)
    multicast = runtime.settings.scouting.multicast
    if multicast.enabled:
        tried.append(f"multicast {multicast.address} on interface {multicast.interface}")
    sentences = ["nobody is there yet"]
    sentences.append(f"tried {', '.join(tried)}" if tried else "nothing to try")
    if listening:
        sentences.append(f"listening on {', '.join(listening)}")
    sentences.append("start a router or a peer, or say where one is: -e tcp/HOST:PORT")
    return "; ".join(sentences)


def _why(endpoint: str, error: str) -> str:
    """Why an endpoint gives no session, without its name again."""
    return error.removeprefix(f"{endpoint}: ") or "no answer yet"
