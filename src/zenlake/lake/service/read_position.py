"""Tells a journal how far a lake has read it, so that retention keeps what it has not.

Each lake has a page of its own in the journal's folder, `readers-<which>.json`; its format is that
of `zenlake.journal.writing.readers`. A lake that is gone for good leaves its page behind: whoever
takes the lake away takes that away too, else the journal keeps rows for it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["forget_reader", "page_of", "tell_journal"]


def page_of(journal: str | Path, lake: str) -> Path:
    """Where a journal reads how far the lake in this place is."""
    which = hashlib.sha256(lake.encode()).hexdigest()[:12]
    return Path(journal) / f"readers-{which}.json"


def tell_journal(journal: str | Path, lake: str, id: str, committed: Sequence[int]) -> None:
    """Write up to where the lake has each partition of the journal with this id.

    Raises `OSError` where that cannot be written: the page before it stays, and keeps more.
    """
    page = page_of(journal, lake)
    fresh = page.with_name(f".{page.name}.{os.getpid()}")
    try:
        fresh.write_text(json.dumps({lake: {id: list(committed)}}), "utf-8")
        fresh.replace(page)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def forget_reader(journal: str | Path, lake: str) -> None:
    """The lake reads this journal no more."""
    page_of(journal, lake).unlink(missing_ok=True)
