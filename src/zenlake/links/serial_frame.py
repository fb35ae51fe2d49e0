"""How batches travel over a serial line, which has no boundaries and may lose or damage bytes.

    ┌────────┬─────────┬──────────────┬────────┐
    │ header │ length  │ payload      │ check  │   stuffed so that no byte is zero, then one zero
    │ 1 byte │ u16le   │ 0 to 1500    │ u32le  │
    └────────┴─────────┴──────────────┴────────┘
      7 6 5 4 3 2 1 0
     |0 0 0 0 0|R|A|I|    I begin · A yes, begin · R not now; data has none of them

A reader that is lost in the middle of a frame finds the next one behind the next zero. Stuffing
(COBS) replaces each zero by the distance to the next, so it costs one byte in 254.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from zenlake.errors import DecodeError, EncodeError

__all__ = ["ACK", "INIT", "MAX_PAYLOAD", "RESET", "SerialDeframer", "check_sum", "decode", "encode"]

INIT: Final = 0x01
ACK: Final = 0x02
RESET: Final = 0x04

MAX_PAYLOAD: Final = 1500
MAX_FRAME: Final = 1516
"""The longest frame on the line, stuffed, without its closing zero."""
AROUND: Final = 7

# The usual polynomial, but its bits are not turned round though the register runs backwards: this
# is what the other implementations send, and no library has it.
_POLYNOMIAL: Final = 0x04C11DB7


@cache
def _table() -> tuple[int, ...]:
    table: list[int] = []
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = (rest >> 1) ^ (_POLYNOMIAL if rest & 1 else 0)
        table.append(rest)
    return tuple(table)


def check_sum(payload: bytes) -> int:
    """The number that tells a damaged payload."""
    table = _table()
    total = 0xFFFFFFFF
    for byte in payload:
        total = (total >> 8) ^ table[(total ^ byte) & 0xFF]
    return total ^ 0xFFFFFFFF


def encode(header: int, payload: bytes) -> bytes:
    """A frame, with its closing zero."""
    if len(payload) > MAX_PAYLOAD:
        raise EncodeError(
            f"a batch of {len(payload)} bytes is too long for a serial line; at most {MAX_PAYLOAD}"
        )
    size = len(payload).to_bytes(2, "little")
    return _stuffed(bytes((header,)) + size + payload + check_sum(payload).to_bytes(4, "little"))


def decode(frame: bytes) -> tuple[int, bytes]:
    """The header and the payload of a frame without its closing zero; `DecodeError` if damaged."""
    plain = _unstuffed(frame)
    if len(plain) < AROUND:
        raise DecodeError(f"a serial frame of {len(plain)} bytes; the smallest has {AROUND}")
    size = int.from_bytes(plain[1:3], "little")
    if len(plain) != AROUND + size:
        raise DecodeError(f"a serial frame says {size} bytes and has {len(plain) - AROUND}")
    payload = plain[3:-4]
    if check_sum(payload) != int.from_bytes(plain[-4:], "little"):
        raise DecodeError("a serial frame is damaged: its check sum does not fit")
    return plain[0], payload


class SerialDeframer:
    """Finds frames in the bytes of a line, and drops what is damaged."""

    def __init__(self) -> None:
        """Begins as if behind a zero."""
        self.dropped = 0
        """How many frames were damaged."""
        self._begun = b""
        self._lost = False

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The frames that `data` completes: their headers and payloads."""
        frames: list[tuple[int, bytes]] = []
        pieces = (self._begun + data).split(b"\0")
        self._begun = pieces.pop()
        for piece in pieces:
            if self._lost:
                self._lost = False
                continue
            if not piece:
                continue
            try:
                frames.append(decode(piece))
            except DecodeError:
                self.dropped += 1
        if len(self._begun) > MAX_FRAME:
            # No frame is that long: its end was lost, and what follows is no frame's beginning.
            self._begun = b""
            if not self._lost:
                self.dropped += 1
            self._lost = True
        return frames


def _stuffed(data: bytes) -> bytes:
    out = bytearray()
    for run in data.split(b"\0"):
        at = 0
        while len(run) - at >= 254:
            out.append(0xFF)
            out += run[at : at + 254]
            at += 254
        out.append(len(run) - at + 1)
        out += run[at:]
    out.append(0)
    return bytes(out)


def _unstuffed(frame: bytes) -> bytes:
    out = bytearray()
    at = 0
    end = len(frame)
    while at < end:
        step = frame[at]
        if step == 0 or at + step > end:
            raise DecodeError(f"a serial frame is cut: {step} bytes announced, {end - at} left")
        out += frame[at + 1 : at + step]
        at += step
        if step != 0xFF and at < end:
            out.append(0)
    return bytes(out)
