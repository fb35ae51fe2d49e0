"""Beyond the core: values as bytes that any Zenoh language reads, and publishers and subscribers
that lose nothing.

    from zenlake import ext

    with ext.declare_advanced_publisher(
        session, "demo/temperature",
        cache=ext.CacheConfig(max_samples=10),
        sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.5),
    ) as publisher:
        publisher.put(ext.z_serialize(21.5))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.lazy import lazy_names
from zenlake.values import (
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
    ZDeserializeError,
    z_deserialize,
    z_serialize,
)

if TYPE_CHECKING:
    from zenlake.ext.config import (
        CacheConfig,
        HistoryConfig,
        Miss,
        MissDetectionConfig,
        RecoveryConfig,
        RepliesConfig,
    )
    from zenlake.ext.publisher import AdvancedPublisher, declare_advanced_publisher
    from zenlake.ext.subscriber import (
        AdvancedSubscriber,
        SampleMissListener,
        declare_advanced_subscriber,
    )

__all__ = [
    "AdvancedPublisher",
    "AdvancedSubscriber",
    "CacheConfig",
    "Float32",
    "Float64",
    "HistoryConfig",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "Miss",
    "MissDetectionConfig",
    "RecoveryConfig",
    "RepliesConfig",
    "SampleMissListener",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "ZDeserializeError",
    "declare_advanced_publisher",
    "declare_advanced_subscriber",
    "z_deserialize",
    "z_serialize",
]

# Imported when they are asked for: most programs that answer queries publish nothing with these.
__getattr__ = lazy_names(
    __name__,
    {
        "AdvancedPublisher": "publisher",
        "AdvancedSubscriber": "subscriber",
        "CacheConfig": "config",
        "HistoryConfig": "config",
        "Miss": "config",
        "MissDetectionConfig": "config",
        "RecoveryConfig": "config",
        "RepliesConfig": "config",
        "SampleMissListener": "subscriber",
        "declare_advanced_publisher": "publisher",
        "declare_advanced_subscriber": "subscriber",
    },
)
