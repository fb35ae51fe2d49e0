"""Whether the loop is going to flush one outbox; see `flushing`."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from zenlake.transport.outbox import Outbox


@final
class FlushRequest:
    """Whether the loop is going to flush one outbox.

    States: *none* (neither `requested` nor `later`), *later*, *requested*. While `requested` is set
    the loop will call `SharedOutbox.flush`: it was woken for it, or waits until the link is
    writable, or comes by a timer because batches fill up (`comes_again`).
    """

    __slots__ = ("comes_again", "later", "look_later", "requested", "soon", "streaming")

    def __init__(self, soon: Callable[[Outbox], None]) -> None:
        """`soon`: have the loop flush an outbox; callable from any thread."""
        self.soon: Callable[[Outbox], None] = soon
        #: Have an outbox flushed by the next check of the loop; False: there is no such check.
        self.look_later: Callable[[Outbox], bool] | None = None
        self.requested: bool = False
        self.later: bool = False
        #: Whether callers have filled batches since the loop last flushed.
        self.streaming: bool = False
        #: Whether the loop flushes again after a while, by itself.
        self.comes_again: bool = False

    def request_flush(self, outbox: Outbox) -> None:
        """Have the loop flush `outbox`, if it is not going to."""
        if not self.requested:
            self.requested = True
            self.soon(outbox)

    def ask_later(self, outbox: Outbox) -> bool:
        """Have `outbox` flushed by the next check of the loop; False: there is none."""
        if self.later:
            return True
        look_later = self.look_later
        if look_later is None:
            return False
        self.later = True
        if look_later(outbox):
            return True
        self.later = False
        return False

    def flushed(self, done: bool) -> None:
        """The loop has flushed; `done`: until nothing was left."""
        self.comes_again = done and self.streaming
        self.streaming = False
        # While the link is not writable no request is needed: the link calls back.
        self.requested = not done or self.comes_again
