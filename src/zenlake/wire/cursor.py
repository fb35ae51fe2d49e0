"""The two hands of every codec: `Reader` takes bytes apart, `Writer` puts them together.

All that a stranger can get wrong about a primitive is checked here, once: the generated codecs
above contain no bounds check of their own, and nothing but `DecodeError` leaves this module.

Plain `int` is used throughout. A fixed-width integer would turn a hostile 2^64-1 into -1.
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import DecodeError, EncodeError

U8_MAX: Final = 0xFF
U16_MAX: Final = 0xFFFF
U32_MAX: Final = 0xFFFF_FFFF
U64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF

#: Every one-byte string, so that writing a byte allocates nothing.
_ONE: Final[list[bytes]] = [bytes((value,)) for value in range(256)]


class Reader:
    """A position in some bytes, and the end that reading may not pass."""

    __slots__ = ("data", "end", "pos")

    def __init__(self, data: bytes, pos: int = 0, end: int = -1) -> None:
        """Read `data` from `pos` up to `end` (-1: all of it)."""
        self.data: bytes = data
        self.pos: int = pos
        self.end: int = len(data) if end < 0 else end

    def short(self, wanted: int) -> DecodeError:
        """The error for bytes that end too early."""
        left = self.end - self.pos
        return DecodeError(
            f"{wanted} more bytes announced, {left} left at offset {self.pos}", self.pos
        )

    def u8(self) -> int:
        """One byte."""
        pos = self.pos
        if pos >= self.end:
            raise self.short(1)
        self.pos = pos + 1
        return self.data[pos]

    def peek(self) -> int:
        """The next byte, left in place; call only when there is one."""
        return self.data[self.pos]

    def u16(self) -> int:
        """Two bytes, little-endian."""
        pos = self.pos
        if pos + 2 > self.end:
            raise self.short(2)
        self.pos = pos + 2
        data = self.data
        return data[pos] | (data[pos + 1] << 8)

    def vle(self, limit: int) -> int:
        """A variable-length integer of Zenoh 1.x, at most `limit`.

        Seven bits a byte, least significant first; the ninth byte, if reached, is eight bits of
        value, so that 2^64-1 takes nine bytes and no input is longer.
        """
        pos = self.pos
        end = self.end
        if pos >= end:
            raise self.short(1)
        data = self.data
        byte = data[pos]
        pos += 1
        if byte < 0x80:
            value = byte
        else:
            value = 0
            shift = 0
            while byte >= 0x80 and shift < 56:
                value |= (byte & 0x7F) << shift
                shift += 7
                if pos >= end:
                    raise DecodeError(
                        f"the integer at offset {self.pos} has no last byte", self.pos
                    )
                byte = data[pos]
                pos += 1
            value |= byte << shift
        if value > limit:
            raise DecodeError(f"{value} at offset {self.pos} is above {limit}", self.pos)
        self.pos = pos
        return value

    def skip_vle(self) -> None:
        """Pass over a variable-length integer of Zenoh 1.x."""
        pos = self.pos
        end = self.end
        data = self.data
        last = pos + 8
        while pos < end:
            if data[pos] < 0x80 or pos == last:
                self.pos = pos + 1
                return
            pos += 1
        raise self.short(1)

    def ntp64(self) -> tuple[int, int]:
        """A 64-bit time as (seconds, fraction): two halves never need a big integer."""
        pos = self.pos
        if pos + 9 <= self.end:
            data = self.data
            # A time of today needs all nine bytes: the usual case, without a loop.
            if (
                data[pos] & data[pos + 1] & data[pos + 2] & data[pos + 3]
                & data[pos + 4] & data[pos + 5] & data[pos + 6] & data[pos + 7] & 0x80
            ):  # fmt: skip
                low = (
                    (data[pos] & 0x7F)
                    | ((data[pos + 1] & 0x7F) << 7)
                    | ((data[pos + 2] & 0x7F) << 14)
                    | ((data[pos + 3] & 0x7F) << 21)
                )
                middle = data[pos + 4] & 0x7F
                fraction = low | ((middle & 0x0F) << 28)
                seconds = (
                    (middle >> 4)
                    | ((data[pos + 5] & 0x7F) << 3)
                    | ((data[pos + 6] & 0x7F) << 10)
                    | ((data[pos + 7] & 0x7F) << 17)
                    | (data[pos + 8] << 24)
                )
                self.pos = pos + 9
                return seconds, fraction
        value = self.vle(U64_MAX)
        return value >> 32, value & U32_MAX

    def nat(self) -> int:
        """A natural number of the 2018 protocol: seven bits a byte, ten bytes at the most."""
        pos = self.pos
        end = self.end
        data = self.data
        value = 0
        shift = 0
        while True:
            if pos >= end:
                raise DecodeError(f"the number at offset {self.pos} has no last byte", self.pos)
            byte = data[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= 70:
                raise DecodeError(
                    f"the number at offset {self.pos} is longer than ten bytes", self.pos
                )
        if value > U64_MAX:
            raise DecodeError(f"{value} at offset {self.pos} does not fit 64 bits", self.pos)
        self.pos = pos
        return value

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        pos = self.pos
        stop = pos + size
        if stop > self.end:
            raise self.short(size)
        self.pos = stop
        return self.data[pos:stop]

    def skip(self, size: int) -> None:
        """Pass over `size` bytes."""
        stop = self.pos + size
        if stop > self.end:
            raise self.short(size)
        self.pos = stop

    def rest(self) -> bytes:
        """All the bytes that are left."""
        pos = self.pos
        self.pos = self.end
        return self.data[pos : self.end]

    def text(self, size: int) -> str:
        """The next `size` bytes as UTF-8."""
        start = self.pos
        raw = self.take(size)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(
                f"the text at offset {start} is not UTF-8: {error.reason}", start
            ) from None

    def count(self, limit: int, size: int) -> int:
        """How many elements follow, refused when `size` bytes each cannot be there."""
        start = self.pos
        number = self.vle(limit)
        self.room(number, size, start)
        return number

    def room(self, number: int, size: int, start: int) -> None:
        """Refuse a count that the bytes left cannot hold, before anything is allocated."""
        if number * size > self.end - self.pos:
            raise DecodeError(
                f"{number} elements announced at offset {start}, {self.end - self.pos} bytes left",
                start,
            )

    def zid(self, size: int) -> bytes:
        """A node id of `size` bytes: 1 to 16, not all zero, without its high zero bytes."""
        start = self.pos
        if size < 1 or size > 16:
            raise DecodeError(f"a node id of {size} bytes at offset {start}: 1 to 16", start)
        raw = self.take(size)
        if raw[size - 1] == 0:
            raw = raw.rstrip(b"\0")
            if not raw:
                raise DecodeError(f"the node id at offset {start} is zero", start)
        return raw

    def narrow(self, size: int) -> int:
        """Let reading end after `size` bytes; returns the former end, to be given to `widen`."""
        stop = self.pos + size
        if stop > self.end:
            raise self.short(size)
        former = self.end
        self.end = stop
        return former

    def widen(self, former: int, what: str) -> None:
        """End what `narrow` began; every byte of it must have been read."""
        if self.pos != self.end:
            raise DecodeError(
                f"{self.end - self.pos} bytes left over in {what} at offset {self.pos}", self.pos
            )
        self.end = former

    def skip_extension(self, header: int, message: str) -> None:
        """Pass over an extension that nobody here knows; refuse it if it is mandatory."""
        if header & 0x10:
            raise DecodeError(
                f"{message} has the unknown mandatory extension 0x{header & 0x7F:02x} "
                f"at offset {self.pos - 1}",
                self.pos - 1,
            )
        kind = header & 0x60
        if kind == 0x20:
            self.skip_vle()
        elif kind == 0x40:
            self.skip(self.vle(U32_MAX))
        elif kind == 0x60:
            raise DecodeError(
                f"the extension at offset {self.pos - 1} has the reserved encoding 3", self.pos - 1
            )


class Writer:
    """Bytes under construction, as a list of pieces: a payload is not copied until the end."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.parts: list[bytes] = []
        self.size: int = 0

    def getvalue(self) -> bytes:
        """All that was written, as one piece."""
        return b"".join(self.parts)

    def u8(self, value: int) -> None:
        """One byte."""
        if value < 0 or value > 255:
            raise EncodeError(f"{value} does not fit one byte (0 to 255)")
        self.parts.append(_ONE[value])
        self.size += 1

    def u16(self, value: int) -> None:
        """Two bytes, little-endian."""
        if value < 0 or value > U16_MAX:
            raise EncodeError(f"{value} does not fit two bytes (0 to 65535)")
        self.parts.append(_ONE[value & 0xFF])
        self.parts.append(_ONE[value >> 8])
        self.size += 2

    def vle(self, value: int, limit: int) -> None:
        """A variable-length integer of Zenoh 1.x, at most `limit`."""
        if value < 0 or value > limit:
            raise EncodeError(f"{value} is not in the range 0 to {limit}")
        parts = self.parts
        if value < 0x80:
            parts.append(_ONE[value])
            self.size += 1
            return
        count = 1
        while value >= 0x80 and count < 9:
            parts.append(_ONE[(value & 0x7F) | 0x80])
            value >>= 7
            count += 1
        parts.append(_ONE[value])
        self.size += count

    def ntp64(self, seconds: int, fraction: int) -> None:
        """A 64-bit time from its two halves."""
        if seconds < 0 or seconds > U32_MAX or fraction < 0 or fraction > U32_MAX:
            raise EncodeError(f"({seconds}, {fraction}) are not two 32-bit halves of a time")
        if seconds < 0x0100_0000:
            self.vle((seconds << 32) | fraction, U64_MAX)
            return
        parts = self.parts
        parts.append(_ONE[(fraction & 0x7F) | 0x80])
        parts.append(_ONE[((fraction >> 7) & 0x7F) | 0x80])
        parts.append(_ONE[((fraction >> 14) & 0x7F) | 0x80])
        parts.append(_ONE[((fraction >> 21) & 0x7F) | 0x80])
        parts.append(_ONE[(fraction >> 28) | ((seconds & 0x07) << 4) | 0x80])
        parts.append(_ONE[((seconds >> 3) & 0x7F) | 0x80])
        parts.append(_ONE[((seconds >> 10) & 0x7F) | 0x80])
        parts.append(_ONE[((seconds >> 17) & 0x7F) | 0x80])
        parts.append(_ONE[seconds >> 24])
        self.size += 9

    def nat(self, value: int) -> None:
        """A natural number of the 2018 protocol."""
        if value < 0 or value > U64_MAX:
            raise EncodeError(f"{value} is not a natural number of 64 bits")
        parts = self.parts
        count = 1
        while value >= 0x80:
            parts.append(_ONE[(value & 0x7F) | 0x80])
            value >>= 7
            count += 1
        parts.append(_ONE[value])
        self.size += count

    def raw(self, data: bytes) -> None:
        """Bytes as they are."""
        self.parts.append(data)
        self.size += len(data)

    def sized(self, data: bytes, limit: int) -> None:
        """Bytes behind their length."""
        size = len(data)
        self.vle(size, limit)
        self.parts.append(data)
        self.size += size

    def text(self, text: str, limit: int) -> None:
        """UTF-8 behind its length in bytes."""
        self.sized(self.utf8(text), limit)

    def utf8(self, text: str) -> bytes:
        """The bytes of a text, refused if it has half of a surrogate pair."""
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise EncodeError(f"{text!r} is not UTF-8: {error.reason}") from None

    def zid(self, zid: bytes) -> None:
        """The bytes of a node id, 1 to 16 of them."""
        size = len(zid)
        if size < 1 or size > 16:
            raise EncodeError(f"a node id has 1 to 16 bytes, not {size}")
        if zid[size - 1] == 0:
            raise EncodeError(f"the node id {zid.hex()} has high zero bytes; strip them")
        self.raw(zid)

    def hold(self) -> int:
        """Keep a place for a length that is known only later; returns the place."""
        self.parts.append(b"")
        return len(self.parts) - 1

    def fill(self, place: int, start: int, limit: int) -> None:
        """Write into `place` how many bytes followed since the size was `start`."""
        length = Writer()
        length.vle(self.size - start, limit)
        self.parts[place] = b"".join(length.parts)
        self.size += length.size
