"""Times of many rows as the wire has them, without a message for each."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["TIME_BYTES", "are_long", "wire_times"]

TIME_BYTES: Final = 9
"""Bytes of a time as it is written, if it is later than half a year after 1970."""


def are_long(raw: npt.NDArray[np.uint64]) -> bool:
    """Whether none of these times would be written with fewer bytes than `TIME_BYTES`."""
    return not len(raw) or int(raw.min()) >> 56 > 0


def wire_times(raw: npt.NDArray[np.uint64]) -> bytes:
    """NTP64 times as they are written, `TIME_BYTES` bytes each.

    Seven bits a byte, the lowest first; the ninth byte has the eight that are left. Of times that
    are not long, zeros are written that a message leaves out; a reader finds the same.
    """
    written = np.empty((len(raw), TIME_BYTES), np.uint8)
    for place in range(TIME_BYTES):
        written[:, place] = raw >> np.uint64(7 * place)
    written[:, : TIME_BYTES - 1] |= 0x80
    return written.tobytes()
