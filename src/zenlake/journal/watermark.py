"""How far the journal is durable: what was acknowledged, and must never be lost."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from zenlake.errors import JournalCorrupt
from zenlake.journal.layout import parse

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
        body = json.dumps(
            {"offsets": self.offsets, "sources": dict(self.sources), "synced": self.synced}
        )
        return f'{{"crc": {zlib.crc32(body.encode())}, "watermark": {body}}}\n'.encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Watermark:
        """Read `watermark.json`."""
        outer = parse(data, where)
        try:
            page = outer["watermark"]
            if zlib.crc32(json.dumps(page).encode()) != outer["crc"]:
                raise JournalCorrupt(
                    f"{where} does not match its checksum; restore it from a copy of the journal"
                )
            return cls(
                tuple(int(offset) for offset in page["offsets"]),
                {str(source): int(sn) for source, sn in page["sources"].items()},
                bool(page["synced"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise JournalCorrupt(f"{where} is not a watermark: {error!r}") from error
