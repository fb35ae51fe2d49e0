"""The link that an outbox empties into, and the part of a batch that it has not taken yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class LinkWriter:
    """The writing end of one link; guarded by the outbox's lock."""

    __slots__ = ("broken", "direct", "leftover", "wait_writable", "write", "written")

    def __init__(self) -> None:
        """No link yet."""
        #: Writes to the link without waiting, and returns how much was taken; None: no link.
        self.write: Callable[[bytes], int] | None = None
        #: Whether any thread may call `write`; else only the loop does.
        self.direct: bool = False
        #: Waits until the link may take more, on any thread; None: only the loop can tell.
        self.wait_writable: Callable[[float], None] | None = None
        #: The part of a batch that the link did not take.
        self.leftover: bytes = b""
        #: What the link has taken, in bytes.
        self.written: int = 0
        #: Why the link cannot be written any more.
        self.broken: Exception | None = None

    def took(self, data: bytes, taken: int) -> bool:
        """Note that the link took so many bytes of `data`; whether that was all."""
        self.written += taken
        if taken < len(data):
            self.leftover = data[taken:]
            return False
        self.leftover = b""
        return True

    def failed(self, error: Exception) -> None:
        """The link is broken: what it did not take is forgotten."""
        self.broken = error
        self.leftover = b""
