"""Compares two recorded windows, read in the order of time, in bounded memory.

Samples that were replayed with their timestamps are known again by these: each is compared with
the one of the same key and timestamp. Otherwise the samples of a key are compared in their order
(`zenlake.replay.comparison`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from zenlake.journal.ingest.rows import hlc_nanos
from zenlake.replay.comparison import DifferenceReport, SampleContent, WindowComparison

if TYPE_CHECKING:
    import pyarrow as pa

    from zenlake.replay.sources import SampleSource

__all__ = ["By", "compare"]

By = Literal["auto", "time", "order"]
LOOKED_AT: Final = 4096
"""Samples of each side that say whether timestamps are the same."""

_One = tuple[int, str, SampleContent]


def compare(
    left: SampleSource,
    right: SampleSource,
    *,
    strip_left: str = "",
    strip_right: str = "",
    by: By = "auto",
    tolerance: float = 0.0,
) -> tuple[DifferenceReport, str]:
    """Compare two sources; gives the report, and what samples were matched by.

    `strip_left` and `strip_right` are prefixes that keys have on one side only.
    """
    comparison = WindowComparison(tolerance)
    criterion = by if by != "auto" else _criterion(left, right)
    one, other = _samples(left, strip_left), _samples(right, strip_right)
    if criterion == "time":
        _by_time(comparison, one, other)
    else:
        _by_order(comparison, one, other)
    return comparison.end(), criterion


def _criterion(left: SampleSource, right: SampleSource) -> str:
    """By time, if any of the first samples have a timestamp in common."""
    one, other = _first(left), _first(right)
    return "time" if one & other else "order"


def _first(source: SampleSource) -> set[int]:
    stamps: set[int] = set()
    for rows in source.rows():
        stamps.update(rows["hlc"].to_pylist()[: LOOKED_AT - len(stamps)])
        if len(stamps) >= LOOKED_AT:
            break
    return stamps


def _samples(source: SampleSource, strip: str) -> Iterator[_One]:
    shorter = _stripping(strip)
    for rows in source.rows():
        yield from _of(rows, shorter)


def _of(rows: pa.Table, shorter: Callable[[str], str]) -> Iterator[_One]:
    names = ("key", "hlc", "kind", "value", "encoding_id", "encoding_schema", "attachment")
    columns = [rows[name].to_pylist() for name in names]
    moments = hlc_nanos(rows["hlc"].to_numpy()).tolist()
    for key, hlc, kind, value, id, schema, attachment, at in zip(*columns, moments, strict=True):
        yield hlc, shorter(key), SampleContent(kind, value, (id, schema), attachment, at)


def _stripping(prefix: str) -> Callable[[str], str]:
    if not prefix:
        return lambda key: key
    start = f"{prefix}/"
    return lambda key: key.removeprefix(start)


def _by_time(comparison: WindowComparison, left: Iterator[_One], right: Iterator[_One]) -> None:
    """Both are in the order of time: those of one timestamp are compared, key by key."""
    ones, others = _groups(left), _groups(right)
    one, other = next(ones, None), next(others, None)
    while one is not None or other is not None:
        earliest = min(group[0] for group in (one, other) if group is not None)
        mine: dict[str, list[SampleContent]] = {}
        theirs: dict[str, list[SampleContent]] = {}
        if one is not None and one[0] == earliest:
            mine = one[1]
            one = next(ones, None)
        if other is not None and other[0] == earliest:
            theirs = other[1]
            other = next(others, None)
        for key in mine | theirs:
            first, second = mine.get(key, []), theirs.get(key, [])
            for place in range(max(len(first), len(second))):
                comparison.pair(
                    key,
                    first[place] if place < len(first) else None,
                    second[place] if place < len(second) else None,
                )


def _groups(samples: Iterator[_One]) -> Iterator[tuple[int, dict[str, list[SampleContent]]]]:
    """The samples of one timestamp together."""
    at, held = 0, dict[str, list[SampleContent]]()
    for hlc, key, sample in samples:
        if held and hlc != at:
            yield at, held
            held = {}
        at = hlc
        held.setdefault(key, []).append(sample)
    if held:
        yield at, held


def _by_order(comparison: WindowComparison, left: Iterator[_One], right: Iterator[_One]) -> None:
    """A few from either side by turns, so that little waits."""
    while True:
        ones, others = list(islice(left, 64)), list(islice(right, 64))
        if not ones and not others:
            return
        for _, key, sample in ones:
            comparison.left(key, sample)
        for _, key, sample in others:
            comparison.right(key, sample)
