"""A router with storages, a plain subscriber and a plain queryable, told what to do by lines."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import psutil

import zenlake
from zenlake.clock import Timestamp
from zenlake.newest import Value
from zenlake.node.sample import Sample
from zenlake.storage_manager import Storages
from zenlake.storage_manager.storage import Storage

PAYLOAD = b"x" * 64


def stored(session: zenlake.Session, name: str) -> Storage:
    (service,) = session.runtime.services.values()
    assert isinstance(service, Storages)
    return service.running[name]


def fill(storage: Storage, prefix: str, count: int) -> float:
    """Let a storage have so many keys, `<prefix>/<n % 1000>/<n>/c`; gives seconds until durable."""
    contents = storage._contents
    begin = time.perf_counter()
    stamp = time.time_ns() // 1_000_000_000 << 32
    for n in range(count):
        with storage._changed:
            contents.put(f"{prefix}/{n % 1000}/{n}/c", stamp + n, b"\x01", Value(PAYLOAD))
            storage._tell()
        while contents.waiting > 64 << 20:
            time.sleep(0.01)
    storage.flush(600)
    return time.perf_counter() - begin


def main() -> None:
    folder, configured = sys.argv[1], json.loads(sys.argv[2])
    config = zenlake.Config()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config.insert_json5("mode", '"router"')
        config.insert_json5("scouting/multicast/enabled", "false")
        config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
        config.insert_json5("adminspace/enabled", "true")
        config.insert_json5("plugins", json.dumps({"storage_manager": {"storages": configured}}))
    begin = time.perf_counter()
    session = zenlake.open(config)
    started = time.perf_counter() - begin
    counts = {"plain": 0, "kept": 0}

    kept: dict[str, bytes] = {}

    def heard(sample: Sample) -> None:
        counts["plain"] += 1

    def keep(sample: Sample) -> None:
        """What a program would write that keeps the last value of each key, and nothing else."""
        kept[str(sample.key_expr)] = sample.payload.to_bytes()
        counts["kept"] += 1

    subscriber = session.declare_subscriber("plain/**", heard)
    keeper = session.declare_subscriber("kept/**", keep)
    # Keys of the same shape as those of `fill`: their length is a part of what a reply costs.
    many = [(f"many/{n % 1000}/{n}/c", PAYLOAD) for n in range(10_000)]
    stamp: Timestamp = session.new_timestamp()

    def one(query: Any) -> None:
        query.reply("one/k", PAYLOAD, timestamp=stamp)

    def all_of(query: Any) -> None:
        for key, payload in many:
            query.reply(key, payload, timestamp=stamp)

    queryables = [
        session.declare_queryable("one/k", one),
        session.declare_queryable("many/**", all_of),
    ]
    where = session.runtime.node.settings.locators[0]
    print(json.dumps({"where": where, "started": started, "folder": folder}), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        answer: object = None
        if word == "counts":
            found = stored(session, "memory").counts.puts if "memory" in configured else 0
            answer = {**counts, "stored": found, "cpu": time.process_time()}
        elif word == "fill":
            answer = fill(stored(session, rest[0]), rest[1], int(rest[2]))
        elif word == "memory":
            process = psutil.Process()
            answer = {"rss": process.memory_info().rss, "keys": 0}
        print(json.dumps(answer), flush=True)
    for entity in (subscriber, keeper, *queryables):
        entity.undeclare()
    session.close()


if __name__ == "__main__":
    main()
