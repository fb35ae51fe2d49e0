from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from zenlake.lake.maintain.status_file import STATUS, read_status, write_status
from zenlake.lake.model.status import LakeStatus


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


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"tables": 5}'])
def test_damage_is_no_status(tmp_path: Path, damage: str) -> None:
    (tmp_path / STATUS).write_text(damage)
    assert read_status(tmp_path) is None


def test_reading_a_status_needs_nothing_of_the_extra() -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, zenlake.lake.maintain.status_file\n"
            "print({'pyspark', 'pyarrow', 'deltalake', 'numpy'} & sys.modules.keys())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "set()\n"
