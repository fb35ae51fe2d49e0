"""Tells a journal how far its lake has read it, so that retention keeps what it has not.

The format is that of `zenlake.journal.writing.readers`, which needs pyarrow; a supervisor does not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["READERS", "write_readers"]

READERS: Final = "readers.json"


def write_readers(journal: Path, committed: Mapping[str, Sequence[int]] | None) -> None:
    """Write how far the lake is, by id of the journal; None: no lake reads this journal.

    Raises `OSError` where that cannot be written: the page before it stays, and keeps more.
    """
    place = journal / READERS
    if committed is None:
        place.unlink(missing_ok=True)
        return
    journal.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = journal / f".{READERS}.{os.getpid()}"
    fresh.write_text(json.dumps({"lake": dict(committed)}), "utf-8")
    fresh.replace(place)
