"""What a transport reports to the node: the interface of its listener."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.transport.handshake import Terms
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """Receives what one neighbour sends: implemented by `node.neighbour.Neighbour`."""

    #: Whether `heard_rows` is to be called, with Push messages that are not decoded yet.
    rows: bool = False

    def admit(self, terms: Terms) -> int:
        """Whether this neighbour may open a session: -1, or the reason to close it with."""
        return -1

    def opened(self, terms: Terms, now: float) -> None:
        """The session is open."""

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        """A network message was received."""

    def heard_rows(self, r: Reader, reliable: bool) -> int:
        """Push messages begin at the reader's position: consume some of them; how many."""
        return 0

    def heard_push(self, r: Reader, reliable: bool) -> int:
        """A Push begins at the reader's position: consume it, and others like it; how many."""
        return 0

    def heard_reply(self, r: Reader) -> bool:
        """A Response begins at the reader's position: consume it, or leave it (False)."""
        return False

    def refused(self, limit: str) -> None:
        """Something of it was refused because of a limit, which is named."""

    def held_back(self, what: str) -> None:
        """It is named for something that it has much of."""

    def closed(self, error: Exception | None, now: float) -> None:
        """The session is over; `error` is why, or None if this side closed it."""


NOBODY: Final = Listener()
"""Hears what comes when nobody listens any more."""
