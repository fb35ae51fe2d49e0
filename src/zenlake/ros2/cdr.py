"""CDR payloads to Arrow, many at once.

Payloads with the same lengths have all values in the same places (`layout`), so they are put one
under the other as a table of bytes, and each value is a few columns of that table: a robot's
odometry of an hour is decoded by as many operations as it has fields. Payloads of many lengths are
read side by side (`lockstep`), and those that have too few companions one by one (`one_by_one`),
all with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from zenlake.errors import DecodeError
from zenlake.ros2.arrow_types import SCALARS, arrow_type, is_map
from zenlake.ros2.description import TypeDescription
from zenlake.ros2.layout import (
    Items,
    Layout,
    RecordAt,
    Scalar,
    Scalars,
    TextAt,
    ValuesAt,
    order_of,
    plan_of,
    walk,
)
from zenlake.ros2.lockstep import FEW as FEW_SIDE_BY_SIDE
from zenlake.ros2.lockstep import read_side_by_side
from zenlake.ros2.one_by_one import PayloadReader

__all__ = ["CdrDecoder", "DecodedPayloads"]

FEW: Final = 4
"""Payloads of one layout that are not worth a table of bytes."""

MOST_LONELY: Final = 4
"""Layouts without companions, beyond those that have some, after which none is compared more."""


CROWD: Final = 16
"""Payloads of one layout that are worth comparing all of their size with it."""


@dataclass(frozen=True, slots=True)
class DecodedPayloads:
    """What became of a batch of payloads."""

    values: pa.StructArray
    """Those that could be read, in their order."""
    places: np.ndarray[Any, np.dtype[np.int64]]
    """Which payload each of them was."""
    refused: dict[int, str]
    """Why the others could not be read, by their places."""


@final
class CdrDecoder:
    """Reads payloads of one type."""

    def __init__(self, description: TypeDescription) -> None:
        """Of the type that this describes."""
        self.plan = plan_of(description)
        self.type = arrow_type(self.plan)

    def decode(self, payloads: Sequence[bytes]) -> DecodedPayloads:
        """Read many payloads; none that is broken disturbs another."""
        refused: dict[int, str] = {}
        parts: list[pa.Array] = []
        places: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        alone: list[int] = []
        by_size = _by_size(payloads)
        crowds = lonely = 0
        for size, members in sorted(by_size.items(), key=lambda one: -len(one[1])):
            left = members
            # Where layouts have no companions, comparing more of them is no use.
            while len(left) >= FEW and lonely < MOST_LONELY + crowds:
                first = payloads[left[0]]
                try:
                    order = order_of(first)
                    walked = walk(self.plan, first, order)
                except DecodeError as error:
                    refused[int(left[0])] = str(error)
                    left = left[1:]
                    continue
                rows = np.frombuffer(b"".join([payloads[n] for n in left]), np.uint8)
                rows = rows.reshape(len(left), size)
                same = _same(rows, walked.lengths, walked.ends)
                mine, left = left[same], left[~same]
                if len(mine) < CROWD:
                    lonely += 1
                else:
                    crowds += 1
                if len(mine) < FEW:
                    alone.extend(mine.tolist())
                    continue
                try:
                    table = rows if len(mine) == len(rows) else rows[same]
                    parts.append(_array(table, walked.layout, order))
                    places.append(mine)
                except (pa.ArrowInvalid, UnicodeDecodeError):  # text that is none, in some of them
                    alone.extend(mine.tolist())
            alone.extend(left.tolist())
        if len(alone) >= FEW_SIDE_BY_SIDE:
            alone = self._side_by_side(payloads, np.sort(np.array(alone)), parts, places)
        if alone:
            read, at = self._one_by_one(payloads, alone, refused)
            parts.append(read)
            places.append(at)
        if not parts:
            return DecodedPayloads(pa.array([], self.type), np.empty(0, np.int64), refused)
        every = np.concatenate(places)
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        order_back = np.argsort(every, kind="stable")
        if len(parts) > 1 or not np.array_equal(order_back, np.arange(len(every))):
            values = values.take(pa.array(order_back))
        return DecodedPayloads(values, every[order_back], refused)

    def _side_by_side(
        self,
        payloads: Sequence[bytes],
        alone: np.ndarray[Any, np.dtype[np.int64]],
        parts: list[pa.Array],
        places: list[np.ndarray[Any, np.dtype[np.int64]]],
    ) -> list[int]:
        """Add what can be read so; gives the places that are left."""
        try:
            arrays, left = read_side_by_side(self.plan, [payloads[n] for n in alone.tolist()])
        except pa.ArrowInvalid:  # more bytes than one array takes
            return [int(n) for n in alone]
        for read, at in arrays:
            parts.append(read)
            places.append(alone[at])
        return [int(n) for n in alone[left]]

    def _one_by_one(
        self, payloads: Sequence[bytes], alone: Sequence[int], refused: dict[int, str]
    ) -> tuple[pa.Array, np.ndarray[Any, np.dtype[np.int64]]]:
        readers: dict[str, tuple[PayloadReader, list[int]]] = {}
        for n in alone:
            try:
                order = order_of(payloads[n])
                if order not in readers:
                    readers[order] = (PayloadReader(self.plan, order), [])
                reader, kept = readers[order]
                reader.add(payloads[n])
                kept.append(n)
            except DecodeError as error:
                refused[n] = str(error)
        read = [reader.array() for reader, _ in readers.values()]
        kept = [n for _, members in readers.values() for n in members]
        values = pa.concat_arrays(read) if read else pa.array([], self.type)
        return values, np.array(kept, np.int64)


def _by_size(payloads: Sequence[bytes]) -> dict[int, np.ndarray[Any, np.dtype[np.int64]]]:
    sizes = np.fromiter((len(one) for one in payloads), np.int64, len(payloads))
    return {int(size): np.nonzero(sizes == size)[0] for size in np.unique(sizes)}


def _same(
    rows: np.ndarray[Any, np.dtype[np.uint8]], lengths: Sequence[int], ends: Sequence[int]
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows have header and lengths of the first, and NUL where it has."""
    decisive = [0, 1, *(at + n for at in lengths for n in range(4))]
    same = (rows[:, decisive] == rows[0, decisive]).all(axis=1)
    if ends:
        same &= (rows[:, list(ends)] == 0).all(axis=1)
    return np.asarray(same)


