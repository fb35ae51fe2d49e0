"""Heads of Push messages as bytes: how one begins, and where its value lies."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from zenlake.wire.codec_zenoh import read_source_info
from zenlake.wire.cursor import Reader
from zenlake.wire.numbers import (
    EXTENSION,
    ID,
    MORE,
    PUSH_EXT_NODE_ID,
    PUSH_EXT_QOS,
    PUSH_FLAG_SUFFIX,
    PUT,
    PUT_EXT_ATTACHMENT,
    PUT_EXT_SOURCE_INFO,
)

#: Heads of up to this size are compared byte by byte: that is cheaper than to cut them out.
LONG: Final = 32


def begins(data: bytes, start: i64, end: i64, head: bytes) -> bool:
    """Whether the bytes from `start` on begin with `head`."""
    size: i64 = len(head)
    if start + size > end:
        return False
    if size > LONG:
        return data[start : start + size] == head
    at: i64 = 0
    while at < size:
        if data[start + at] != head[at]:
            return False
        at += 1
    return True


def walk_head(data: bytes, start: int, end: int) -> int:
    """Where the value of a put begins, behind its header; 0 if the head is not an ordinary one.

    Ordinary: a number and a text of at most two bytes each to say how large they are, and no
    extensions but quality of service and node id.
    """
    pos = start + 2
    if pos + 2 >= end:
        return 0
    header = data[start]
    if data[start + 1] >= 0x80:
        if data[pos] >= 0x80:
            return 0
        pos += 1
    if header & PUSH_FLAG_SUFFIX:
        length = data[pos]
        pos += 1
        if length >= 0x80:
            if pos >= end or data[pos] >= 0x80:
                return 0
            length = (length & 0x7F) | (data[pos] << 7)
            pos += 1
        pos += length
    more = header & MORE
    while more:
        if pos + 2 >= end:
            return 0
        tag = data[pos]
        kind = tag & EXTENSION
        pos += 1
        if kind == PUSH_EXT_NODE_ID:
            if data[pos] >= 0x80:
                pos += 1  # never more than two: such a node id is read by others
        elif kind != PUSH_EXT_QOS:
            return 0
        if pos >= end or data[pos] >= 0x80:
            return 0
        pos += 1
        more = tag & MORE
    if pos >= end or data[pos] & ID != PUT:
        return 0
    return pos + 1


def skip_known(r: Reader) -> bool:
    """Pass over the extensions of a value if all are known; they are checked all the same."""
    while True:
        tag = r.u8()
        kind = tag & EXTENSION
        if kind == PUT_EXT_ATTACHMENT:
            r.skip(r.vle(0xFFFF_FFFF))
        elif kind == PUT_EXT_SOURCE_INFO:
            former = r.narrow(r.vle(0xFFFF_FFFF))
            read_source_info(r)
            r.widen(former, "Put.source_info")
        else:
            return False
        if tag < MORE:
            return True
