"""What a journal tells of itself: its watermark, its manifest, and where."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zenlake.errors import LocalError
from zenlake.node.inspection import view

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.journal.disk.segment import Segment
    from zenlake.journal.disk.watermark import Watermark
    from zenlake.journal.reading.reader import Journal

__all__ = ["Documents", "admin_root", "manifest_of", "root_of", "sealed_segment", "watermark_json"]


def root_of(name: str) -> str:
    """Where the journal of a name replies."""
    return f"@journal/{name}"


@dataclass(frozen=True, slots=True)
class Documents:
    """What a recorder can tell of itself, made when it is asked for."""

    watermark: Callable[[], Watermark]
    ledger: Callable[[], dict[str, object]]
    stats: Callable[[], dict[str, object]]


def admin_root(session: Session) -> str | None:
    """Where the node shows itself to operators, if it does."""
    space = session.runtime.settings.adminspace
    if not (space.enabled and space.permissions.read):
        return None
    with session.runtime.locked() as node:
        return view.root(node)


def watermark_json(watermark: Watermark) -> str:
    """The watermark as it is told."""
    return json.dumps(
        {
            "offsets": list(watermark.offsets),
            "sources": dict(watermark.sources),
            "synced": watermark.synced,
        }
    )


def manifest_of(journal: Journal, *, keys: bool = True) -> dict[str, object]:
    """What a journal is, and what it has; without `keys` it names none of those that it has."""
    hidden: dict[str, object] = {}
    if not keys:
        hidden = {"keys": None, "min_key": "", "max_key": "\U0010ffff"}
        hidden["retired_keys"] = []
    return {
        "id": journal.id,
        "name": journal.name,
        "partitions": journal.partitions,
        "earliest": list(journal.earliest()),
        "watermark": list(journal.watermark().offsets),
        "segments": [
            [
                segment.to_page() | {"sealed": segment.sealed} | hidden
                for segment in journal.segments(p)
            ]
            for p in range(journal.partitions)
        ],
    }


def sealed_segment(journal: Journal, place: list[str]) -> tuple[int, Segment]:
    """The partition and the segment that a place `<partition>/<first offset>/…` names."""
    if len(place) < 2 or not (place[0].isdigit() and place[1].isdigit()):
        raise LocalError("ask for segments/<partition>/<first offset>/**")
    partition, first = int(place[0]), int(place[1])
    for segment in journal.segments(partition):
        if segment.first == first and segment.sealed:
            return partition, segment
    raise LocalError(f"partition {partition} has no sealed segment that begins at {first}")
