"""WHEN: times, the ids of the nodes that tell them, and the clock that keeps a network in order."""

from __future__ import annotations

from zenlake.clock.hlc import MAX_AHEAD_NS, Hlc
from zenlake.clock.ntp64 import NTP64, SECONDS_1900_TO_1970
from zenlake.clock.timestamp import Timestamp
from zenlake.clock.zid import TimestampId, ZenohId

__all__ = [
    "MAX_AHEAD_NS",
    "NTP64",
    "SECONDS_1900_TO_1970",
    "Hlc",
    "Timestamp",
    "TimestampId",
    "ZenohId",
]
