"""What advanced publishers and subscribers are asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, final

from zenlake.clock import ZenohId
from zenlake.node.advanced import HistoryRequest, Missed
from zenlake.values import CongestionControl, EntityGlobalId, Priority

__all__ = [
    "CacheConfig",
    "HistoryConfig",
    "Miss",
    "MissDetectionConfig",
    "RecoveryConfig",
    "RepliesConfig",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RepliesConfig:
    """How the replies from a publisher's past travel.

    Replies travel as urgently as the query did: what is chosen here is kept, and shown, but
    changes nothing on the way.
    """

    congestion_control: CongestionControl | None = None
    priority: Priority | None = None
    express: bool | None = None


@final
class CacheConfig:
    """How much of its past a publisher keeps for subscribers that come late or miss something."""

    __slots__ = ("max_samples", "replies_config")

    def __init__(
        self, max_samples: int | None = None, *, replies_config: RepliesConfig | None = None
    ) -> None:
        """Remember the newest `max_samples`: one, unless you say otherwise."""
        self.max_samples: int = 1 if max_samples is None else counted("max_samples", max_samples)
        self.replies_config: RepliesConfig = replies_config or RepliesConfig()

    def __repr__(self) -> str:
        """How to write it."""
        return f"CacheConfig({self.max_samples}, replies_config={self.replies_config!r})"


@final
class HistoryConfig:
    """How much of the past a subscriber asks for when it starts."""

    __slots__ = ("detect_late_publishers", "history")

    def __init__(
        self,
        *,
        detect_late_publishers: bool | None = None,
        max_samples: int | None = None,
        max_age: float | None = None,
    ) -> None:
        """At most `max_samples` of each publisher, none older than `max_age` seconds.

        With `detect_late_publishers` publishers that come later are asked too; they must let
        themselves be detected.
        """
        self.detect_late_publishers: bool = bool(detect_late_publishers)
        self.history: HistoryRequest = HistoryRequest(
            None if max_samples is None else counted("max_samples", max_samples),
            None if max_age is None else lasting("max_age", max_age),
        )

    def __repr__(self) -> str:
        """How to write it."""
        return (
            f"HistoryConfig(detect_late_publishers={self.detect_late_publishers}, "
            f"max_samples={self.history.max_samples}, max_age={self.history.max_age})"
        )


@final
class MissDetectionConfig:
    """How a publisher helps its subscribers to see that they missed something.

    It numbers its samples, so that a later one tells of a gap. A heartbeat tells of a gap at the
    end: every so many seconds, or (`sporadic_heartbeat`) only if something was published.
    """

    __slots__ = ("period", "sporadic")

    def __init__(
        self, *, heartbeat: float | None = None, sporadic_heartbeat: float | None = None
    ) -> None:
        """Periods in seconds; where both are given the sporadic one counts."""
        self.sporadic: bool = sporadic_heartbeat is not None
        period = heartbeat if sporadic_heartbeat is None else sporadic_heartbeat
        self.period: float | None = None if period is None else lasting("heartbeat", period)

    def __repr__(self) -> str:
        """How to write it."""
        name = "sporadic_heartbeat" if self.sporadic else "heartbeat"
        return f"MissDetectionConfig({name}={self.period})"


@final
class RecoveryConfig:
    """How a subscriber gets what it missed: the publisher must have a cache.

    A gap is seen when a later sample comes. The last samples of all have none behind them: they
    are found by heartbeats of the publisher, or by asking it every so often.
    """

    __slots__ = ("heartbeat", "period")

    def __init__(
        self,
        *,
        periodic_queries: float | timedelta | None = None,
        heartbeat: Literal[True] | None = None,
    ) -> None:
        """Either a period, in seconds or as a `timedelta`, or `heartbeat=True`."""
        if (periodic_queries is None) == (heartbeat is not True):
            raise ValueError(
                "invalid parameters: give RecoveryConfig(heartbeat=True), for publishers that "
                "beat, or RecoveryConfig(periodic_queries=seconds); one of both"
            )
        if periodic_queries is not None and heartbeat is not None:
            raise ValueError("invalid parameters: with periodic_queries, leave heartbeat out")
        self.heartbeat: bool = heartbeat is True
        self.period: float | None = None
        if periodic_queries is not None:
            if isinstance(periodic_queries, timedelta):
                periodic_queries = periodic_queries.total_seconds()
            self.period = lasting("periodic_queries", periodic_queries)

    def __repr__(self) -> str:
        """How to write it."""
        if self.heartbeat:
            return "RecoveryConfig(heartbeat=True)"
        return f"RecoveryConfig(periodic_queries={self.period})"


@final
class Miss:
    """Samples that a subscriber will never get."""

    __slots__ = ("_nb", "_source")

    def __init__(self, missed: Missed) -> None:
        """Made by the subscriber that misses them."""
        self._source: EntityGlobalId = EntityGlobalId(ZenohId(missed.source.zid), missed.source.eid)
        self._nb: int = missed.nb

    @property
    def source(self) -> EntityGlobalId:
        """Whose samples they were."""
        return self._source

    @property
    def nb(self) -> int:
        """How many they were."""
        return self._nb

    def __eq__(self, other: object) -> bool:
        """Equal if as many of the same source."""
        return isinstance(other, Miss) and (self._source, self._nb) == (other._source, other._nb)

    def __hash__(self) -> int:
        """Equal ones have equal hashes."""
        return hash((self._source, self._nb))

    def __repr__(self) -> str:
        """How many of whom."""
        return f"<Miss {self._nb} of {self._source}>"


def counted(name: str, value: int) -> int:
    """A number of samples that makes sense."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a number of samples, not {type(value).__name__}")
    if value < 0:
        raise OverflowError(f"{name}={value}: there are no fewer than no samples")
    return value


def lasting(name: str, value: float) -> float:
    """A number of seconds that makes sense."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a number of seconds, not {type(value).__name__}")
    if not value >= 0 or value == float("inf"):
        raise ValueError(f"negative timeout: {name}={value}; give seconds, 0 or more")
    return float(value)
