"""What one writes without zenlake: Eclipse's client, a callback, and a Parquet file at times.

Started as `python by_hand.py ENDPOINT FOLDER`. Each file is written to another name first, so that
whoever lists the folder sees whole files.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zenoh

#: A file is written after this many rows, or seconds.
ROWS, SECONDS = 100_000, 1.0


def main() -> None:
    endpoint, folder = sys.argv[1:3]
    rows: list[tuple[str, bytes, int, Any]] = []
    guard = threading.Lock()

    def heard(sample: zenoh.Sample) -> None:
        row = (str(sample.key_expr), bytes(sample.payload), time.time_ns(), sample.timestamp)
        with guard:
            rows.append(row)

    config = zenoh.Config()
    config.insert_json5("mode", '"router"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("transport/shared_memory/enabled", "false")
    config.insert_json5("listen/endpoints", json.dumps([endpoint]))
    session = zenoh.open(config)
    session.declare_subscriber("**", heard)
    print(json.dumps({"ready": True}), flush=True)
    number, last = 0, time.monotonic()
    while True:
        if len(rows) < ROWS and (not rows or time.monotonic() - last < SECONDS):
            time.sleep(0.01)
            continue
        with guard:
            taken, rows[:] = list(rows), []
        last = time.monotonic()
        table = pa.table(
            {
                "key": pa.array([row[0] for row in taken]).dictionary_encode(),
                "value": [row[1] for row in taken],
                "time": pa.array([row[2] // 1000 for row in taken], pa.timestamp("us", tz="UTC")),
                "stamp": [None if row[3] is None else str(row[3]) for row in taken],
            }
        )
        path = f"{folder}/{number}.parquet"
        pq.write_table(table, path + ".new", compression="snappy")
        os.rename(path + ".new", path)
        number += 1


if __name__ == "__main__":
    main()