# --- many payloads of one layout -----------------------------------------------------------------


def _array(rows: np.ndarray[Any, np.dtype[np.uint8]], layout: Layout, order: str) -> pa.Array:
    count = len(rows)
    if isinstance(layout, RecordAt):
        fields = [_array(rows, one, order) for one in layout.fields]
        types = [field.type for field in fields]
        return pa.StructArray.from_arrays(
            fields, fields=[pa.field(n, t) for n, t in zip(layout.node.names, types, strict=True)]
        )
    if isinstance(layout, TextAt):
        return _texts(rows, layout)
    if isinstance(layout, ValuesAt):
        return _values(rows, layout, order)
    if not layout.items:
        empty = pa.array([], arrow_type(layout.node.item))
        return _listed(layout.node, np.zeros(count + 1, np.int32), empty)
    each = len(layout.items)
    columns = [_array(rows, item, order) for item in layout.items]
    # Item by item, all rows each; a list wants row by row.
    inner = pa.concat_arrays(columns)
    if each > 1:
        inner = inner.take(pa.array(np.arange(count * each).reshape(each, count).T.ravel()))
    return _listed(layout.node, np.arange(count + 1, dtype=np.int32) * each, inner)


def _listed(node: Items, offsets: np.ndarray[Any, np.dtype[np.int32]], inner: pa.Array) -> pa.Array:
    if is_map(node):
        return pa.MapArray.from_arrays(pa.array(offsets), inner.field(0), inner.field(1))
    return pa.ListArray.from_arrays(pa.array(offsets), inner)


def _texts(rows: np.ndarray[Any, np.dtype[np.uint8]], layout: TextAt) -> pa.Array:
    data = np.ascontiguousarray(rows[:, layout.at : layout.at + layout.size])
    texts = pa.StringArray.from_buffers(
        len(rows), pa.py_buffer(_offsets(len(rows), layout.size)), pa.py_buffer(data)
    )
    if data.max(initial=0) >= 0x80:
        texts.validate(full=True)  # raises where one of them is no text
    return texts


def _values(rows: np.ndarray[Any, np.dtype[np.uint8]], layout: ValuesAt, order: str) -> pa.Array:
    node = layout.node
    scalar = node if isinstance(node, Scalar) else node.item
    size = scalar.size * layout.count
    data = np.ascontiguousarray(rows[:, layout.at : layout.at + size])
    if isinstance(node, Scalars) and scalar.code == "u1":
        return pa.BinaryArray.from_buffers(
            pa.binary(),
            len(rows),
            [None, pa.py_buffer(_offsets(len(rows), size)), pa.py_buffer(data)],
        )
    flat = _scalars(data, scalar, order)
    if isinstance(node, Scalar):
        return flat
    return pa.ListArray.from_arrays(pa.array(_offsets(len(rows), layout.count)), flat)


def _scalars(data: np.ndarray[Any, np.dtype[np.uint8]], scalar: Scalar, order: str) -> pa.Array:
    code = scalar.code
    if code == "b1":
        return pa.array(data.ravel() != 0)
    values = data.ravel().view(f"{order}{code}" if scalar.size > 1 else code)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return pa.array(values).cast(SCALARS[code])


def _offsets(count: int, each: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    if count * each >= 1 << 31:
        raise pa.ArrowInvalid(f"{count} values of {each} bytes are too many for one array")
    return np.arange(count + 1, dtype=np.int32) * each
