from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.model.status import (
    STATUS,
    BusStatus,
    LakeStatus,
    TableStatus,
    read_status,
    write_status,
)

statuses = st.builds(
    LakeStatus,
    written=st.floats(0, 1e10),
    rows=st.integers(0, 1 << 40),
    error=st.none() | st.text(max_size=5),
    problems=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    tables=st.lists(st.builds(TableStatus, name=st.text(max_size=5)), max_size=2).map(tuple),
    committed=st.dictionaries(
        st.text(max_size=5), st.lists(st.integers(0, 1 << 60), max_size=2).map(tuple), max_size=2
    ),
)


@given(statuses)
def test_what_is_written_is_read(status: LakeStatus) -> None:
    assert LakeStatus.of(status.plain()) == status


def test_a_status_replaces_the_one_before_and_tells_a_journal_what_it_may_drop(
    tmp_path: Path,
) -> None:
    assert read_status(tmp_path) is None
    for rows in (1, 2):
        write_status(tmp_path, LakeStatus(rows=rows, committed={"j": (5, rows)}))
    found = read_status(tmp_path)
    assert found is not None
    assert found.rows == 2
    assert found.committed == {"j": (5, 2)}
    assert [path.name for path in tmp_path.iterdir()] == [STATUS]


def test_facts_of_another_release_are_left_out_and_damage_is_no_status(tmp_path: Path) -> None:
    plain = LakeStatus(tables=(TableStatus("a"),)).plain()
    plain["tables"][0]["mood"] = plain["weather"] = "fine"
    assert LakeStatus.of(plain) == LakeStatus(tables=(TableStatus("a"),))
    refused = LakeStatus(bus=BusStatus(since=5.0, reason="refused"))
    assert LakeStatus.of(refused.plain()) == refused
    for damage in ("", "{", "[]", '{"tables": 5}'):
        (tmp_path / STATUS).write_text(damage)
        assert read_status(tmp_path) is None


def test_a_status_says_whether_a_pipeline_is_at_work() -> None:
    assert LakeStatus(written=100.0).fresh(101.0)
    assert not LakeStatus(written=100.0).fresh(200.0)
    assert not LakeStatus(written=100.0, state="stopped").fresh(101.0)


def test_reading_a_status_needs_nothing_of_the_extra() -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, zenlake.lake.model.status\n"
            "print({'pyspark', 'pyarrow', 'deltalake', 'numpy'} & sys.modules.keys())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "set()\n"
