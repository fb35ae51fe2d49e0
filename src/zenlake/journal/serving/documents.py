"""What a journal tells of itself: its watermark, its manifest, and where."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zenlake.node.inspection import view

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.journal.disk.watermark import Watermark
    from zenlake.journal.reading.reader import Journal

__all__ = ["Documents", "admin_root", "manifest_of", "root_of", "watermark_json"]


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
    space = session._runtime.settings.adminspace
    if not (space.enabled and space.permissions.read):
        return None
    with session._runtime.locked() as node:
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


def manifest_of(journal: Journal) -> dict[str, object]:
    """What a journal is, and what it has."""
    return {
        "id": journal.id,
        "name": journal.name,
        "partitions": journal.partitions,
        "earliest": list(journal.earliest()),
        "watermark": list(journal.watermark().offsets),
        "segments": [
            [segment.to_page() | {"sealed": segment.sealed} for segment in journal.segments(p)]
            for p in range(journal.partitions)
        ],
    }
