"""Where a read begins and ends: by offset or by time, as the options say."""

from __future__ import annotations

import logging
from typing import Any

from zenlake.spark.offsets import DataLoss, Offsets
from zenlake.spark.options import OptionError, SourceOptions

__all__ = ["begin", "end", "kept"]

log = logging.getLogger("zenlake.spark")

EARLIEST, LATEST = -2, -1


def begin(options: SourceOptions, journal: Any, default: str) -> Offsets:
    """The first offset of each partition that is asked for."""
    when = options.instant("startingTimestamp")
    latest: Offsets = journal.watermark().offsets
    if when is not None:
        return tuple(offset_at(journal, number, when) for number in range(journal.partitions))
    wanted = options.offsets("startingOffsets", default)
    offsets = _placed("startingOffsets", wanted, journal, latest, EARLIEST)
    return kept(options, journal, offsets, latest)


def end(options: SourceOptions, journal: Any) -> Offsets:
    """The offset after the last of each partition that is asked for."""
    when = options.instant("endingTimestamp")
    latest: Offsets = journal.watermark().offsets
    if when is not None:
        return tuple(offset_at(journal, number, when) for number in range(journal.partitions))
    wanted = options.offsets("endingOffsets", "latest")
    if wanted == "earliest":
        raise OptionError("endingOffsets=earliest: a read that ends there has no rows")
    offsets = _placed("endingOffsets", wanted, journal, latest, LATEST)
    return tuple(min(asked, there) for asked, there in zip(offsets, latest, strict=True))


def kept(options: SourceOptions, journal: Any, start: Offsets, latest: Offsets) -> Offsets:
    """The same offsets if their rows are there; else an error, or the nearest that are."""
    earliest: Offsets = journal.earliest()
    lost = [
        f"partition {number}: {asked} is asked for, {first} to {last} are there"
        for number, (asked, first, last) in enumerate(zip(start, earliest, latest, strict=True))
        if not first <= asked <= last
    ]
    if not lost:
        return start
    if options.flag("failOnDataLoss", True):
        raise DataLoss(
            f"rows to be read are not in journal {journal.name}: {'; '.join(lost)}. They were "
            "let go by its retention, or it was restored from an older copy. Set "
            "failOnDataLoss=false to go on without them"
        )
    log.warning("rows are missing and passed over: %s", "; ".join(lost))
    return tuple(
        min(max(asked, first), last)
        for asked, first, last in zip(start, earliest, latest, strict=True)
    )


def offset_at(journal: Any, partition: int, when: int) -> int:
    """The first offset whose row is of this time (in microseconds) or later.

    Rows are in the order they came in, so a later one may be of an earlier time.
    """
    for segment in journal.segments(partition):
        if segment.max_time < when:
            continue
        for batch in journal.scan(
            {partition: segment.first},
            {partition: segment.end},
            partition=partition,
            time=(when, None),
            columns=["offset"],
        ):
            if batch.num_rows:
                return int(batch.column(0)[0].as_py())
    offset: int = journal.watermark().offsets[partition]
    return offset


def _placed(
    name: str, wanted: str | dict[int, int], journal: Any, latest: Offsets, otherwise: int
) -> Offsets:
    earliest: Offsets = journal.earliest()
    if isinstance(wanted, str):
        return earliest if wanted == "earliest" else latest
    strange = [number for number in wanted if number >= journal.partitions]
    if strange:
        raise OptionError(
            f"{name} names partition {strange[0]}; journal {journal.name} has 0 to "
            f"{journal.partitions - 1}"
        )
    offsets = []
    for number in range(journal.partitions):
        offset = wanted.get(number, otherwise)
        special = {EARLIEST: earliest[number], LATEST: latest[number]}
        offsets.append(special.get(offset, offset))
    return tuple(offsets)
