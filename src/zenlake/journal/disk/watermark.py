"""How far the journal is durable: what was acknowledged, and must never be lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.layout import page_bytes, read_page

__all__ = ["WATERMARK", "Watermark"]

WATERMARK: Final = "watermark.json"


@dataclass(frozen=True, slots=True)
class Watermark:
    """Everything below these offsets survives a loss of power.

    `offsets` has the next offset of each partition. `sources` has, for a source `zid:eid`, the
    last sequence number that is durable. `synced` is False for a journal that never calls fsync:
    then it all survives a killed process, and not a loss of power.
    """

    offsets: tuple[int, ...]
    sources: Mapping[str, int] = field(default_factory=dict)
    synced: bool = True

    def to_json(self) -> bytes:
        """The content of `watermark.json`."""
        return page_bytes(
            "watermark",
            {"offsets": self.offsets, "sources": dict(self.sources), "synced": self.synced},
        )

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Watermark:
        """Read `watermark.json`."""
        page = read_page("watermark", data, where)
        try:
            return cls(
                tuple(int(offset) for offset in page["offsets"]),
                {str(source): int(sn) for source, sn in page["sources"].items()},
                bool(page["synced"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise JournalCorrupt(f"{where} is not a watermark: {error!r}") from error
