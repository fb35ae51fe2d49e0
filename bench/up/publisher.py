"""One publisher: puts rows as fast as it can or at a rate, when it is told to, and says so.

Started as `python publisher.py zenlake|zenoh ENDPOINT SIZE KEYS`; each line of its input is
`ROWS RATE`, with 0 for as fast as it can.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time


def main() -> None:
    package, endpoint, size, keys = sys.argv[1:5]
    z = importlib.import_module(package)
    config = z.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("transport/shared_memory/enabled", "false")
    config.insert_json5("connect/endpoints", json.dumps([endpoint]))
    session = z.open(config)
    block = z.CongestionControl.BLOCK
    publishers = [
        session.declare_publisher(f"bench/{n}", congestion_control=block) for n in range(int(keys))
    ]
    payload = random.Random(7).randbytes(int(size))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        rows, rate = (int(word) for word in line.split())
        began, cpu = time.time(), time.process_time()
        if rate:
            paced(publishers, payload, rows, rate)
        else:
            flood(publishers, payload, rows)
        told = {"began": began, "ended": time.time(), "cpu": time.process_time() - cpu}
        print(json.dumps(told), flush=True)
    session.close()


def flood(publishers: list, payload: bytes, rows: int) -> None:  # type: ignore[type-arg]
    """As fast as it can; each key a thousand times in a row, as if its robot had been away."""
    puts = [publisher.put for publisher in publishers]
    done = 0
    while done < rows:
        put = puts[done // 1000 % len(puts)]
        for _ in range(min(1000, rows - done)):
            put(payload)
        done += 1000


def paced(publishers: list, payload: bytes, rows: int, rate: int) -> None:  # type: ignore[type-arg]
    """So many a second, evenly."""
    began = time.monotonic()
    for row in range(rows):
        wait = began + row / rate - time.monotonic()
        if wait > 0.001:
            time.sleep(wait)
        publishers[row % len(publishers)].put(payload)


if __name__ == "__main__":
    main()
