"""Heartbeats: what advanced publishers say of their numbers when they have nothing else to say.

A publisher that beats puts the number it used last under a key of its own:

    robot/7/pose/@adv/pub/<zid>/<eid>/_     four bytes, little-endian

What is lost at the very end of a stream is noticed by nothing else. So a heartbeat that tells of
numbers which did not come is written down, as a row between the rows that came before and after
it: a reader that folds the journal again meets it at the same place. It lies in the partition of
the key that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from zenlake.clock import NTP64
from zenlake.journal.disk.layout import partition_of
from zenlake.journal.ingest.rows import hlc_of, unnumbered_batch
from zenlake.journal.schema import HEARTBEAT, HEARTBEAT_MARK, PUT
from zenlake.keys import is_wild
from zenlake.node.advanced_keys import SERIALS, SourceId, publisher_named
from zenlake.recorded.words import source_text

if TYPE_CHECKING:
    from zenlake.clock import Timestamp

__all__ = ["SIZE", "Heartbeat", "batches_of", "pieces", "samples_in"]

SIZE: Final = 4
"""How many bytes tell a number."""


class Heartbeat(NamedTuple):
    """A publisher's word that `number` is the last it used."""

    #: Where it was said.
    place: str
    source: str
    #: What it publishes on.
    key: str
    number: int
    #: When it was heard, as the column `hlc` has it; 0 where that is not known yet.
    time: int = 0

    @classmethod
    def read(cls, place: str, number: int, time: int = 0) -> Heartbeat | None:
        """What is said under a key; None where no publisher of samples with numbers says it."""
        publisher = publisher_named(place)
        key = place.rpartition(HEARTBEAT_MARK)[0]
        if not isinstance(publisher, SourceId) or not key or is_wild(key):
            return None
        if not 0 <= number < SERIALS:
            return None
        return cls(place, source_text(publisher.zid, publisher.eid), key, number, time)


# ----------------------------------------------------------------------------------- as rows


def batches_of(
    heartbeats: Iterable[Heartbeat], partitions: int, received: int, stamp: Timestamp
) -> list[tuple[int, Any]]:
    """Heartbeats as rows, by partition; `received` is in microseconds since 1970.

    Their number is told and their source is not: it is in the key, and a number with a source is
    that of a sample that came.
    """
    by_partition: dict[int, list[dict[str, object]]] = {}
    for beat in heartbeats:
        row: dict[str, object] = {
            "key": beat.place,
            "value": beat.number.to_bytes(SIZE, "little"),
            "kind": PUT,
            "encoding_id": 0,
            "encoding_schema": None,
            "hlc": hlc_of(stamp),
            "time": NTP64.as_nanos(stamp.get_time_as_ntp64()) // 1000,
            "stamp_id": stamp.id_bytes,
            "stamped": True,
            "attachment": None,
            "source_zid": None,
            "source_eid": None,
            "source_sn": beat.number,
            "priority": 5,
            "congestion": 0,
            "express": False,
            "reliable": True,
            "received": received,
            "origin": HEARTBEAT,
        }
        by_partition.setdefault(partition_of(beat.key, partitions), []).append(row)
    return [(partition, unnumbered_batch(rows)) for partition, rows in sorted(by_partition.items())]


def pieces(batch: Any) -> Iterator[tuple[Any, Heartbeat | None]]:
    """A batch cut at its heartbeats: rows, and what was told after them if that can be read."""
    origin = batch.column("origin").to_numpy(zero_copy_only=False)
    start = 0
    for row in np.flatnonzero(origin == HEARTBEAT).tolist():
        place, number, time = [
            batch.column(name)[row].as_py() for name in ("key", "source_sn", "hlc")
        ]
        said = None if number is None else Heartbeat.read(place, number, time)
        yield batch.slice(start, row - start), said
        start = row + 1
    if start < batch.num_rows:
        yield (batch.slice(start) if start else batch), None


def samples_in(batch: Any) -> Iterator[Any]:
    """The samples of a batch, in pieces whose offsets have no gaps; not those that were retired."""
    there = batch.column("origin").to_numpy(zero_copy_only=False) < HEARTBEAT
    edges = np.flatnonzero(np.diff(there, prepend=False, append=False)).tolist()
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        yield batch.slice(start, end - start)
