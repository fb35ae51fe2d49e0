"""Which rows a commit put into a table that were not there before."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.pipelines import changed_rows
from zenlake.lake.pipelines.changed_rows import commit_of, part_rows
from zenlake.lake.spark_source.tasks import TableColumns, table_schema
from zenlake.lake.table.data_files import DataFile, write_file
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
Row = tuple[int, str | None, list[str] | None]


def files(table: Table, rows: Sequence[Row], count: int = 1) -> list[DataFile]:
    if not rows:
        return []
    each = -(-len(rows) // count)
    return [
        write_file(
            table.place,
            pa.Table.from_pylist(
                [dict(zip(COLUMNS.names, row, strict=True)) for row in rows[at : at + each]],
                COLUMNS,
            ),
            {},
            uuid.uuid4().hex,
        )
        for at in range(0, len(rows), each)
    ]


def came(table: Table, spread_by: str | None = "id") -> Counter[str]:
    """The rows that the newest commit brought."""
    table.refresh()
    actions = table.commit_actions(table.version)
    assert actions is not None
    commit = commit_of(actions)
    columns = TableColumns(table_schema(table, ()))
    found: list[dict[str, Any]] = []
    for part in range(commit.parts):
        for rows in part_rows(table.place.uri, columns, commit, part, spread_by):
            found += rows.to_pylist()
    return Counter(repr(tuple(row.values())) for row in found)


def made(folder: Path) -> Table:
    return Table.create(LakeLocation(folder), uuid.uuid4().hex, COLUMNS, ())


ROWS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([["x"], [], None]),
    ),
    max_size=8,
)


@given(before=ROWS, after=ROWS)
def test_the_rows_that_came_are_those_that_are_there_more_often(
    tmp_path_factory: pytest.TempPathFactory, before: list[Row], after: list[Row]
) -> None:
    table = made(tmp_path_factory.mktemp("lake"))
    table.append(files(table, before, 2), {})
    assert came(table) == Counter(map(repr, before))
    table.rewrite(files(table, after, 2), table.files(), True)
    assert came(table) == Counter(map(repr, after)) - Counter(map(repr, before))


def test_a_large_commit_is_compared_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    old: list[Row] = [(n, f"robot {n % 7}", None) for n in range(500)]
    new: list[Row] = [(n, f"robot {n % 5}", None) for n in range(100, 600)]
    table.append(files(table, old, 3), {})
    table.rewrite(files(table, new, 3), table.files(), True)
    expected = Counter(map(repr, new)) - Counter(map(repr, old))
    monkeypatch.setattr(changed_rows, "PART_BYTES", 2000)
    actions = table.commit_actions(table.version)
    assert actions is not None
    assert commit_of(actions).parts > 3
    assert came(table) == expected
    assert came(table, "name") == expected
    assert came(table, None) == expected  # a key for all rows: nothing to cut by


def test_compaction_brings_no_rows_and_a_file_that_is_gone_makes_all_rows_new(
    tmp_path: Path,
) -> None:
    table = made(tmp_path)
    rows: list[Row] = [(1, "a", None), (2, "b", ["x"])]
    table.append(files(table, rows, 2), {})
    table.rewrite(files(table, rows), table.files(), False)
    # Properties change before and after it; the commit in between has the files.
    for version in range(1, table.version + 1):
        actions = table.commit_actions(version)
        assert actions is not None
        assert version == 1 or commit_of(actions).parts == 0
    (gone,) = table.files()
    table.rewrite(files(table, [*rows, (3, "c", None)]), [gone], True)
    Path(table.place.uri, gone.path).unlink()
    assert sum(came(table).values()) == 3
