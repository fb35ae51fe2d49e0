"""Everything zenlake raises; the type says who is to blame.

    ZError
    ├── LocalError      you asked for something illegal
    │   ├── KeyExprError · SelectorError · EncodingError · LocatorError · TimestampError
    │   ├── SerializeError · EncodeError
    │   └── ConfigError
    ├── RemoteError     the other side broke the protocol; its link is closed
    │   ├── DecodeError     … with bytes that are not Zenoh
    │   └── HandshakeError · ClosedError
    ├── LinkError       the network did it
    ├── JournalError    the journal's disk did it, or a process that shares it
    │   └── JournalCorrupt · JournalFull · JournalGap · JournalLocked
    └── Timeout         nobody answered in time

A message says what happened, shows the value, and says what to do instead.
"""

from __future__ import annotations

__all__ = [
    "ClosedError",
    "ConfigError",
    "DecodeError",
    "EncodeError",
    "EncodingError",
    "HandshakeError",
    "JournalCorrupt",
    "JournalError",
    "JournalFull",
    "JournalGap",
    "JournalLocked",
    "KeyExprError",
    "LinkError",
    "LocalError",
    "LocatorError",
    "RemoteError",
    "SelectorError",
    "SerializeError",
    "Timeout",
    "TimestampError",
    "ZError",
]


class ZError(Exception):
    """Anything that Zenoh refuses."""


class LocalError(ZError):
    """You asked for something illegal."""


class KeyExprError(LocalError, ValueError):
    """A text that is not a key expression, or not in canonical form."""


class SelectorError(LocalError, ValueError):
    """A selector, a parameter or a time range that does not parse."""


class EncodingError(LocalError, ValueError):
    """An encoding that cannot be written on the wire."""


class LocatorError(LocalError, ValueError):
    """A locator, an endpoint or a node id that does not parse."""


class TimestampError(LocalError, ValueError):
    """A time outside the clock's range, or text that is not a time."""


class SerializeError(LocalError, ValueError):
    """A value that does not fit its type, or bytes that do not hold it."""


class EncodeError(LocalError, ValueError):
    """A message with a field that its place on the wire cannot hold."""


class ConfigError(LocalError, ValueError):
    """A configuration that does not hold: unknown key, wrong type, value out of range."""


class RemoteError(ZError):
    """The other side broke the protocol; its link is closed."""


class LimitError(RemoteError):
    """The other side asked for more than one neighbour may have; its link is closed."""

    def __init__(self, message: str, about: str = "limit") -> None:
        """`about`: what it is counted as."""
        super().__init__(message)
        self.about = about


class DecodeError(RemoteError, ValueError):
    """Bytes that are not Zenoh, and where they broke."""

    def __init__(self, message: str, offset: int = -1) -> None:
        """Say what is wrong with the bytes; `offset` is where, or -1 when unknown."""
        super().__init__(message)
        self.offset = offset


class HandshakeError(RemoteError):
    """The two sides cannot agree on a session; `reason` is what to say in the closing word."""

    def __init__(self, message: str, reason: int, about: str = "handshake") -> None:
        """`reason`: the code for the Close message; `about`: what counters call it."""
        super().__init__(message)
        self.reason = reason
        self.about = about


class ClosedError(RemoteError):
    """The other side said goodbye; `reason` is why."""

    def __init__(self, message: str, reason: int) -> None:
        """`reason`: the code of its Close message."""
        super().__init__(message)
        self.reason = reason


class LinkError(ZError, OSError):
    """The network did it."""


class JournalError(ZError):
    """A journal cannot be read or written."""


class JournalCorrupt(JournalError):
    """Rows that were acknowledged are damaged or missing; names the file, block and offset."""


class JournalFull(JournalError):
    """The disk has no room for what was to be written."""


class JournalGap(JournalError):
    """Rows that were asked for are no longer kept; `earliest` is where the journal begins now."""

    def __init__(self, message: str, partition: int, earliest: int) -> None:
        """`earliest`: the first offset that the partition still has."""
        super().__init__(message)
        self.partition = partition
        self.earliest = earliest

    def __reduce__(self) -> tuple[type[JournalGap], tuple[str, int, int]]:
        return JournalGap, (str(self), self.partition, self.earliest)


class JournalLocked(JournalError):
    """Another process writes this journal."""


class Timeout(ZError, TimeoutError):
    """Nobody answered in time."""
