"""What advanced publishers and subscribers accept as options."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

import zenlake
from zenlake import ext
from zenlake.ext.config import Miss
from zenlake.node.advanced import Missed
from zenlake.node.advanced_keys import SourceId


def test_a_cache_remembers_one_sample_unless_told_otherwise() -> None:
    assert ext.CacheConfig().max_samples == 1
    assert ext.CacheConfig(5).max_samples == 5
    assert ext.CacheConfig(max_samples=7).max_samples == 7


def test_replies_keep_what_was_chosen() -> None:
    replies = ext.RepliesConfig(priority=zenlake.Priority.DATA_LOW, express=True)
    assert ext.CacheConfig(replies_config=replies).replies_config == replies
    assert replies.priority is zenlake.Priority.DATA_LOW
    assert replies.congestion_control is None


def test_recovery_takes_a_period_or_heartbeats() -> None:
    assert ext.RecoveryConfig(heartbeat=True).heartbeat
    assert ext.RecoveryConfig(periodic_queries=2).period == 2.0
    assert ext.RecoveryConfig(periodic_queries=timedelta(seconds=1.5)).period == 1.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: ext.RecoveryConfig(),
        lambda: ext.RecoveryConfig(periodic_queries=1, heartbeat=True),
        lambda: ext.RecoveryConfig(heartbeat=False),  # type: ignore[arg-type]
        lambda: ext.RecoveryConfig(periodic_queries=1, heartbeat=False),  # type: ignore[arg-type]
        lambda: ext.RecoveryConfig(periodic_queries=-1),
        lambda: ext.MissDetectionConfig(heartbeat=-1),
        lambda: ext.MissDetectionConfig(heartbeat=float("inf")),
        lambda: ext.MissDetectionConfig(heartbeat=float("nan")),
        lambda: ext.HistoryConfig(max_age=-1),
    ],
)
def test_what_makes_no_sense_is_a_wrong_value(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"invalid parameters|negative timeout"):
        make()


def test_numbers_are_numbers() -> None:
    with pytest.raises(OverflowError, match="max_samples=-1"):
        ext.CacheConfig(-1)
    with pytest.raises(TypeError, match="number of samples"):
        ext.HistoryConfig(max_samples="3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="number of seconds"):
        ext.HistoryConfig(max_age="3")  # type: ignore[arg-type]


def test_they_can_be_read() -> None:
    assert repr(ext.HistoryConfig(max_samples=3)) == (
        "HistoryConfig(detect_late_publishers=False, max_samples=3, max_age=None)"
    )
    assert repr(ext.MissDetectionConfig(sporadic_heartbeat=2)) == (
        "MissDetectionConfig(sporadic_heartbeat=2.0)"
    )
    assert repr(ext.MissDetectionConfig(heartbeat=1)) == "MissDetectionConfig(heartbeat=1.0)"
    assert repr(ext.RecoveryConfig(heartbeat=True)) == "RecoveryConfig(heartbeat=True)"
    assert repr(ext.RecoveryConfig(periodic_queries=1)) == "RecoveryConfig(periodic_queries=1.0)"
    assert repr(ext.CacheConfig(2)).startswith("CacheConfig(2, replies_config=RepliesConfig(")


def test_misses_compare_by_source_and_number() -> None:
    one = Miss(Missed(SourceId(b"\x01", 2), 3))
    assert one == Miss(Missed(SourceId(b"\x01", 2), 3))
    assert hash(one) == hash(Miss(Missed(SourceId(b"\x01", 2), 3)))
    assert one != Miss(Missed(SourceId(b"\x01", 2), 4))
    assert (str(one.source.zid), one.source.eid, one.nb) == ("1", 2, 3)
