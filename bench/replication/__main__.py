"""What replication costs a storage: each put, each digest, each alignment, and memory.

    PYTHONPATH=build/compiled python -m bench.replication
    PYTHONPATH=build/compiled python -m bench.replication --keys 10000 --json build/replication.json

Storages in memory, without a network. A put with replication is told beside one without, in the
same run; a digest beside one of a tenth of the keys: it must not grow with them. CPU is what the
kernel charged to this process.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from pathlib import Path

from zenlake.newest import Contents, Value
from zenlake.replication import Eras, Replica
from zenlake.replication.messages import (
    AlignmentQuery,
    All,
    Retrieval,
    decode_digest,
    decode_query,
    decode_reply,
    encode_digest,
    encode_query,
    encode_reply,
)

ERAS = Eras("robot/**", None, 10_000, 5, 6, 30, 250)
NOW = 1_794_000_000_000
#: Keys were put over so many milliseconds before now: mostly in the cold era, some in each other.
PAST = 3_600_000
VALUE = Value(b"x" * 64)


def keys_of(number: int) -> list[tuple[str, int]]:
    """Names and the times (NTP64) of their puts."""
    return [
        (f"robot/{i % 1000}/sensor/{i}", (NOW - PAST + i * PAST // number << 32) // 1000)
        for i in range(number)
    ]


def filled(keys: list[tuple[str, int]], zid: str, replicated: bool = True) -> tuple[float, Replica]:
    """A storage that heard these puts, and the microseconds of each."""
    contents = Contents(keeps=False)
    replica = Replica(ERAS, contents, zid)
    began = time.process_time()
    for key, moment in keys:
        if contents.put(key, moment, b"\1", VALUE) and replicated:
            replica.put(key, moment, b"\1")
    return (time.process_time() - began) * 1e6 / len(keys), replica


def digest_cost(replica: Replica) -> tuple[float, int]:
    """The microseconds that a digest takes, and its bytes."""
    began = time.process_time()
    for second in range(200):
        raw = encode_digest(replica.digest(NOW + second))
    return (time.process_time() - began) * 1e6 / 200, len(raw)


def align(asker: Replica, other: Replica, first: AlignmentQuery) -> tuple[float, int, int]:
    """Ask until all is there, in bytes: seconds, queries, and bytes of all attachments."""
    waiting, asked, size = [first], 0, 0
    began = time.process_time()
    while waiting:
        raw = encode_query(waiting.pop(0))
        asked += 1
        size += len(raw)
        for reply in other.answer(decode_query(raw), NOW):
            answer = encode_reply(reply)
            size += len(answer)
            value = VALUE if isinstance(reply, Retrieval) else None
            waiting += asker.heard_reply(decode_reply(answer), value)
    return time.process_time() - began, asked, size


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.replication")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--missing", type=int, default=1_000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    keys = keys_of(asked.keys)
    plain, _ = filled(keys, "1", replicated=False)
    with_log, one = filled(keys, "1")
    small = filled(keys_of(asked.keys // 10), "1")[1]
    digest, size = digest_cost(one)
    small_digest, _ = digest_cost(small)
    # Every so manieth key is missing in the other, in all eras.
    step = max(1, asked.keys // asked.missing)
    other = filled([pair for i, pair in enumerate(keys) if i % step], "2")[1]
    diff = other.heard_digest(decode_digest(encode_digest(one.digest(NOW)), ERAS), NOW)
    assert diff is not None
    seconds, queries, moved = align(other, one, diff)
    assert other.digest(NOW) == one.digest(NOW)
    empty = filled(keys[:1], "3")[1]
    everything, _, _ = align(empty, one, All())
    assert empty.digest(NOW) == one.digest(NOW)
    tracemalloc.start()
    contents = Contents(keeps=False)
    for key, moment in keys:
        contents.put(key, moment, b"\1", VALUE)
    before = tracemalloc.get_traced_memory()[0]
    held = Replica(ERAS, contents, "4")
    memory = (tracemalloc.get_traced_memory()[0] - before) / len(keys)
    tracemalloc.stop()
    assert held.digest(NOW) == one.digest(NOW)
    told = {
        "keys": len(keys),
        "put_us": round(plain, 2),
        "put_replicated_us": round(with_log, 2),
        "digest_us": round(digest, 1),
        "digest_of_a_tenth_us": round(small_digest, 1),
        "digest_bytes": size,
        "missing": len(keys) // step,
        "align_missing_s": round(seconds, 3),
        "align_missing_queries": queries,
        "align_missing_bytes": moved,
        "align_everything_s": round(everything, 3),
        "log_bytes_per_key": round(memory),
    }
    for name, value in told.items():
        print(f"{name:24} {value}")
    if asked.json:
        asked.json.write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
