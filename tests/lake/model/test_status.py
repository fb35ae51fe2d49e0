from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.model.status import (
    BusStatus,
    ExpectationStatus,
    FlowStatus,
    LakeStatus,
    SourceProgress,
    TableStatus,
)

flows = st.builds(
    FlowStatus,
    name=st.text(max_size=5),
    rows=st.integers(0, 1 << 40),
    expectations=st.lists(
        st.builds(ExpectationStatus, name=st.text(max_size=5), failed=st.integers(0, 9)), max_size=2
    ).map(tuple),
)

offsets = st.lists(st.integers(0, 1 << 60), max_size=2).map(tuple)
steps = st.builds(
    SourceProgress,
    description=st.text(max_size=5),
    start_offset=offsets,
    end_offset=offsets,
    latest_offset=offsets,
    num_input_rows=st.integers(0, 1 << 40),
    input_rows_per_second=st.floats(0, 1e10),
    processed_rows_per_second=st.floats(0, 1e10),
    trigger_execution_ms=st.integers(0, 1 << 40),
)
statuses = st.builds(
    LakeStatus,
    written=st.floats(0, 1e10),
    rows=st.integers(0, 1 << 40),
    error=st.none() | st.text(max_size=5),
    problems=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    stopped_queries=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
    flows=st.lists(flows, max_size=2).map(tuple),
    tables=st.lists(st.builds(TableStatus, name=st.text(max_size=5)), max_size=2).map(tuple),
    committed=st.dictionaries(st.text(max_size=5), offsets, max_size=2),
    progress=st.lists(steps, max_size=2).map(tuple),
)


@given(statuses)
def test_what_is_written_is_read(status: LakeStatus) -> None:
    assert LakeStatus.of(status.plain()) == status


def test_facts_of_another_release_are_left_out() -> None:
    plain = LakeStatus(tables=(TableStatus("a"),)).plain()
    plain["tables"][0]["mood"] = plain["weather"] = "fine"
    assert LakeStatus.of(plain) == LakeStatus(tables=(TableStatus("a"),))
    flow = FlowStatus("p", "f", expectations=(ExpectationStatus("e", "drop"),))
    plain = LakeStatus(flows=(flow,)).plain()
    plain["flows"][0]["mood"] = plain["flows"][0]["expectations"][0]["mood"] = "fine"
    assert LakeStatus.of(plain).flows == (flow,)
    refused = LakeStatus(bus=BusStatus(since=5.0, reason="refused"))
    assert LakeStatus.of(refused.plain()) == refused


def test_a_status_says_whether_a_pipeline_is_at_work() -> None:
    assert LakeStatus(written=100.0).fresh(101.0)
    assert not LakeStatus(written=100.0).fresh(200.0)
    assert not LakeStatus(written=100.0, state="stopped").fresh(101.0)
