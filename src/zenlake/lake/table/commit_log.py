"""The commits in the log of a table: their actions, and what our own commits noted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from zenlake.lake.table.features import LOG
from zenlake.lake.table.location import LakeLocation

__all__ = ["NOTE", "commit_lines", "is_rewrite", "newest_note"]

NOTE: Final = "zenlake"
"""The key of our own word in the information of a commit."""


def commit_lines(place: LakeLocation, version: int) -> list[bytes] | None:
    """Return the actions of one commit, a line each; None if the log does not have it any more.

    `place`: the table's folder.
    """
    path = place.path(f"{LOG}/{version:020}.json")
    try:
        with place.filesystem.open_input_stream(path) as page:
            lines: list[bytes] = page.read().splitlines()
    except FileNotFoundError:
        return None
    return lines


def is_rewrite(actions: Iterable[Mapping[str, Any]]) -> bool:
    """Return True if a commit of ours wrote files anew, with the same rows or fewer of them."""
    notes = (one["commitInfo"].get(NOTE) for one in actions if "commitInfo" in one)
    return any(isinstance(note, dict) and note.get("kind") == "rewrite" for note in notes)


def newest_note(place: LakeLocation, version: int, kind: str) -> tuple[int, dict[str, Any]] | None:
    """Return the newest of our commits of this kind up to a version: its version and its note."""
    # Not by `history`, which reads all of the log: it is nearly always the newest or the next.
    for one in range(version, -1, -1):
        lines = commit_lines(place, one)
        if lines is None:
            return None
        for line in lines:
            if b'"commitInfo"' in line:
                note = json.loads(line).get("commitInfo", {}).get(NOTE)
                if isinstance(note, dict) and note.get("kind") == kind:
                    return one, note
    return None
