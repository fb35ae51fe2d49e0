"""When a recorder was away while its router ran: samples of that time are not in the journal.

    DIR/outages.json      how often, for how long, and the last ones

Sources that number their samples prove what is missing. Others prove nothing, so that the times
are all that can be said of theirs.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

__all__ = ["MOST", "OUTAGES", "add_outage", "known_outages"]

OUTAGES: Final = "outages.json"

MOST: Final = 100
"""Outages whose times are kept; older ones are counted."""


def known_outages(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return how many outages a journal had, their seconds, and the last ones, oldest first."""
    try:
        page = json.loads((Path(folder) / OUTAGES).read_text("utf-8"))
        last = [{"from": str(one["from"]), "to": str(one["to"])} for one in page["last"]]
        return {"count": int(page["count"]), "seconds": float(page["seconds"]), "last": last}
    except (OSError, ValueError, KeyError, TypeError):
        return {"count": 0, "seconds": 0.0, "last": []}


def add_outage(folder: str | os.PathLike[str], began: datetime, ended: datetime) -> None:
    """Note an outage in the folder of a journal, over a loss of power too."""
    page = known_outages(folder)
    page["count"] += 1
    page["seconds"] = round(page["seconds"] + max(0.0, (ended - began).total_seconds()), 3)
    page["last"] = [*page["last"], {"from": _text(began), "to": _text(ended)}][-MOST:]
    place = Path(folder) / OUTAGES
    fresh = place.with_suffix(".part")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(json.dumps(page))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(place)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
