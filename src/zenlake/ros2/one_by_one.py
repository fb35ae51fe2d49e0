"""CDR payloads of many different layouts: each is read by itself, value by value, into columns.

A plan becomes a list of steps, each of which reads some bytes and appends to columns of its own.
Numbers that follow each other, across the borders of nested messages, are one step. A payload
that is broken somewhere leaves nothing behind: all columns are cut back to where they were.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, Protocol, final

import numpy as np
import pyarrow as pa

from zenlake.errors import DecodeError
from zenlake.ros2.arrow_types import SCALARS, arrow_type, is_map
from zenlake.ros2.layout import HEADER, SLACK, Items, MessagePlan, Node, Scalar, Scalars, Text

__all__ = ["PayloadReader"]

_LETTERS: Final = {
    **{"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I"},
    **{"i8": "q", "u8": "Q", "f4": "f", "f8": "d"},
}

Made = Callable[[], pa.Array]


class ReadStep(Protocol):
    """Reads something from a payload."""

    def read(self, payload: bytes, at: int) -> int:
        """Read from an offset on; gives where it ended."""

    def cut(self, count: int) -> None:
        """Forget all that came after so many rows."""


@final
class PayloadReader:
    """Reads payloads of one type and one order of bytes, one after the other."""

    def __init__(self, plan: MessagePlan, order: str) -> None:
        """`order`: `<` or `>`."""
        self._steps: list[ReadStep] = []
        self._made = _compile(plan, order, self._steps)
        self._name = plan.type
        self._count = 0

    def add(self, payload: bytes) -> None:
        """Read one; `DecodeError` if that cannot be, and then it was as if it had not come."""
        try:
            at = HEADER
            for step in self._steps:
                at = step.read(payload, at)
            left = len(payload) - at
            if left > SLACK:
                raise DecodeError(f"{left} bytes are left over after {self._name}")
        except (DecodeError, struct.error, UnicodeDecodeError) as error:
            for step in self._steps:
                step.cut(self._count)
            if isinstance(error, DecodeError):
                raise
            if isinstance(error, UnicodeDecodeError):
                raise DecodeError(f"a string is not UTF-8: {error.reason}") from error
            raise DecodeError(f"{self._name} is longer than its {len(payload)} bytes") from error
        self._count += 1

    def array(self) -> pa.Array:
        """All that was read."""
        return self._made()


def _compile(node: Node, order: str, steps: list[ReadStep]) -> Made:
    """Append the steps that read a node; gives what makes its array when all are read."""
    if isinstance(node, MessagePlan):
        made = [_compile(inner, order, steps) for inner in node.nodes]
        fields = [
            pa.field(name, arrow_type(inner))
            for name, inner in zip(node.names, node.nodes, strict=True)
        ]
        return lambda: pa.StructArray.from_arrays([one() for one in made], fields=fields)
    if isinstance(node, Scalar):
        run = steps[-1] if steps else None
        if not isinstance(run, _Run):
            run = _Run(order)
            steps.append(run)
        values = run.add(node)
        return lambda: _scalars(values, node)
    if isinstance(node, Text):
        texts = _Texts(order)
        steps.append(texts)
        return lambda: pa.array(texts.values, pa.string())
    if isinstance(node, Scalars):
        arrays = _Arrays(node, order)
        steps.append(arrays)
        return arrays.array
    listed = _Lists(node, order)
    steps.append(listed)
    return listed.array


def _scalars(values: list[object], node: Scalar) -> pa.Array:
    if node.code == "u8":
        return pa.array(values, pa.uint64()).cast(SCALARS[node.code])
    return pa.array(values, SCALARS[node.code])


@final
class _Run:
    """Numbers that follow each other."""

    def __init__(self, order: str) -> None:
        self._order = order
        self._nodes: list[Scalar] = []
        self._columns: list[list[object]] = []
        self._forms: list[struct.Struct | None] = [None] * 8

    def add(self, node: Scalar) -> list[object]:
        values: list[object] = []
        self._nodes.append(node)
        self._columns.append(values)
        return values

    def read(self, payload: bytes, at: int) -> int:
        phase = (at - HEADER) & 7
        form = self._forms[phase]
        if form is None:
            form = self._forms[phase] = self._form(phase)
        for column, value in zip(self._columns, form.unpack_from(payload, at), strict=True):
            column.append(value)
        return at + form.size

    def _form(self, phase: int) -> struct.Struct:
        """How they lie from an offset with this rest modulo 8."""
        letters = self._order
        at = phase
        for node in self._nodes:
            letters += "x" * (-at % node.size) + _LETTERS[node.code]
            at += -at % node.size + node.size
        return struct.Struct(letters)

    def cut(self, count: int) -> None:
        for column in self._columns:
            del column[count:]


class _Counted:
    """Something with a length before it."""

    def __init__(self, order: str) -> None:
        self._word = struct.Struct(f"{order}I")

    def count(self, payload: bytes, at: int) -> tuple[int, int]:
        """The length at an offset, and where it ended."""
        at += (HEADER - at) & 3
        count = int(self._word.unpack_from(payload, at)[0])
        if count > len(payload) - at - 4:
            raise DecodeError(f"a length of {count} at offset {at} is beyond the payload")
        return count, at + 4


@final
class _Texts(_Counted):
    """Strings."""

    def __init__(self, order: str) -> None:
        super().__init__(order)
        self.values: list[str] = []

    def read(self, payload: bytes, at: int) -> int:
        size, at = self.count(payload, at)
        end = at + size
        if size and payload[end - 1]:
            raise DecodeError(f"the string at offset {at} does not end with NUL")
        self.values.append(payload[at : end - 1].decode() if size else "")
        return end

    def cut(self, count: int) -> None:
        del self.values[count:]


@final
class _Arrays(_Counted):
    """Arrays of numbers, kept as their bytes."""

    def __init__(self, node: Scalars, order: str) -> None:
        super().__init__(order)
        self._node = node
        self._order = order
        self._size = node.item.size
        self._pieces: list[bytes] = []

    def read(self, payload: bytes, at: int) -> int:
        count = self._node.count
        if count is None:
            count, at = self.count(payload, at)
        if count:
            at += (HEADER - at) % self._size
        end = at + count * self._size
        if end > len(payload):
            raise DecodeError(f"{end - len(payload)} bytes are missing at offset {at}")
        self._pieces.append(payload[at:end])
        return end

    def cut(self, count: int) -> None:
        del self._pieces[count:]

    def array(self) -> pa.Array:
        code = self._node.item.code
        if code == "u1":
            return pa.array(self._pieces, pa.binary())
        sizes = np.fromiter((len(one) for one in self._pieces), np.int64, len(self._pieces))
        offsets = np.concatenate(([0], np.cumsum(sizes))) // self._size
        data = np.frombuffer(b"".join(self._pieces), f"{self._order}{code}")
        if code == "b1":
            flat = pa.array(data.view(np.uint8) != 0)
        else:
            flat = pa.array(data.astype(data.dtype.newbyteorder("="))).cast(SCALARS[code])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


@final
class _Lists(_Counted):
    """Arrays of strings or messages."""

    def __init__(self, node: Items, order: str) -> None:
        super().__init__(order)
        self._node = node
        self._steps: list[ReadStep] = []
        self._made = _compile(node.item, order, self._steps)
        self._offsets = [0]

    def read(self, payload: bytes, at: int) -> int:
        count = self._node.count
        if count is None:
            count, at = self.count(payload, at)
        steps = self._steps
        for _ in range(count):
            for step in steps:
                at = step.read(payload, at)
        self._offsets.append(self._offsets[-1] + count)
        return at

    def cut(self, count: int) -> None:
        del self._offsets[count + 1 :]
        for step in self._steps:
            step.cut(self._offsets[-1])

    def array(self) -> pa.Array:
        inner = self._made()
        offsets = pa.array(self._offsets, pa.int32())
        if is_map(self._node):
            return pa.MapArray.from_arrays(offsets, inner.field(0), inner.field(1))
        return pa.ListArray.from_arrays(offsets, inner)
