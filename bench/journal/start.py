"""How long a recorder takes to know the latest values, against the size of its journal.

Without what was put aside it reads the whole journal; with it, the values and what came since.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import tempfile
import threading
import time

from bench.journal.rows import batch
from zenlake.journal import Journal, JournalWriter
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.serving import recall
from zenlake.journal.serving.remember import RememberedValues

STEP = 10_000


def remembered(home: str, *, aside: bool) -> tuple[float, int]:
    """Seconds until all values are known, and how many rows were read for it."""
    with JournalWriter.open(home) as writer:
        journal = Journal.open(home)
        offsets = dict(enumerate(writer.watermark.offsets))
        end = threading.Event()
        memory = RememberedValues(journal, LocalFiles(home), writer, lambda: offsets, end)
        thread = threading.Thread(target=memory.run)
        started = time.perf_counter()
        thread.start()
        assert memory.wait()
        took = time.perf_counter() - started
        if aside:
            assert memory.put_aside()
        end.set()
        thread.join()
        return took, memory.read


def measure(rows: int, keys: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "journal")
        with JournalWriter.open(home, segment_bytes=16 << 20) as writer:
            for start in range(0, rows, STEP):
                writer.append(0, batch(STEP, 64, keys, start))
        without, read = remembered(home, aside=True)
        assert read == rows
        with JournalWriter.open(home) as writer:
            writer.append(0, batch(STEP, 64, keys, rows))
        with_it, tail = remembered(home, aside=False)
        assert tail == STEP
        return {
            "rows": rows,
            "keys": keys,
            "journal_MB": sum(p.stat().st_size for p in pathlib.Path(home).rglob("*")) / 1e6,
            "aside_MB": os.path.getsize(os.path.join(home, recall.LATEST)) / 1e6,
            "whole_ms": without * 1e3,
            "aside_ms": with_it * 1e3,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--largest", type=int, default=4_000_000, help="rows of the largest journal"
    )
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = []
    print(
        f"{'rows':>10}{'keys':>9}{'journal MB':>12}{'aside MB':>10}{'whole ms':>10}{'aside ms':>10}"
    )
    for rows, keys in (
        (options.largest // 16, 100),
        (options.largest // 4, 100),
        (options.largest, 100),
        (options.largest, 10_000),
    ):
        result = measure(rows // STEP * STEP, keys)
        results.append(result)
        print(
            f"{result['rows']:10.0f}{result['keys']:9.0f}{result['journal_MB']:12.0f}"
            f"{result['aside_MB']:10.1f}{result['whole_ms']:10.0f}{result['aside_ms']:10.0f}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
