"""Errors of zenlake's own in the HTTP server: each is counted, and its traceback is logged seldom.

No callback of a connection may raise: the event loop would log a traceback for each request, and
the client would get no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from zenlake.http.connections import Connections
from zenlake.http.few_lines import bounded_log

__all__ = ["FAILED", "FAULT", "caught", "count_fault"]

FAULT: Final = "error"
"""The reason of a connection that is ended for such an error."""
FAILED: Final = "that went wrong in zenlake itself; its log has the reason"
"""What the client is told."""

log = bounded_log("zenlake.http.faults")


class FaultHandler(Protocol):
    """A connection that goes on, or ends, when one of its callbacks has failed."""

    def on_fault(self, error: Exception) -> None:
        """Count the error, and answer the client."""


Handler = TypeVar("Handler", bound=FaultHandler)
Given = ParamSpec("Given")


def caught(
    callback: Callable[Concatenate[Handler, Given], None],
) -> Callable[Concatenate[Handler, Given], None]:
    """Return a callback of the event loop that raises nothing."""

    @wraps(callback)
    def guarded(self: Handler, /, *args: Given.args, **named: Given.kwargs) -> None:
        try:
            callback(self, *args, **named)
        except Exception as error:
            self.on_fault(error)

    return guarded


def count_fault(connections: Connections, what: str, error: object = None) -> None:
    """Count an error of the server, and log it unless there were many.

    Args:
        connections: Of the server that it happened in.
        what: What failed.
        error: The exception, if there is one.
    """
    connections.refused[FAULT] += 1
    shown = error if isinstance(error, BaseException) else None
    log.error("%s", what, exc_info=shown)
