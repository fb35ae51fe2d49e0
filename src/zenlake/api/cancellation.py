"""Tokens that end queries before their time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import final

from zenlake.engine.channel import Channel
from zenlake.errors import ZError

__all__ = ["CancellationToken", "cancel_with", "only_query_of", "refuse_cancelled"]


@final
class CancellationToken:
    """Ends queries before their time; one token may be given to many."""

    def __init__(self) -> None:
        """Not cancelled."""
        self._lock = Lock()
        self._cancelled = False
        self._running: list[tuple[Callable[[], None], Channel, bool]] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def cancel(self, /) -> None:
        """End all queries it was given to; waits for callbacks that are running.

        From inside such a callback it does not wait: it would wait for itself.
        """
        with self._lock:
            self._cancelled = True
            running = self._running
            self._running = []
        for end, channel, is_callback in running:
            end()
            if is_callback:
                channel.discard()
        for _, channel, _ in running:
            channel.join()

    def __repr__(self) -> str:
        """Whether it was cancelled."""
        return f"<CancellationToken {'cancelled' if self._cancelled else 'not cancelled'}>"


def cancel_with(
    token: CancellationToken, end: Callable[[], None], channel: Channel, is_callback: bool
) -> None:
    """Have a token end a query, whose replies come to `channel`."""
    with token._lock:
        token._running = [one for one in token._running if not one[1].ended]
        token._running.append((end, channel, is_callback))
        cancelled = token._cancelled
    if cancelled:
        token.cancel()


def only_query_of(token: CancellationToken) -> tuple[Channel, bool]:
    """Return the channel of the one query that a token ends, and whether a callback empties it."""
    ((_, channel, is_callback),) = token._running
    return channel, is_callback


def refuse_cancelled(token: CancellationToken | None) -> None:
    """A query that is cancelled before it is sent is not sent."""
    if token is not None and token.is_cancelled:
        raise ZError("Query was cancelled: its token is; make a new CancellationToken")
