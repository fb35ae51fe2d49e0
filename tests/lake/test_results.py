"""The table of a view: what it keeps, and for how long."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tests.lake.journals import rows_of
from zenlake.lake.place import Place
from zenlake.lake.standing.definition import Definition
from zenlake.lake.standing.results import Results

COLUMNS = pa.schema([("n", pa.int64())])


def test_days_that_are_over_leave_the_table_of_a_view_and_its_place_stays(tmp_path: Path) -> None:
    definition = Definition("means", "view", "SELECT n FROM samples")
    for keep, left in ((None, [1, 2, 3]), (86400.0, [2, 3, 4])):
        results = Results(Place(tmp_path), definition, COLUMNS, 600.0, keep)
        if keep is None:
            old = results._write(pa.table({"n": [1]}, COLUMNS), "2020-01-31")
            results.table.append([old], {"app": (None, 0)}, {"kind": "append"})
            results.append(pa.table({"n": [2]}, COLUMNS), {"app": 1})
            results.append(pa.table({"n": [3]}, COLUMNS), {"app": 2})
        else:
            results.append(pa.table({"n": [4]}, COLUMNS), {"app": 3})
        assert sorted(row["n"] for row in rows_of(tmp_path, "means")) == left
    # A batch that comes again finds itself, though its rows are gone.
    assert results.reached("app") == 3
