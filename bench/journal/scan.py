"""Scanning a journal, beside plain pyarrow.parquet reading the same columns of the same rows.

All sides are run in turns, on warm files, in one thread, and the best of the turns counts. A
mapped file costs nothing until somebody looks at it, so all sides also read every byte. `first` is
a scan by a process that has not read the journal yet and compares checksums; `again` is any other.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.journal.rows import batch
from zenlake.journal import SCHEMA, Journal, JournalWriter
from zenlake.journal.reading.blocks import VERIFIED

COLUMNS = {
    "all": list(SCHEMA.names),
    "key, value, time": ["key", "value", "time"],
    "offset, hlc": ["offset", "hlc"],
}


def look(batches: Iterable[pa.RecordBatch]) -> int:
    """Read every byte of every buffer; gives the number of rows."""
    rows = 0
    for each in batches:
        rows += len(each)
        for column in each.columns:
            for buffer in column.buffers():
                if buffer is not None and buffer.size >= 8:
                    np.frombuffer(buffer, np.uint64, buffer.size // 8).max()
    return rows


def count(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(len(each) for each in batches)


def _used(
    use: Callable[[Iterable[pa.RecordBatch]], int], side: Callable[[], Iterable[pa.RecordBatch]]
) -> int:
    return use(side())


def best(runs: Sequence[Callable[[], int]], turns: int) -> list[tuple[float, int]]:
    """The shortest time of each, taken in turns, and the rows it gave."""
    times = [float("inf")] * len(runs)
    rows = [0] * len(runs)
    for _ in range(turns):
        for index, run in enumerate(runs):
            started = time.perf_counter()
            rows[index] = run()
            times[index] = min(times[index], time.perf_counter() - started)
    return list(zip(times, rows, strict=True))


def measure(total: int, size: int, turns: int) -> list[dict[str, object]]:
    results: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "journal")
        parquet = os.path.join(folder, "rows.parquet")
        step = max(1, min(10_000, (8 << 20) // size))
        with JournalWriter.open(home, fsync="50ms") as writer:
            for start in range(0, total, step):
                writer.append(0, batch(min(step, total - start), size, start=start))
        with JournalWriter.open(home, segment_bytes=1) as writer:  # seal the rest
            writer.flush()
        journal = Journal.open(home)
        assert all(segment.sealed for segment in journal.segments(0))
        with pq.ParquetWriter(parquet, SCHEMA) as out:
            for each in journal.scan():
                out.write_batch(each)
        for label, columns in COLUMNS.items():

            def ours(columns: list[str] = columns) -> Iterable[pa.RecordBatch]:
                return journal.scan(columns=columns)

            def first(columns: list[str] = columns) -> Iterable[pa.RecordBatch]:
                VERIFIED.clear()
                return journal.scan(columns=columns)

            def theirs(columns: list[str] = columns) -> Iterable[pa.RecordBatch]:
                with pq.ParquetFile(parquet, memory_map=True) as file:
                    yield from file.iter_batches(1 << 16, columns=columns, use_threads=False)

            def whole(columns: list[str] = columns) -> Iterable[pa.RecordBatch]:
                table = pq.read_table(parquet, columns=columns, memory_map=True, use_threads=False)
                yield from table.to_batches()

            for way, use in (("handed over", count), ("every byte read", look)):
                sides = [partial(_used, use, side) for side in (first, ours, theirs, whole)]
                pairs = best(sides, turns)
                (sums, _), (mine, got), (batches, other), (table, _) = pairs
                assert got == other == total
                results.append(
                    {
                        "columns": label,
                        "use": way,
                        "journal_Mrows_s": total / mine / 1e6,
                        "first_Mrows_s": total / sums / 1e6,
                        "parquet_batches_Mrows_s": total / batches / 1e6,
                        "parquet_table_Mrows_s": total / table / 1e6,
                        "ratio": min(batches, table) / mine,
                        "first_ratio": min(batches, table) / sums,
                    }
                )
        filters = best(
            [
                lambda: look(journal.scan(keys="robot/7/**", columns=["key", "value"])),
                lambda: look(
                    pq.read_table(
                        parquet,
                        columns=["key", "value"],
                        filters=pc.field("key") == "robot/7/pose",
                        use_threads=False,
                    ).to_batches()
                ),
            ],
            turns,
        )
        assert filters[0][1] == filters[1][1]
        results.append(
            {
                "columns": "key, value where one key of 100",
                "use": "every byte read",
                "journal_Mrows_s": total / filters[0][0] / 1e6,
                "first_Mrows_s": None,
                "parquet_batches_Mrows_s": None,
                "parquet_table_Mrows_s": total / filters[1][0] / 1e6,
                "ratio": filters[1][0] / filters[0][0],
                "first_ratio": None,
            }
        )
    return results


def _short(value: object) -> str:
    return f"{value:9.1f}" if isinstance(value, float) else f"{'':9}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=64, help="bytes of each payload")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    results = measure(options.rows, options.size, options.turns)
    print(
        f"{options.rows} rows of {options.size} B; million rows a second, best of {options.turns}"
    )
    print(
        f"{'columns':34}{'use':17}{'first':>9}{'again':>9}{'parquet':>9}{'table':>9}{'ratio':>9}{'first':>9}"
    )
    for result in results:
        print(
            f"{result['columns']:34}{result['use']:17}{_short(result['first_Mrows_s'])}"
            f"{result['journal_Mrows_s']:9.1f}{_short(result['parquet_batches_Mrows_s'])}"
            f"{result['parquet_table_Mrows_s']:9.1f}{result['ratio']:8.1f}×"
            f"{_short(result['first_ratio'])}"
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
