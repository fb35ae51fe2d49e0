"""How long opening a journal takes after a crash, against what the crash left unsealed.

Sealed segments are not read on opening. What has to be walked and summed is the write-ahead file,
which is never larger than `segment_bytes`: so recovery is bounded by that, not by the journal.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import tempfile
import time

from bench.journal.rows import batch
from zenlake.journal import Journal, JournalWriter


def measure(sealed: int, unsealed: int) -> dict[str, float]:
    """Open a journal with so many MiB in segments of 16 MiB, and so many in the open one."""
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "journal")
        rows = batch(10_000, 64)
        with JournalWriter.open(home, segment_bytes=16 << 20) as writer:
            while sum(segment.bytes for segment in Journal.open(home).segments(0)) < sealed << 20:
                for _ in range(20):
                    writer.append(0, rows)
                writer.flush()
        before = Journal.open(home).watermark().offsets[0]
        with JournalWriter.open(home, segment_bytes=1 << 40) as writer:
            while writer.stats.bytes < unsealed << 20:
                writer.append(0, rows)
                writer.flush()
            # The crash: a copy of what is there while the writer is at work, and a torn block.
            crashed = shutil.copytree(home, os.path.join(folder, "crashed"))
        (tail,) = pathlib.Path(crashed, "p0000").glob("*.open")
        with tail.open("ab") as file:
            file.write(b"ZLB1" + bytes(1000))
        size = sum(path.stat().st_size for path in pathlib.Path(crashed).rglob("*"))
        started = time.perf_counter()
        with JournalWriter.open(crashed, segment_bytes=1 << 40) as writer:
            opened = time.perf_counter() - started
            assert writer.watermark.offsets[0] >= before
            assert writer.stats.recovered_bytes_cut == 1004
        return {
            "journal_MB": size / 1e6,
            "unsealed_MB": tail.stat().st_size / 1e6,
            "open_ms": opened * 1e3,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=512, help="MiB of the largest journal")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = []
    print(f"{'journal MB':>12}{'unsealed MB':>13}{'open ms':>10}")
    for sealed, unsealed in (
        (1, 1),
        (64, 1),
        (options.largest, 1),
        (1, 16),
        (1, 128),
        (1, options.largest),
    ):
        result = measure(sealed, unsealed)
        results.append(result)
        print(
            f"{result['journal_MB']:12.0f}{result['unsealed_MB']:13.0f}{result['open_ms']:10.1f}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
