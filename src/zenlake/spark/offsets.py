"""Offsets of a stream: how far, how much at once, and cut into how many tasks. Pure arithmetic.

An offset is kept in Spark's checkpoint as JSON in the form that Kafka's has, with the journal's
id in the place of the topic:

    {"4f1c…": {"0": 1200, "1": 1187}}

It names the next row of each partition. The id is there so that a checkpoint is never continued
on another journal that happens to lie at the same path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from zenlake.errors import ZError

__all__ = [
    "DataLoss",
    "Range",
    "Sized",
    "behind",
    "cut",
    "from_json",
    "lag",
    "limit_bytes",
    "limit_rows",
    "to_json",
]

Offsets = tuple[int, ...]
"""The next offset of each partition."""

#: A task with fewer rows than this is not worth starting.
LEAST_ROWS: Final = 10_000


class DataLoss(ZError):
    """Rows that a stream should read next are not there; the message says which and what to do."""


class Sized(Protocol):
    """What is known about a stretch of rows."""

    @property
    def first(self) -> int:
        """Its first offset."""

    @property
    def end(self) -> int:
        """The offset after its last."""

    @property
    def bytes(self) -> int:
        """What it takes in the journal."""


@dataclass(frozen=True, slots=True)
class Range:
    """Rows of one partition, from `start` to before `end`."""

    partition: int
    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return max(0, self.end - self.start)


def to_json(journal: str, offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as Spark keeps them."""
    return {journal: {str(partition): offset for partition, offset in enumerate(offsets)}}


def from_json(document: Mapping[str, Mapping[str, int]], journal: str, partitions: int) -> Offsets:
    """The offsets in what Spark kept, if they are of this journal."""
    if set(document) != {journal}:
        raise DataLoss(
            f"the checkpoint is of journal {', '.join(document) or '(none)'}, and what lies here "
            f"is journal {journal}: a new one was made in its place. Begin with a new checkpoint "
            "folder; with failOnDataLoss=false the stream goes on with all of the new journal"
        )
    try:
        return tuple(int(document[journal][str(number)]) for number in range(partitions))
    except (KeyError, TypeError, ValueError) as error:
        raise DataLoss(
            f"the checkpoint says {dict(document[journal])}, and the journal has {partitions} "
            "partitions: its offsets are not those of this journal"
        ) from error


def limit_rows(start: Offsets, end: Offsets, most: int) -> Offsets:
    """An end so near that no more than `most` rows are before it.

    Partitions get shares by how much they have, so that all of them keep up; what rounding
    leaves over goes to the first that have room, and so there is progress even with `most` 1.
    """
    waiting = [max(0, stop - begin) for begin, stop in zip(start, end, strict=True)]
    total = sum(waiting)
    if total <= most:
        return end
    shares = [rows * most // total for rows in waiting]
    left = most - sum(shares)
    for number, rows in enumerate(waiting):
        more = min(left, rows - shares[number])
        shares[number] += more
        left -= more
    return tuple(begin + share for begin, share in zip(start, shares, strict=True))


def limit_bytes(
    start: Offsets, end: Offsets, segments: Sequence[Sequence[Sized]], most: int
) -> Offsets:
    """An end so near that about `most` bytes are before it, and at least a row.

    Rows of a segment count as if they were of one size.
    """
    sizes = [
        _bytes_between(begin, stop, pieces)
        for begin, stop, pieces in zip(start, end, segments, strict=True)
    ]
    total = sum(sizes)
    if total <= most:
        return end
    limited = []
    for begin, stop, pieces, size in zip(start, end, segments, sizes, strict=True):
        limited.append(_offset_after(begin, stop, pieces, size * most / total))
    return tuple(limited) if tuple(limited) != start else limit_rows(start, end, 1)


def behind(end: Offsets, latest: Offsets) -> int:
    """How many rows are waiting after `end`."""
    return sum(max(0, last - first) for first, last in zip(end, latest, strict=True))


def lag(source: Mapping[str, Any]) -> int:
    """How many rows a stream is behind the journal, by a source of a progress event.

    For instance `lag(query.lastProgress["sources"][0])`.
    """
    ends, latest = _offsets_in(source.get("endOffset")), _offsets_in(source.get("latestOffset"))
    return sum(
        max(0, last - ends.get(journal, {}).get(partition, 0))
        for journal, offsets in latest.items()
        for partition, last in offsets.items()
    )


def _offsets_in(given: Any) -> dict[str, dict[str, int]]:
    """An offset of a progress event: an object, or the text of one."""
    document = json.loads(given) if isinstance(given, str) else given
    return document if isinstance(document, dict) else {}


def cut(ranges: Sequence[Range], pieces: int, least: int = LEAST_ROWS) -> list[Range]:
    """The same rows in about `pieces` ranges, none of them needlessly small, none empty."""
    total = sum(piece.rows for piece in ranges)
    size = max(least, -(-total // max(1, pieces)))
    parts = []
    for piece in ranges:
        count = -(-piece.rows // size)
        for number in range(count):
            start = piece.start + piece.rows * number // count
            end = piece.start + piece.rows * (number + 1) // count
            parts.append(Range(piece.partition, start, end))
    return parts


def _bytes_between(start: int, end: int, pieces: Sequence[Sized]) -> float:
    total = 0.0
    for piece in pieces:
        rows = min(end, piece.end) - max(start, piece.first)
        if rows > 0:
            total += piece.bytes * rows / (piece.end - piece.first)
    return total


def _offset_after(start: int, end: int, pieces: Sequence[Sized], size: float) -> int:
    at = start
    for piece in pieces:
        rows = min(end, piece.end) - max(at, piece.first)
        if rows <= 0:
            continue
        each = piece.bytes / (piece.end - piece.first)
        if each * rows > size:
            return max(at, piece.first) + int(size / each)
        size -= each * rows
        at = min(end, piece.end)
    return end
