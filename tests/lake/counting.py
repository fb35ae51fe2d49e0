"""Eclipse's nodes that count, and write down what they said; nothing of zenlake is in here.

    python -m tests.lake.counting plain ENDPOINT LOG KEY…      publishers that number their samples
    python -m tests.lake.counting advanced ENDPOINT LOG KEY…   publishers that keep what they said
    python -m tests.lake.counting silent ENDPOINT LOG KEY…     whose samples have no numbers
    python -m tests.lake.counting ros2 ENDPOINT LOG KEY…       who number them as rmw_zenoh does
    python -m tests.lake.counting witness ENDPOINT LOG KEY     writes down what is told under a key

A key says which payloads it has (`tests/lake/numbered`). A publisher begins when somebody listens,
and then does not care. Told `end`, it waits for a listener, says one number more under each key,
and answers `ended`; it is there until its input ends. Each line of a log is a JSON list: key,
number, and the source that the number was given out by.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from typing import IO, Any

import zenoh
import zenoh.ext

from tests.lake.numbered import GID, attached, encoding_of, payload_of

#: Seconds between two bursts, on average, and how many samples of each key one has at most.
PAUSE = 0.03
MOST = 5

#: More than any publisher says here: nothing is forgotten.
REMEMBERED = 10_000_000

#: Samples are numbered, and heartbeats are not needed; the package's types demand that they are.
NUMBERED: dict[str, Any] = {}


def opened(place: str) -> Any:
    """A client of a router."""
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("connect/endpoints", json.dumps([place]))
    return zenoh.open(config)


class Counter:
    """Says the numbers from zero up under one key."""

    def __init__(self, session: Any, kind: str, key: str, log: IO[str]) -> None:
        """Nothing is said yet."""
        self.kind = kind
        self.key = key
        self.log = log
        # Publishers of ROS 2 count from one.
        self.next = 1 if kind == "ros2" else 0
        block = zenoh.CongestionControl.BLOCK
        # It tells whether somebody listens, which advanced ones do not.
        self.probe = session.declare_publisher(key, congestion_control=block)
        self.publisher = self.probe
        if kind == "advanced":
            self.publisher = zenoh.ext.declare_advanced_publisher(
                session,
                key,
                congestion_control=block,
                cache=zenoh.ext.CacheConfig(REMEMBERED),
                sample_miss_detection=zenoh.ext.MissDetectionConfig(**NUMBERED),
            )
        source = self.publisher.id
        names = {"silent": None, "ros2": f"ros2:{GID.hex()}"}
        self.source = names.get(kind, f"{source.zid}:{source.eid}")

    def until_heard(self) -> None:
        """Wait for a listener."""
        while not self.probe.matching_status.matching:
            time.sleep(0.005)

    def say(self) -> None:
        """One number more, written down first."""
        number = self.next
        self.next += 1
        self.log.write(json.dumps([self.key, number, self.source]) + "\n")
        options: dict[str, Any] = {"encoding": zenoh.Encoding(encoding_of(self.key))}
        if self.kind == "plain":
            options["source_info"] = zenoh.SourceInfo(self.publisher.id, number)
        if self.kind == "ros2":
            options["attachment"] = attached(number)
        self.publisher.put(payload_of(self.key, number), **options)


def count(kind: str, place: str, log: IO[str], keys: list[str]) -> None:
    """Publishers, until they are told to end."""
    over = threading.Event()
    session = opened(place)
    counters = [Counter(session, kind, key, log) for key in keys]
    chance = random.Random(kind)

    def talk() -> None:
        for counter in counters:
            counter.until_heard()
        while not over.wait(chance.uniform(0, 2 * PAUSE)):
            for counter in counters:
                for _ in range(chance.randrange(MOST + 1)):
                    counter.say()

    talking = threading.Thread(target=talk)
    talking.start()
    print("begun", flush=True)
    sys.stdin.readline()
    over.set()
    talking.join()
    for counter in counters:
        counter.until_heard()
        counter.say()
    log.flush()
    print("ended", flush=True)
    sys.stdin.read()
    session.close()


def witness(place: str, log: IO[str], key: str) -> None:
    """Writes down what it hears, until its input ends."""

    def heard(sample: Any) -> None:
        log.write(sample.payload.to_string().strip() + "\n")
        log.flush()

    session = opened(place)
    session.declare_subscriber(key, heard)
    print("begun", flush=True)
    sys.stdin.read()
    session.close()


if __name__ == "__main__":
    what, where, file, *names = sys.argv[1:]
    with open(file, "w", encoding="utf-8") as book:
        if what == "witness":
            witness(where, book, *names)
        else:
            count(what, where, book, names)
