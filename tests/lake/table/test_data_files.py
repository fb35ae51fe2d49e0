"""Data files are written as small as their values let them be."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from zenlake.lake.table.data_files import read_table, write_file
from zenlake.lake.table.location import LakeLocation


def test_only_values_that_repeat_get_a_dictionary(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "unlike": [n / 7 for n in range(5000)],
            "alike": [float(n % 10) for n in range(5000)],
            "word": [f"r{n % 9}" for n in range(5000)],
            "value": [b"%d" % (n % 3) for n in range(5000)],
        }
    )
    file = write_file(LakeLocation(tmp_path), rows, {}, "a")
    group = pq.ParquetFile(tmp_path / file.path).metadata.row_group(0)
    having = {
        group.column(n).path_in_schema
        for n in range(group.num_columns)
        if group.column(n).has_dictionary_page
    }
    assert having == {"alike", "word"}
    assert read_table(LakeLocation(tmp_path), file.path).equals(rows)
