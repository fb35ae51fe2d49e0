"""CDR payloads whose lengths all differ, read side by side: a cursor in each, moved field by field.

All payloads lie in one buffer, each so that what is aligned in it is aligned there. A field of all
of them is then read by a few operations on arrays: the cursors are aligned, values are taken from
where they point, and they move on by what each found.

    payloads   |hdr sec nsec 3 map\0 …|hdr sec nsec 9 base_link\0 …|hdr …
    cursors          ^                      ^                           ^

Items of a sequence are read one after the other for all payloads that still have one. Where only
a few do, those payloads are left to `one_by_one`, as are all that cannot be read: it knows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from zenlake.ros2.arrow_types import SCALARS, arrow_type, is_map
from zenlake.ros2.layout import (
    HEADER,
    MOST_ITEMS,
    SLACK,
    Items,
    MessagePlan,
    Node,
    Scalar,
    Scalars,
    Text,
)

__all__ = ["FEW", "read_side_by_side"]

FEW: Final = 16
"""Payloads that are not worth operations on arrays."""

ROUNDS: Final = 4
"""How often those that cannot be read are taken out before all are left."""

LARGE: Final = 256
"""Bytes of a value, on average, from which on pieces are copied and not bytes."""

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]


def read_side_by_side(
    plan: MessagePlan, payloads: Sequence[bytes]
) -> tuple[list[tuple[pa.Array, Integers]], Integers]:
    """The values of payloads, each array with the places of those it has; and those left."""
    reading = _SideBySide(payloads)
    arrays: list[tuple[pa.Array, Integers]] = []
    left = [reading.strange]
    for order, places in reading.by_order:
        for _ in range(ROUNDS):
            if len(places) < FEW:
                break
            try:
                arrays.append((reading.read_all(plan, places, order), places))
                places = places[:0]
            except _LeftOut as error:
                left.append(error.which)
                places = np.setdiff1d(places, error.which)
        left.append(places)
    return arrays, np.sort(np.concatenate(left))


class _LeftOut(Exception):
    """Some payloads cannot be read with the others."""

    def __init__(self, which: Integers) -> None:
        super().__init__()
        self.which = np.unique(which)


@final
class _SideBySide:
    """Cursors in many payloads."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
        # After its header each begins at a multiple of eight.
        room = (sizes + HEADER + 7) // 8 * 8
        self._starts = np.cumsum(room) - room + HEADER
        self._ends = self._starts + sizes
        zeros = [b"\0" * n for n in range(16)]
        pieces: list[bytes] = [zeros[HEADER]] * (2 * len(payloads) + 1)
        pieces[1::2] = payloads
        pieces[2::2] = [zeros[pad] for pad in (room - sizes).tolist()]
        data = b"".join([*pieces, zeros[HEADER]])
        self._data: Bytes = np.frombuffer(data, np.uint8, len(data) // 8 * 8)
        first, second = self._data[self._starts], self._data[self._starts + 1]
        plain = (sizes >= HEADER) & (first == 0) & (second <= 1)
        self.strange = np.flatnonzero(~plain)
        """Payloads that are no plain CDR."""
        self.by_order = [
            (">", np.flatnonzero(plain & (second == 0))),
            ("<", np.flatnonzero(plain & (second == 1))),
        ]
        self._order = "<"
        self._words = self._data.view("<u4")
        self._at = self._starts + HEADER
        self._items = np.zeros(len(payloads), np.int64)

    def read_all(self, plan: MessagePlan, who: Integers, order: str) -> pa.Array:
        """The values of these payloads, in this order of bytes."""
        self._order = order
        self._words = self._data.view(f"{order}u4")
        self._at = self._starts + HEADER
        self._items[:] = 0
        values = self._read(plan, who)
        self._demand(who, self._ends[who] - self._at[who] <= SLACK)
        return values

    def _demand(self, who: Integers, well: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        if not well.all():
            raise _LeftOut(who[~well])

    def _read(self, node: Node, who: Integers) -> pa.Array:
        if isinstance(node, MessagePlan):
            fields = [self._read(one, who) for one in node.nodes]
            named = [
                pa.field(name, field.type) for name, field in zip(node.names, fields, strict=True)
            ]
            return pa.StructArray.from_arrays(fields, fields=named)
        if isinstance(node, Scalar):
            starts = self._moved(who, node.size, np.int64(node.size))
            return self._numbers(node, starts // node.size)
        if isinstance(node, Text):
            return self._texts(who)
        if isinstance(node, Scalars):
            return self._arrays(node, who)
        return self._lists(node, who)

    def _moved(self, who: Integers, align: int, size: Integers | np.int64) -> Integers:
        """Where values of some size are, within bounds; the cursors stand after them."""
        starts = -(-self._at[who] // align) * align
        ends = starts + size
        self._demand(who, ends <= self._ends[who])
        self._at[who] = ends
        return starts

    def _counts(self, who: Integers, smallest: int) -> Integers:
        """Lengths that the payloads tell, of items that take this many bytes or more."""
        starts = self._moved(who, 4, np.int64(4))
        counts: Integers = self._words[starts >> 2].astype(np.int64)
        self._demand(who, counts * smallest <= self._ends[who] - self._at[who])
        return counts

    def _numbers(self, scalar: Scalar, places: Integers) -> pa.Array:
        """Numbers at places, which are counted in numbers."""
        code = scalar.code
        if code == "b1":
            return pa.array(self._data[places] != 0)
        typed = self._data.view(f"{self._order}{code}" if scalar.size > 1 else code)
        values = typed[places]
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        return pa.array(values).cast(SCALARS[code])

    def _texts(self, who: Integers) -> pa.Array:
        sizes = self._counts(who, 1)
        starts = self._moved(who, 1, sizes)
        ended = (sizes == 0) | (self._data[np.maximum(starts + sizes - 1, 0)] == 0)
        self._demand(who, ended)
        offsets, data = self._bytes(starts, np.maximum(sizes - 1, 0))
        texts = pa.StringArray.from_buffers(
            len(who), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))
        )
        if len(data) and data.max() >= 0x80:
            self._demand_unicode(who, texts)
        return texts

    def _demand_unicode(self, who: Integers, texts: pa.Array) -> None:
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            well = np.ones(len(who), np.bool_)
            for n, text in enumerate(texts.cast(pa.binary()).to_pylist()):
                try:
                    text.decode()
                except UnicodeDecodeError:
                    well[n] = False
            self._demand(who, well)

    def _bytes(
        self, starts: Integers, sizes: Integers
    ) -> tuple[np.ndarray[Any, np.dtype[np.int32]], Bytes]:
        """Pieces of bytes one after the other, and where each begins."""
        offsets = _offsets(sizes)
        total = int(offsets[-1])
        if total > LARGE * max(1, len(sizes)):
            pieces = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
            return offsets, np.concatenate([self._data[start:end] for start, end in pieces])
        return offsets, self._data[_places(starts, sizes, offsets)]

    def _arrays(self, node: Scalars, who: Integers) -> pa.Array:
        scalar = node.item
        counts = (
            self._counts(who, scalar.size)
            if node.count is None
            else np.full(len(who), node.count, np.int64)
        )
        # Of an array without items not even the alignment is there.
        some = np.flatnonzero(counts)
        starts = np.zeros(len(who), np.int64)
        starts[some] = self._moved(who[some], scalar.size, counts[some] * scalar.size)
        offsets, data = self._bytes(starts, counts * scalar.size)
        if scalar.code == "u1":
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
            return pa.BinaryArray.from_buffers(pa.binary(), len(who), buffers)
        if scalar.code == "b1":
            flat = pa.array(data != 0)
        else:
            values = data.view(f"{self._order}{scalar.code}" if scalar.size > 1 else scalar.code)
            if not values.dtype.isnative:
                values = values.astype(values.dtype.newbyteorder("="))
            flat = pa.array(values).cast(SCALARS[scalar.code])
        return pa.ListArray.from_arrays(pa.array(offsets // scalar.size), flat)

    def _lists(self, node: Items, who: Integers) -> pa.Array:
        counts = (
            self._counts(who, 1) if node.count is None else np.full(len(who), node.count, np.int64)
        )
        np.add.at(self._items, who, counts)
        self._demand(who, self._items[who] <= MOST_ITEMS)
        parts: list[pa.Array] = []
        owners: list[Integers] = []
        rest, item = np.flatnonzero(counts), 0
        while len(rest):
            if item and len(rest) < FEW:
                raise _LeftOut(who[rest])
            parts.append(self._read(node.item, who[rest]))
            owners.append(rest)
            item += 1
            rest = rest[counts[rest] > item]
        if not parts:
            inner = pa.array([], arrow_type(node.item))
        else:
            inner = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        if len(parts) > 1:
            # Item by item, all payloads each; a list wants payload by payload.
            back = np.argsort(np.concatenate(owners), kind="stable")
            inner = inner.take(pa.array(back))
        offsets = pa.array(_offsets(counts))
        if is_map(node):
            return pa.MapArray.from_arrays(offsets, inner.field(0), inner.field(1))
        return pa.ListArray.from_arrays(offsets, inner)


def _offsets(sizes: Integers) -> np.ndarray[Any, np.dtype[np.int32]]:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] >= 1 << 31:
        raise pa.ArrowInvalid(f"{offsets[-1]} bytes are too many for one array")
    return offsets.astype(np.int32)


def _places(
    starts: Integers, sizes: Integers, offsets: np.ndarray[Any, np.dtype[np.int32]]
) -> Integers:
    """The place of every byte of pieces: one after the other, and a jump to each next piece."""
    some = np.flatnonzero(sizes)
    steps = np.ones(int(offsets[-1]), np.int64)
    if len(some):
        begins = starts[some]
        steps[offsets[:-1][some]] = begins - np.concatenate(
            ([0], begins[:-1] + sizes[some][:-1] - 1)
        )
    return np.cumsum(steps, out=steps)
