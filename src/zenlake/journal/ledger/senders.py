"""Who sent the rows of a batch, and with which numbers: found column by column.

A source is a Zenoh entity that numbers its samples (`source_zid:source_eid`), or a ROS 2 publisher
whose middleware puts its number into the attachment:

     0        8        16  17                  33
    | number | time   |16| gid of the publisher |        little-endian
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal.ledger.account import Flags, Integers
from zenlake.journal.schema import HEALED, ROS_SIZE
from zenlake.journal.uniform import only_value
from zenlake.recorded.words import source_text

__all__ = ["COLUMNS", "SourceStretch", "Unnumbered", "senders_in"]

#: The columns that sources are found in.
COLUMNS: Final = [
    "key",
    "hlc",
    "stamp_id",
    "stamped",
    "attachment",
    "source_zid",
    "source_eid",
    "source_sn",
    "origin",
]

ZENOH_BITS: Final = 32
ROS_BITS: Final = 63
GID_SIZE: Final = 16

Array = Any
"""A pyarrow array: pyarrow says nothing about its types."""


@dataclass(frozen=True, slots=True)
class SourceStretch:
    """The rows of one source in a batch, in their order."""

    source: str
    key: str
    bits: int
    numbers: Integers
    times: Integers
    own_clock: Flags | None
    healed: Flags | None


Unnumbered = dict[str, int]
"""How many rows without a number came under each key."""


def senders_in(batch: Array) -> tuple[Iterator[SourceStretch], Unnumbered]:
    """The rows that have a number, by source; and those that have none, counted by key."""
    zenoh, ros = _zenoh_rows(batch), _ros_rows(batch)
    return _numbered(batch, zenoh, ros), _unnumbered(batch, zenoh, ros)


def _numbered(
    batch: Array, zenoh: Integers | slice | None, ros: Integers | None
) -> Iterator[SourceStretch]:
    if zenoh is not None:
        yield from _zenoh(batch, zenoh)
    if ros is not None:
        yield from _ros(batch, ros)


def _unnumbered(batch: Array, zenoh: Integers | slice | None, ros: Integers | None) -> Unnumbered:
    if isinstance(zenoh, slice):
        return {}
    key = batch.column("key")
    codes = key.indices.to_numpy(zero_copy_only=False)
    if zenoh is not None or ros is not None:
        without = np.ones(batch.num_rows, np.bool_)
        for rows in (zenoh, ros):
            if rows is not None:
                without[rows] = False
        codes = codes[without]
    counts = np.bincount(codes)
    named = np.flatnonzero(counts)
    names = key.dictionary.take(pa.array(named)).to_pylist()
    return dict(zip(names, counts[named].tolist(), strict=True))


# ------------------------------------------------------------------------------------- Zenoh


def _zenoh_rows(batch: Array) -> Integers | slice | None:
    """Where the rows with a number of Zenoh's are; all of them is a slice."""
    number, zid = batch.column("source_sn"), batch.column("source_zid")
    missing = max(number.null_count, zid.null_count)
    if missing == batch.num_rows:
        return None
    if not number.null_count and not zid.null_count:
        return slice(None)
    rows = np.flatnonzero(pc.and_(number.is_valid(), zid.is_valid()).to_numpy(zero_copy_only=False))
    return rows if len(rows) else None


def _zenoh(batch: Array, rows: Integers | slice) -> Iterator[SourceStretch]:
    if not isinstance(rows, slice):
        batch = batch.take(pa.array(rows))
    rest = _Rest(batch)
    zid = batch.column("source_zid")
    eid = _integers(pc.fill_null(batch.column("source_eid"), 0))
    number = _integers(batch.column("source_sn"))
    own_clock = _own_clock(batch)
    alone = only_value(zid)
    if alone is not None and (eid == eid[0]).all():
        name = source_text(alone, eid[0])
        yield rest.stretch(name, ZENOH_BITS, number, own_clock, slice(None))
        return
    zid = zid.dictionary_encode()
    who = zid.indices.to_numpy(zero_copy_only=False).astype(np.int64) << 32 | eid
    for at in _groups(who):
        source = int(who[at[0] if not isinstance(at, slice) else 0])
        name = source_text(zid.dictionary[source >> 32].as_py(), source & 0xFFFFFFFF)
        yield rest.stretch(name, ZENOH_BITS, number, own_clock, at)


