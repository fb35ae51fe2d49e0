"""Words of one row, without a library: the kinds of samples, and who sent one."""

from __future__ import annotations

from typing import Final

from zenlake.clock.zid import id_text

__all__ = ["KINDS", "source_text"]

KINDS: Final = ("put", "delete")
"""The words of `kind`, each at the place that is its number."""


def source_text(zid: bytes, eid: int) -> str:
    """Return who sent a sample, `zid:eid`."""
    return f"{id_text(zid)}:{eid}"
