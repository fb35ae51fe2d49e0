"""Batches on their way: the samples of one BatchedData, kept as the bytes that they came in.

The samples of a batch look the same on every link: only what stands before them differs, a number
and an id. So a broker passes them on as one piece, and looks at them one by one only where
a program has to. What is read here is exactly what the codec reads, but for attributed batches and
those behind markers, which are left to the codec.
"""

from __future__ import annotations

from typing import ClassVar, Final

from zenlake.errors import DecodeError
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.message import Message
from zenlake.xrce.codec import Conduit, Frag, RSpace

#: Samples that one batch carries at most when it is made here.
BATCH_MAX: Final = 1024
#: Bytes that a batch takes at most when it is made here, whatever the link carries.
BATCH_BYTES: Final = 32768
#: What a batch takes besides its samples and their lengths, at most.
BATCH_HEAD: Final = 24

#: Every one-byte length, so that writing it allocates nothing.
_LENGTH: Final[list[bytes]] = [bytes((value,)) for value in range(128)]


class UnreadBatch(Message):
    """A BatchedData whose samples nobody has looked at."""

    __slots__ = ("body", "count", "id", "markers", "reliable", "sn", "synch")

    NAME: ClassVar[str] = "BatchedData"
    FIELDS: ClassVar[tuple[str, ...]] = (
        "synch", "reliable", "sn", "id", "body", "count", "markers",
    )  # fmt: skip

    def __init__(
        self,
        *,
        synch: bool = False,
        reliable: bool = False,
        sn: int,
        id: int,
        body: bytes,
        count: int,
        markers: tuple[Conduit | Frag | RSpace, ...] = (),
    ) -> None:
        """`body`: how many samples, then each behind its length; `count`: how many."""
        self.synch: bool = synch
        self.reliable: bool = reliable
        self.sn: int = sn
        self.id: int = id
        self.body: bytes = body
        self.count: int = count
        self.markers: tuple[Conduit | Frag | RSpace, ...] = markers

    def write(self, w: Writer) -> None:
        """Append its bytes."""
        header = 0x08
        if self.synch:
            header |= 0x20
        if self.reliable:
            header |= 0x40
        w.u8(header)
        w.nat(self.sn)
        w.nat(self.id)
        w.raw(self.body)

    def to_dict(self) -> dict[str, object]:
        """Its fields as JSON can hold them."""
        return {
            "message": "BatchedData", "synch": self.synch, "reliable": self.reliable,
            "sn": self.sn, "id": self.id,
            "payloads": [payload.hex() for payload in self.payloads()],
        }  # fmt: skip

    def payloads(self) -> list[bytes]:
        """The samples."""
        body = self.body
        r = Reader(body)
        r.nat()
        pos = r.pos
        payloads: list[bytes] = []
        for _ in range(self.count):
            size = body[pos]
            pos += 1
            if size >= 0x80:
                r.pos = pos - 1
                size = r.nat()
                pos = r.pos
            payloads.append(body[pos : pos + size])
            pos += size
        return payloads


def body_of(payloads: list[bytes], start: int, stop: int) -> bytes:
    """Some samples as a batch carries them."""
    w = Writer()
    w.nat(stop - start)
    parts = w.parts
    for i in range(start, stop):
        payload = payloads[i]
        size = len(payload)
        if size < 128:
            parts.append(_LENGTH[size])
        else:
            w.nat(size)
        parts.append(payload)
    return b"".join(parts)


def room_for(payloads: list[bytes], start: int, room: int) -> int:
    """Behind which sample a batch of `room` bytes ends that begins with sample `start`."""
    most = min(len(payloads), start + BATCH_MAX)
    left = min(room, BATCH_BYTES) - BATCH_HEAD
    stop = start
    while stop < most:
        size = len(payloads[stop])
        left -= size + 1 if size < 128 else size + 3
        if left < 0:
            break
        stop += 1
    return stop


def read_batch(r: Reader) -> UnreadBatch:
    """Read a batch whose header says that it is not attributed; raises `DecodeError`."""
    data = r.data
    end = r.end
    header = data[r.pos]
    r.pos += 1
    sn = r.nat()
    id = r.nat()
    start = r.pos
    count = r.nat()
    r.room(count, 1, start)
    pos = r.pos
    for _ in range(count):
        if pos >= end:
            raise DecodeError(f"a sample of a batch is missing at offset {pos}", pos)
        size = data[pos]
        pos += 1
        if size >= 0x80:
            r.pos = pos - 1
            size = r.nat()
            pos = r.pos
        pos += size
        if pos > end:
            raise DecodeError(f"a sample of a batch ends behind its packet, at {pos}", end)
    r.pos = pos
    return UnreadBatch(
        synch=header & 0x20 != 0,
        reliable=header & 0x40 != 0,
        sn=sn,
        id=id,
        body=data[start:pos],
        count=count,
    )