def _own_clock(batch: Array) -> Flags | None:
    """Which rows were stamped by the node that sent them."""
    stamp_id, zid = batch.column("stamp_id"), batch.column("source_zid")
    teller, sender = only_value(stamp_id), only_value(zid)
    if teller is not None and sender is not None:
        return np.ones(batch.num_rows, np.bool_) if teller == sender else None
    flags: Flags = pc.fill_null(pc.equal(stamp_id, zid), False).to_numpy(zero_copy_only=False)
    return flags if flags.any() else None


# ------------------------------------------------------------------------------------- ROS 2


def _ros_rows(batch: Array) -> Integers | None:
    attachment = batch.column("attachment")
    if attachment.null_count == batch.num_rows:
        return None
    sizes = pc.fill_null(pc.binary_length(attachment), 0).to_numpy(zero_copy_only=False)
    said = batch.column("source_sn").is_null().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero((sizes == ROS_SIZE) & said)
    if not len(rows):
        return None
    ros_rows = rows[_attachments(attachment, rows)[:, GID_SIZE] == GID_SIZE]
    return ros_rows if len(ros_rows) else None


def _attachments(column: Array, rows: Integers) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The attachments of some rows, one a line."""
    _, offsets, data = column.buffers()
    start = np.frombuffer(offsets, np.int32)[column.offset + rows].astype(np.int64)
    lines: np.ndarray[Any, np.dtype[np.uint8]]
    if (np.diff(start) == ROS_SIZE).all():
        # One behind the other, as when all rows are from ROS: no need to gather them.
        first = int(start[0])
        attached = np.frombuffer(data, np.uint8)[first : first + len(rows) * ROS_SIZE]
        return attached.reshape(len(rows), ROS_SIZE)
    lines = np.frombuffer(data, np.uint8)[start[:, None] + np.arange(ROS_SIZE)]
    return lines


def _ros(batch: Array, rows: Integers) -> Iterator[SourceStretch]:
    lines = _attachments(batch.column("attachment"), rows)
    rest = _Rest(batch.take(pa.array(rows)))
    number = np.ascontiguousarray(lines[:, :8]).view("<i8")[:, 0].astype(np.int64)
    gids = np.ascontiguousarray(lines[:, GID_SIZE + 1 :])
    encoded = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(GID_SIZE), len(rows), [None, pa.py_buffer(gids)]
    ).dictionary_encode()
    who = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    for at in _groups(who):
        index = int(who[at[0] if not isinstance(at, slice) else 0])
        name = f"ros2:{encoded.dictionary[index].as_py().hex()}"
        yield rest.stretch(name, ROS_BITS, number, None, at)


# -------------------------------------------------------------------------------------- both


class _Rest:
    """What is told of every row beside its sender and its number."""

    def __init__(self, batch: Array) -> None:
        self._keys = batch.column("key")
        self._times = _integers(batch.column("hlc"))
        healed: Flags = batch.column("origin").to_numpy(zero_copy_only=False) == HEALED
        self._healed = healed if healed.any() else None

    def stretch(
        self,
        source: str,
        bits: int,
        number: Integers,
        own_clock: Flags | None,
        at: Integers | slice,
    ) -> SourceStretch:
        """The rows of one sender."""
        first = 0 if isinstance(at, slice) else int(at[0])
        return SourceStretch(
            source,
            self._keys[first].as_py(),
            bits,
            number[at],
            self._times[at],
            None if own_clock is None else own_clock[at],
            None if self._healed is None else self._healed[at],
        )


def _groups(who: Integers) -> Iterator[Integers | slice]:
    """The rows of each sender, in the order of the rows; one sender alone is a slice."""
    if (who == who[0]).all():
        yield slice(None)
        return
    codes = pa.array(who).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    small = codes.astype(np.uint16) if codes.max() < 1 << 16 else codes
    order = np.argsort(small, kind="stable")
    ends = np.flatnonzero(np.diff(small[order])) + 1
    yield from np.split(order, ends)


def _integers(column: Array) -> Integers:
    integers: Integers = column.to_numpy(zero_copy_only=False)
    return integers
