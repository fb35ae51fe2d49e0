"""Which Arrow type each type of ROS becomes.

messages           structs; an array of `diagnostic_msgs/KeyValue` is a map
arrays             lists; those of bytes are binary
unsigned integers  the next wider signed type, for tables know no others; 64 bits a decimal
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from zenlake.ros2.layout import Items, MessagePlan, Node, Scalar, Scalars, Text

__all__ = ["SCALARS", "arrow_type", "is_map"]

KEY_VALUE: Final = "diagnostic_msgs/msg/KeyValue"

SCALARS: Final = {
    "b1": pa.bool_(),
    "i1": pa.int8(),
    "u1": pa.int16(),
    "i2": pa.int16(),
    "u2": pa.int32(),
    "i4": pa.int32(),
    "u4": pa.int64(),
    "i8": pa.int64(),
    "u8": pa.decimal128(20, 0),
    "f4": pa.float32(),
    "f8": pa.float64(),
}
"""The types of numbers and truth values, by numpy's codes."""


def arrow_type(node: Node) -> pa.DataType:
    """The Arrow type of what a plan describes."""
    if isinstance(node, Scalar):
        return SCALARS[node.code]
    if isinstance(node, Text):
        return pa.string()
    if isinstance(node, Scalars):
        return pa.binary() if node.item.code == "u1" else pa.list_(SCALARS[node.item.code])
    if isinstance(node, Items):
        if is_map(node):
            return pa.map_(pa.string(), pa.string())
        return pa.list_(arrow_type(node.item))
    return pa.struct(
        [(name, arrow_type(inner)) for name, inner in zip(node.names, node.nodes, strict=True)]
    )


def is_map(node: Items) -> bool:
    """Whether an array is one of names and values."""
    return isinstance(node.item, MessagePlan) and node.item.type == KEY_VALUE
