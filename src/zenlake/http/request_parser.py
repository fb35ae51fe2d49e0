"""HTTP/1 requests as they come in, byte by byte: the head, the body, the end of each. Pure.

`feed` takes bytes, `next_event` gives what they are. Work is linear in what came, and what is kept
is bounded: a head by `HttpLimits`, a body not at all, since its parts are given as they come.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from zenlake.http.limits import (
    CHUNK_LINE_BYTES,
    CHUNK_WASTE_BYTES,
    TRAILER_BYTES,
    HttpLimits,
)
from zenlake.http.request_head import (
    CHUNKED,
    BadRequest,
    RequestHead,
    check_characters,
    check_field,
    read_head,
)

__all__ = ["RequestEnd", "RequestParser"]

SHORTEST_LINE: Final = 16
"""Bytes of framing that each chunk may have."""

_CHUNK: Final = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")


class RequestEnd(Enum):
    """The end of a request: its body is complete."""

    END = "end"


class _Reading(Enum):
    HEAD = "head"
    BODY = "body"
    CHUNK_LINE = "chunk line"
    CHUNK = "chunk"
    CHUNK_END = "chunk end"
    TRAILER = "trailer"


class RequestParser:
    """Reads the requests of one connection, one after the other."""

    def __init__(self, limits: HttpLimits) -> None:
        """Nothing has come."""
        self._limits = limits
        self._data = bytearray()
        self._at = 0
        self._looked = 0
        self._reading = _Reading.HEAD
        self._left = 0
        self._waste = 0
        self._trailer = 0
        self._blank = False

    @property
    def buffered(self) -> int:
        """Bytes that came and were not given yet."""
        return len(self._data) - self._at

    @property
    def in_head(self) -> bool:
        """Whether a head is read, or nothing."""
        return self._reading is _Reading.HEAD

    def feed(self, data: bytes) -> None:
        """Take bytes of the connection."""
        if self._at:
            del self._data[: self._at]
            self._at = 0
        self._data += data

    def next_event(self) -> RequestHead | bytes | RequestEnd | None:
        """Return what came next, a head, a part of a body or an end; None: more bytes are needed.

        Raises `BadRequest`; then nothing more can be read.
        """
        if self._reading is _Reading.HEAD:
            return self._head()
        if self._reading is _Reading.BODY:
            return self._body()
        return self._chunks()

    # ------------------------------------------------------------------------------- the head

    def _head(self) -> RequestHead | None:
        data, limits = self._data, self._limits
        if not self._blank and data.startswith(b"\r\n", self._at):
            # A client may send one empty line behind a body (RFC 9112, 2.2).
            self._blank = True
            self._at += 2
            self._looked = 0
        start = self._at
        if self.buffered and data.startswith(b"\r\n", start):
            raise BadRequest(400, "a request begins with an empty line")
        end = data.find(b"\r\n\r\n", start + max(0, self._looked - 3))
        size = (len(data) if end < 0 else end) - start
        if size > limits.head_bytes:
            if data.find(b"\r\n", start, start + limits.head_bytes) < 0:
                raise BadRequest(414, f"path and query have more than {limits.target_bytes} bytes")
            raise BadRequest(
                431, f"the head of the request has more than {limits.head_bytes} bytes"
            )
        if end < 0:
            if size > limits.target_bytes + 64 and self._looked <= limits.target_bytes + 64:
                self._check_target(start)
            # The last byte may be the CR of a line end.
            fresh = bytes(data[start + max(0, self._looked - 1) : len(data)])
            if fresh:
                check_characters(_with_line_ends(fresh))
            self._looked = size
            return None
        head = read_head(bytes(data[start : end + 2]), limits)
        self._at = end + 4
        self._looked = 0
        self._blank = False
        self._left = head.length
        self._waste = self._trailer = 0
        self._reading = _Reading.CHUNK_LINE if head.length == CHUNKED else _Reading.BODY
        return head

    def _check_target(self, start: int) -> None:
        most = self._limits.target_bytes
        if self._data.find(b"\r\n", start, start + most + 64) < 0:
            raise BadRequest(414, f"path and query have more than {most} bytes")

    # ------------------------------------------------------------------------------- the body

    def _body(self) -> bytes | RequestEnd | None:
        if not self._left:
            self._reading = _Reading.HEAD
            return RequestEnd.END
        part = self._take(self._left)
        self._left -= len(part)
        return part or None

    def _chunks(self) -> bytes | RequestEnd | None:
        """Return the data of all chunks that came, together."""
        parts: list[bytes] = []
        while True:
            if self._reading is _Reading.CHUNK:
                part = self._take(self._left)
                if part:
                    parts.append(part)
                self._left -= len(part)
                if self._left:
                    break
                self._reading = _Reading.CHUNK_END
            elif self._reading is _Reading.CHUNK_END:
                if self.buffered < 2:
                    break
                if self._take(2) != b"\r\n":
                    raise BadRequest(400, "a chunk of the body is longer than it says")
                self._reading = _Reading.CHUNK_LINE
            elif self._reading is _Reading.CHUNK_LINE:
                line = self._line(CHUNK_LINE_BYTES, "the line before a chunk")
                if line is None:
                    break
                self._chunk_line(line)
            else:
                line = self._line(TRAILER_BYTES - self._trailer, "what follows the body")
                if line is None:
                    break
                self._trailer += len(line) + 2
                if line:
                    check_field(line)
                    continue
                if parts:
                    # The end is given next, behind the data.
                    self._left = 0
                    self._reading = _Reading.BODY
                    break
                self._reading = _Reading.HEAD
                return RequestEnd.END
        return b"".join(parts) or None

    def _chunk_line(self, line: bytes) -> None:
        matched = _CHUNK.fullmatch(line)
        if matched is None:
            raise BadRequest(400, "the line before a chunk is no number of bytes, in hexadecimal")
        size = int(matched[1], 16)
        self._waste = max(0, self._waste + len(line) - SHORTEST_LINE - 2 * size)
        if self._waste > CHUNK_WASTE_BYTES:
            raise BadRequest(400, "the body in chunks has more framing than data")
        self._left = size
        self._reading = _Reading.CHUNK if size else _Reading.TRAILER

    def _line(self, most: int, what: str) -> bytes | None:
        """Return a line without its end; None where it has not come whole."""
        end = self._data.find(b"\r\n", self._at, self._at + most + 2)
        if end < 0:
            if self.buffered > most:
                raise BadRequest(400, f"{what} is longer than {most} bytes")
            if b"\n" in self._data[self._at :]:
                raise BadRequest(400, f"{what} ends without CRLF")
            return None
        line = bytes(self._data[self._at : end])
        self._at = end + 2
        check_characters(line + b"\r\n")
        return line

    def _take(self, most: int) -> bytes:
        part = bytes(memoryview(self._data)[self._at : self._at + most])
        self._at += len(part)
        return part


def _with_line_ends(fresh: bytes) -> bytes:
    """Return a piece of a head with the halves of line ends that lie before and after it."""
    before = b"\r" if fresh.startswith(b"\n") else b""
    return before + fresh + (b"\n" if fresh.endswith(b"\r") else b"")
