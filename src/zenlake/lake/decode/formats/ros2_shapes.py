"""Messages of ROS 2 in the form that questions are asked in.

header               stamp (a time), stamp_ns (exact), frame_id
tf2_msgs/TFMessage   a row for each transform: parent, child, x y z, qx qy qz qw
PointCloud2          points (how many), and the box that they lie in: min_x … max_z
other fields         as they are
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal.schema import INSTANT

__all__ = ["shaped"]

TF: Final = "tf2_msgs/msg/TFMessage"
POINTS: Final = "sensor_msgs/msg/PointCloud2"
_STAMP: Final = pa.struct([("sec", pa.int32()), ("nanosec", pa.int64())])
_FLOAT32: Final = 7
"""The number of 32-bit floats in `sensor_msgs/PointField`."""

RowPositions = np.ndarray[Any, np.dtype[np.int64]]


def shaped(type: str, values: pa.StructArray) -> tuple[dict[str, pa.Array], RowPositions | None]:
    """The columns of messages; where they are not a row each, which message each row is of."""
    if type == TF:
        return _transforms(values)
    columns: dict[str, pa.Array] = {}
    for field in values.type:
        column = values.field(field.name)
        if field.name == "header" and _is_header(field.type):
            columns |= _header(column)
        elif field.type == _STAMP:
            columns |= _time(field.name, column)
        else:
            columns[field.name] = column
    if type == POINTS:
        columns |= _box(values)
    return columns, None


def _is_header(type: pa.DataType) -> bool:
    return pa.types.is_struct(type) and [field.name for field in type] == ["stamp", "frame_id"]


def _header(header: pa.StructArray) -> dict[str, pa.Array]:
    return {**_time("stamp", header.field("stamp")), "frame_id": header.field("frame_id")}


def _time(name: str, stamp: pa.StructArray) -> dict[str, pa.Array]:
    """A time as tables know it, which ends at microseconds, and the whole of it."""
    seconds = pc.multiply(stamp.field("sec").cast(pa.int64()), 1_000_000_000)
    exact = pc.add(seconds, stamp.field("nanosec"))
    # Down, also before 1970, as clocks count.
    micros = pc.floor_temporal(exact.cast(pa.timestamp("ns", "UTC")), unit="microsecond")
    return {name: micros.cast(INSTANT), f"{name}_ns": exact}


def _transforms(values: pa.StructArray) -> tuple[dict[str, pa.Array], RowPositions]:
    listed = values.field("transforms")
    rows = np.asarray(pc.list_parent_indices(listed).to_numpy(), np.int64)
    each = listed.flatten()
    header, moved = each.field("header"), each.field("transform")
    columns = _header(header)
    columns["parent"] = columns.pop("frame_id")
    columns["child"] = each.field("child_frame_id")
    for axis in "xyz":
        columns[axis] = moved.field("translation").field(axis)
    for axis in "xyzw":
        columns[f"q{axis}"] = moved.field("rotation").field(axis)
    return columns, rows


def _box(values: pa.StructArray) -> dict[str, pa.Array]:
    """How many points each cloud has, and the box around those that are finite."""
    bounds: dict[str, list[float | None]] = {f"{e}_{a}": [] for a in "xyz" for e in ("min", "max")}
    counts: list[int] = []
    for one in zip(
        *(
            values.field(name).to_pylist()
            for name in ("width", "height", "point_step", "row_step", "is_bigendian", "fields")
        ),
        values.field("data"),
        strict=True,
    ):
        width, height, step, row, big, fields, data = one
        counts.append(width * height)
        offsets = {f["name"]: f["offset"] for f in fields if f["datatype"] == _FLOAT32}
        data = data.as_buffer()
        for axis in "xyz":
            coordinates = _axis(data, width, height, step, row, big, offsets.get(axis))
            bounds[f"min_{axis}"].append(None if coordinates is None else float(coordinates.min()))
            bounds[f"max_{axis}"].append(None if coordinates is None else float(coordinates.max()))
    return {
        "points": pa.array(counts, pa.int64()),
        **{name: pa.array(limits, pa.float64()) for name, limits in bounds.items()},
    }


def _axis(
    data: Any, width: int, height: int, step: int, row: int, big: bool, offset: int | None
) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """One coordinate of all points; None where the cloud does not say where they are."""
    if offset is None or not width or not height or offset + 4 > step or row < width * step:
        return None
    if (height - 1) * row + width * step > len(data):
        return None
    coordinates = np.ndarray((height, width), ">f4" if big else "<f4", data, offset, (row, step))
    finite = coordinates[np.isfinite(coordinates)]
    return finite if len(finite) else None
