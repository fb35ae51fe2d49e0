"""What publishers said before anybody recorded is asked for, and is in the journal once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zenoh
import zenoh.ext
from hypothesis import given
from hypothesis import strategies as st

import zenlake
from tests.api.sessions import listening, where
from tests.journal.recording import recording, until_rows
from tests.waiting import until
from zenlake.journal import Journal
from zenlake.journal.ledger import past
from zenlake.journal.ledger.heal import GapQuery
from zenlake.journal.ledger.past import PastPlan, clusters
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.journal.schema import HEALED
from zenlake.journal.verify import verify

ZID = "ab" * 16
TOKEN = f"0/tf_static/@adv/pub/{ZID}/uhlc/_"


def test_a_publisher_is_asked_at_once_and_a_few_times_more_in_vain() -> None:
    plan = PastPlan()
    plan.came(TOKEN, 10.0)
    plan.came(TOKEN, 11.0)
    asked = []
    while (first := plan.next()) is not None:
        asked.append(first[1])
        plan.failed(TOKEN, first[1])
    assert asked == [10.0, 11.0, 16.0]
    assert (len(plan), plan.abandoned) == (0, 1)


def test_a_publisher_that_answered_or_went_is_not_asked_again() -> None:
    plan = PastPlan()
    plan.came(TOKEN, 0.0)
    plan.answered(TOKEN)
    assert plan.next() is None
    plan.came(TOKEN, 1.0)
    plan.went(TOKEN)
    plan.failed(TOKEN, 2.0)
    assert plan.next() is None
    plan.came("0/tf/@adv/sub/ab/1/_", 3.0)
    plan.came("0/tf/@adv/pub/never/1/_", 3.0)
    assert (len(plan), plan.abandoned) == (0, 0)


def test_there_is_a_bound_on_publishers_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MOST_WAITING", 2)
    plan = PastPlan()
    for number in range(5):
        plan.came(f"k/@adv/pub/{ZID}/{number}/_", 0.0)
    assert (len(plan), plan.refused) == (2, 3)


@given(st.lists(st.integers(0, 50_000_000)))
def test_ranges_have_all_times_and_no_long_stretch_without_one(times: list[int]) -> None:
    ranges = clusters(times)
    assert all(sum(start <= time < end for start, end in ranges) == 1 for time in times)
    for start, end in ranges:
        inside = sorted(time for time in times if start <= time < end)
        assert (inside[0], inside[-1] + 1) == (start, end)
        assert all(b - a <= past.NEAR for a, b in pairwise(inside))


def values(path: Path) -> list[tuple[str, str]]:
    """Keys and payloads of a journal, in order of time."""
    found = [row for batch in Journal.open(path).scan() for row in batch.to_pylist()]
    return [
        (row["key"], row["value"].decode()) for row in sorted(found, key=lambda row: row["hlc"])
    ]


def asked(recorder: Recorder) -> bool:
    """Whether no publisher waits to be asked."""
    counts = recorder.stats()["past"]
    assert isinstance(counts, dict)
    return bool(counts["waiting"] == 0)


def test_what_a_healed_gap_brought_while_the_past_was_looked_up_is_not_written_again(
    tmp_path: Path,
) -> None:
    """A publisher that comes back is asked for its past and for its gap at the same time."""
    with recording(tmp_path) as (recorder, other), listening() as apart:
        kept: list[zenlake.Sample] = []
        apart.declare_subscriber("r/n", kept.append)
        for number in (1, 2):
            apart.put("r/n", str(number), source_info=zenlake.SourceInfo(other.id, number))
        until(lambda: len(kept) == 2)
        for number in (0, 3):
            other.put("r/n", str(number), source_info=zenlake.SourceInfo(other.id, number))
        until_rows(recorder, 2)
        (gap,) = recorder._ledger.open_gaps()
        query = GapQuery(due=0.0, partition=gap.partition, source=gap.source, key=gap.key)

        def heal_meanwhile(batch: Any, partition: int) -> Any:
            recorder._intake.healed(query, kept)
            return batch

        assert recorder._intake.past(kept, heal_meanwhile) == 0
        until_rows(recorder, 4)
    assert sorted(value for _, value in values(tmp_path)) == ["0", "1", "2", "3"]
    assert verify(Journal.open(tmp_path)).ledger == "agrees"


@pytest.mark.interop
def test_what_eclipse_keeps_for_late_subscribers_is_recorded_once(tmp_path: Path) -> None:
    """As rmw_zenoh publishes `transient_local`: stamped, or stamped and numbered."""
    with listening() as session:
        settings = zenoh.Config()
        settings.insert_json5("mode", '"client"')
        settings.insert_json5("connect/endpoints", f'["{where(session)}"]')
        settings.insert_json5("scouting/multicast/enabled", "false")
        settings.insert_json5("timestamping/enabled", "true")
        numbered: dict[str, Any] = {"sporadic_heartbeat": 500.0}
        with zenoh.open(settings) as one, zenoh.open(settings) as two:

            def latched(robot: Any, key: str, **more: Any) -> Any:
                return zenoh.ext.declare_advanced_publisher(
                    robot, key, cache=zenoh.ext.CacheConfig(5), publisher_detection=True, **more
                )

            first = latched(one, "0/tf_static")
            second = latched(two, "0/tf_static")
            detected = zenoh.ext.MissDetectionConfig(**numbered)
            third = latched(two, "0/map", sample_miss_detection=detected)
            publishers = {"a": first, "b": second, "m": third}

            def say(number: int) -> None:
                for name, publisher in publishers.items():
                    publisher.put(f"{name}{number}")

            def recorded(count: int) -> None:
                options = Options(("0/**",), str(tmp_path), name="j", fsync="never")
                with Recorder(session, options) as recorder:
                    until(lambda: recorder.watermark().offsets[0] >= count, "it is recorded")
                    say(count)
                    until(
                        lambda: recorder.watermark().offsets[0] >= count + 3 and asked(recorder),
                        "it is recorded, and all were asked",
                    )

            def passed_by() -> None:
                # Answered behind what was said: nobody hears that any more.
                for robot in (one, two):
                    assert list(robot.get("0/nothing/there")) == []

            say(0)
            say(1)
            passed_by()
            recorded(6)
            say(10)
            passed_by()
            recorded(12)
    said = [(name, number) for number in (0, 1, 6, 10, 12) for name in "abm"]
    assert sorted(values(tmp_path)) == sorted(
        ("0/map" if name == "m" else "0/tf_static", f"{name}{number}") for name, number in said
    )
    origins = [
        origin for batch in Journal.open(tmp_path).scan() for origin in batch["origin"].to_pylist()
    ]
    assert origins.count(HEALED) == 9
    verdict = verify(Journal.open(tmp_path))
    assert (verdict.problems, verdict.ledger) == ([], "agrees")
