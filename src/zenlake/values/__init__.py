"""WHAT is carried: payloads, what they are, how they travel, and where nodes live.

What serializes values is fetched when it is used: most programs start without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.clock import NTP64, Timestamp, TimestampId, ZenohId
from zenlake.lazy import lazy_names
from zenlake.values.encoding import Encoding
from zenlake.values.hello import Hello
from zenlake.values.locator import EndPoint, Locator
from zenlake.values.qos import (
    DEFAULT_QOS,
    CongestionControl,
    Locality,
    Priority,
    QoS,
    Reliability,
    SampleKind,
)
from zenlake.values.query import ConsolidationMode, QueryTarget, ReplyKeyExpr
from zenlake.values.sample import EntityGlobalId, SourceInfo
from zenlake.values.timestamp_stack import (
    InterceptionPoint,
    TimestampContext,
    TimestampInstrumentation,
    TimestampInstrumentationBuilder,
    TimestampStack,
    TimestampStackRecord,
)
from zenlake.values.whatami import WhatAmI, WhatAmIMatcher
from zenlake.values.zbytes import IntoZBytes, ZBytes

if TYPE_CHECKING:
    from zenlake.values.serial import (
        UnsupportedTypeError,
        ZDeserializeError,
        z_deserialize,
        z_serialize,
    )
    from zenlake.values.sized import (
        Float32,
        Float64,
        Int8,
        Int16,
        Int32,
        Int64,
        Int128,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        UInt128,
    )

__all__ = [
    "DEFAULT_QOS",
    "NTP64",
    "CongestionControl",
    "ConsolidationMode",
    "Encoding",
    "EndPoint",
    "EntityGlobalId",
    "Float32",
    "Float64",
    "Hello",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "InterceptionPoint",
    "IntoZBytes",
    "Locality",
    "Locator",
    "Priority",
    "QoS",
    "QueryTarget",
    "Reliability",
    "ReplyKeyExpr",
    "SampleKind",
    "SourceInfo",
    "Timestamp",
    "TimestampContext",
    "TimestampId",
    "TimestampInstrumentation",
    "TimestampInstrumentationBuilder",
    "TimestampStack",
    "TimestampStackRecord",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "UnsupportedTypeError",
    "WhatAmI",
    "WhatAmIMatcher",
    "ZBytes",
    "ZDeserializeError",
    "ZenohId",
    "z_deserialize",
    "z_serialize",
]

_SERIAL = ("UnsupportedTypeError", "ZDeserializeError", "z_deserialize", "z_serialize")
_SIZED = (
    "Float32", "Float64", "Int8", "Int16", "Int32", "Int64", "Int128",
    "UInt8", "UInt16", "UInt32", "UInt64", "UInt128",
)  # fmt: skip
__getattr__ = lazy_names(
    __name__, dict.fromkeys(_SERIAL, "serial") | dict.fromkeys(_SIZED, "sized")
)


def __dir__() -> list[str]:
    """Return all names of the module, imported or not."""
    return sorted({*globals(), *__all__})
