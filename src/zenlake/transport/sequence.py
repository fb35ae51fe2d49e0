"""Sequence numbers: one counter for each lane and direction, which wraps around.

The masks make a number fit one, two or four bytes of a variable-length integer, so the "32 bit"
resolution of the specification counts to 2^28. There is no retransmission: a gap is accepted, a
duplicate or an older number is dropped, and reliability is what the link gives.
"""

from __future__ import annotations

from typing import Final

from zenlake.transport.digests import shake_128

#: The largest sequence number, by the two bits of the resolution that speak of frames.
MASKS: Final[tuple[int, int, int, int]] = (0x7F, 0x3FFF, 0x0FFF_FFFF, 0xFFFF_FFFF)


def mask_of(resolution: int) -> int:
    """The largest sequence number under a resolution byte."""
    return MASKS[resolution & 0b11]


def follows(last: int, sn: int, mask: int) -> bool:
    """Whether `sn` is news after `last`: ahead of it by at most half the circle."""
    gap = (sn - last) & mask
    return gap != 0 and gap <= mask >> 1


def initial_sn(mine: bytes, theirs: bytes, mask: int) -> int:
    """The first sequence number that a node announces to a neighbour.

    Derived from both ids, so that every link of one session announces the same.
    """
    digest = shake_128(mine + theirs, 4)
    return int.from_bytes(digest, "little") & mask
