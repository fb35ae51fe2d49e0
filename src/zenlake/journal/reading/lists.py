"""Columns as lists of Python's values, without an object for each value on the way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.recorded.columns import coded

__all__ = ["holds_of_each", "list_of_bytes", "list_of_each"]

R = TypeVar("R")


def list_of_each(column: pa.ChunkedArray, function: Callable[[Any], R]) -> list[R]:
    """A function of each value of a column with few different ones, asked once for each of them."""
    codes = coded(column)
    known = [function(value) for value in codes.dictionary.to_pylist()]
    if len(known) == 1 and not codes.null_count:
        return known * len(codes)
    known.append(function(None))
    places: list[int] = pc.fill_null(codes.indices, len(known) - 1).to_numpy().tolist()
    return [known[place] for place in places]


def holds_of_each(
    column: pa.ChunkedArray, condition: Callable[[Any], bool]
) -> npt.NDArray[np.bool_]:
    """Whether a condition holds of each value, asked once for each different one; none is null."""
    codes = coded(column)
    holds = np.array([condition(value) for value in codes.dictionary.to_pylist()], np.bool_)
    if holds.all():
        return np.ones(len(codes), np.bool_)
    found: npt.NDArray[np.bool_] = holds[codes.indices.to_numpy(zero_copy_only=False)]
    return found


def list_of_bytes(column: pa.ChunkedArray) -> list[bytes]:
    """The values of a column of bytes, cut out of its buffer; what is null is empty."""
    collected: list[bytes] = []
    for chunk in column.chunks:
        if not len(chunk) or chunk.null_count == len(chunk):
            collected += [b""] * len(chunk)
            continue
        _, places, data = chunk.buffers()
        ends = np.frombuffer(places, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        held = data.slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()
        cuts = (ends - ends[0]).tolist()
        values = [held[start:end] for start, end in pairwise(cuts)]
        if chunk.null_count:
            valid = chunk.is_valid().to_pylist()
            values = [
                value if is_there else b"" for value, is_there in zip(values, valid, strict=True)
            ]
        collected += values
    return collected
