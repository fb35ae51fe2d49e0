"""Memory that is used again instead of given back.

A recorder takes and leaves megabytes many times a second. Given back to the system each time, they
come again as pages that must be found and cleared first, which can cost more than all that is done
with them. A process that does little else keeps them.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

import pyarrow as pa

__all__ = ["keep_memory"]

#: glibc's names for what `mallopt` sets.
_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3


def keep_memory(most: int = 256 << 20) -> bool:
    """Have this process keep up to about `most` bytes that it does not use; whether it can.

    It concerns the whole process: a program decides it, not a library.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False  # another libc
    # As large as the system's allocator lets a piece of its heaps be.
    kept = mallopt(_MMAP_THRESHOLD, 32 << 20) and mallopt(_TRIM_THRESHOLD, most)
    if not kept:
        return False
    mallopt(_TOP_PAD, 4 << 20)
    pa.set_memory_pool(pa.system_memory_pool())
    return True
