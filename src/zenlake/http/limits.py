"""Limits of one HTTP server for its clients: bytes, seconds and places.

Every port obeys these. Tests make a server with smaller numbers instead of waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

__all__ = ["HttpLimits"]

HEAD_BYTES: Final = 1 << 16
"""Bytes of the head of a request: request line and headers."""
TARGET_BYTES: Final = 1 << 15
"""Bytes of a request target: path and query string."""
HEADERS: Final = 100
"""Headers of a request."""
CHUNK_LINE_BYTES: Final = 256
"""Bytes of the line before a chunk, with its extensions."""
CHUNK_WASTE_BYTES: Final = 1 << 14
"""Bytes of a body in chunks that may be neither data nor the shortest framing of chunks."""
TRAILER_BYTES: Final = 4096
"""Bytes of the trailers after a body in chunks; nothing reads them."""
PIPELINED_BYTES: Final = 1 << 16
"""Bytes of further requests that are kept while one is answered; then the client is not read."""
DRAINED_BYTES: Final = 1 << 18
"""Bytes of a body that are read after its request was answered; then the connection is closed."""

FIRST_BYTE_SECONDS: Final = 10.0
"""Seconds from a connection to the first byte of a request, and for a TLS handshake."""
HEAD_SECONDS: Final = 10.0
"""Seconds from the first byte of a request to the end of its head."""
KEEP_ALIVE_SECONDS: Final = 30.0
"""Seconds between an answer and the first byte of the next request."""
CLOSING_SECONDS: Final = 2.0
"""Seconds for a client to take the last answer, and to end the connection."""
STALLED_SECONDS: Final = 30.0
"""Seconds after which a client that takes its answer too slowly is cut."""
SLOWEST_READER: Final = 4096
"""Bytes a second that a client takes of an answer at least."""
ANSWER_SECONDS: Final = 1800.0
"""Seconds in which a client takes all that waits for it: of more, more a second."""
SMALL_ANSWER_BYTES: Final = 4096
"""Bytes of an answer that is sent though answers hold all the memory for them."""

CONNECTIONS: Final = 4096
"""Connections of one server, where the process may open enough descriptors."""
DESCRIPTOR_SHARE: Final = 8
"""One HTTP server takes at most an eighth of the descriptors that the process may open."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The limits of one HTTP server."""

    head_bytes: int = HEAD_BYTES
    target_bytes: int = TARGET_BYTES
    headers: int = HEADERS
    first_byte_seconds: float = FIRST_BYTE_SECONDS
    head_seconds: float = HEAD_SECONDS
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS
    closing_seconds: float = CLOSING_SECONDS
    stalled_seconds: float = STALLED_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    connections: int = CONNECTIONS
    #: Bytes of requests and messages that are being read, of all connections together.
    buffered_bytes: int = 256 << 20
    #: Bytes of answers that are made or wait for clients, of all connections together.
    unsent_bytes: int = 512 << 20

    def within(self, descriptors: int) -> HttpLimits:
        """Return these limits for a process with so many descriptors; 0: there is no such limit."""
        if descriptors <= 0:
            return self
        most = max(4, descriptors // DESCRIPTOR_SHARE)
        return replace(self, connections=min(most, self.connections))

    @property
    def shortest_seconds(self) -> float:
        """The shortest of the times, from which follows how often they are looked at."""
        return min(
            self.first_byte_seconds,
            self.head_seconds,
            self.keep_alive_seconds,
            self.closing_seconds,
            self.stalled_seconds,
        )
