"""WHAT is carried: payloads, what they are, how they travel, and where nodes live."""

from __future__ import annotations

from zenlake.clock import NTP64, Timestamp, TimestampId, ZenohId
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
