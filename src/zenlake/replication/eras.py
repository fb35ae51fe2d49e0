"""The time of a replicated storage: intervals, their parts, and how long ago is hot, warm, cold.

    ──────── cold ────────┬── warm intervals ──┬── hot intervals ──┤ now
       one fingerprint        one for each         one for each part

The numbers are the same for all replicas: a fingerprint of them, and of what is stored, is in the
keys that replicas speak on, so that storages which differ never hear of each other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

__all__ = ["Eras", "milliseconds"]

NANOS: Final = 1_000_000_000


def milliseconds(time: int) -> int:
    """The milliseconds since 1970 of an NTP64, rounded as Eclipse's clock does."""
    nanos = -(-((time & 0xFFFFFFFF) * NANOS) >> 32)
    return (time >> 32) * 1000 + nanos // 1_000_000


class Eras(NamedTuple):
    """What replicas agree on; durations are milliseconds."""

    key_expr: str
    prefix: str | None
    interval: int
    sub_intervals: int
    hot: int
    warm: int
    propagation_delay: int

    @property
    def fingerprint(self) -> int:
        """What storages that replicate each other have in common."""
        return xxh3_64_intdigest(
            self.key_expr.encode()
            + (self.prefix or "").encode()
            + self.interval.to_bytes(16, "little")
            + self.sub_intervals.to_bytes(8, "little")
            + self.hot.to_bytes(8, "little")
            + self.warm.to_bytes(8, "little")
            + self.propagation_delay.to_bytes(16, "little")
        )

    def place(self, time: int) -> tuple[int, int]:
        """The interval of an NTP64, and the part of it."""
        interval, rest = divmod(milliseconds(time), self.interval)
        return interval, rest // (self.interval // self.sub_intervals)

    def current(self, now: int) -> int:
        """The interval of a moment in milliseconds since 1970."""
        return now // self.interval

    def hot_from(self, current: int) -> int:
        """The first interval that is compared by its parts."""
        return max(0, current - self.hot + 1)

    def warm_from(self, current: int) -> int:
        """The first interval that is compared on its own; those before are cold."""
        return max(0, current - self.hot - self.warm + 1)

    @property
    def parts(self) -> int:
        """How many parts an interval can have: one more than configured if it does not divide."""
        return (self.interval - 1) // (self.interval // self.sub_intervals) + 1
