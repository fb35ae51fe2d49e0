"""How fast a replay puts samples on the bus, beside publishers that have them in memory.

    python -m bench.answers.replaying JOURNAL COUNT

The router and the subscriber are processes of their own. `plain` is what publishers do at best: a
payload and nothing else. `same` publishes what the replay does: with timestamps of its own.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zenlake
from zenlake.journal import Journal
from zenlake.journal.ingest.rows import timestamp_of
from zenlake.keys import ResolvedRange
from zenlake.replay import MAX, RecordedSource, Replay

TIMES = 3


def config(endpoint: str) -> zenlake.Config:
    made = zenlake.Config()
    made.insert_json5("mode", '"client"')
    made.insert_json5("scouting/multicast/enabled", "false")
    made.insert_json5("connect/endpoints", json.dumps([endpoint]))
    return made


def listen(endpoint: str, count: int) -> None:
    """Hear so many samples again and again, and say so each time."""
    with zenlake.open(config(endpoint)) as session:
        heard = 0
        with session.declare_subscriber("bench/**") as subscriber:
            print("ready", flush=True)
            for _ in subscriber:
                heard += 1
                if heard % count == 0:
                    print("all", flush=True)


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def reached(endpoint: str) -> Iterator[None]:
    """Wait until somebody listens there."""
    host, _, port = endpoint.removeprefix("tcp/").partition(":")
    deadline = time.monotonic() + 60.0
    while True:
        try:
            socket.create_connection((host, int(port)), 1.0).close()
            break
        except OSError:
            assert time.monotonic() < deadline, f"nobody listens on {endpoint}"
            time.sleep(0.05)
    yield


def replaying(journal: Path, count: int) -> dict[str, Any]:
    source = _first(Journal.open(journal), count)
    rows = [row for table in source.rows() for row in table.to_pylist()]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"tcp/127.0.0.1:{probe.getsockname()[1]}"
    listener = ("-m", "bench.answers.replaying", "--listen", endpoint, str(len(rows)))
    router = ("-m", "zenlake", "router", "-l", endpoint, "--no-multicast-scouting")
    with (
        running(*router),
        reached(endpoint),
        running(*listener) as hears,
        zenlake.open(config(endpoint)) as session,
    ):
        assert hears.stdout is not None
        assert hears.stdout.readline() == "ready\n"
        block = zenlake.CongestionControl.BLOCK
        publishers = {
            key: session.declare_publisher(f"bench/{key}", congestion_control=block)
            for key in {row["key"] for row in rows}
        }
        until_matched(next(iter(publishers.values())))

        def plain() -> None:
            for row in rows:
                publishers[row["key"]].put(row["value"])

        def same() -> None:
            for row in rows:
                stamp = timestamp_of(row["hlc"], row["stamp_id"])
                publishers[row["key"]].put(row["value"], timestamp=stamp)

        def replay() -> None:
            Replay(session, source, prefix="bench", speed=MAX).run()

        told = {
            name: rate(run, hears.stdout.readline, len(rows))
            for name, run in (("plain_s", plain), ("same_s", same), ("replay_s", replay))
        }
    return {
        **{name: round(value) for name, value in told.items()},
        "of plain": round(told["replay_s"] / told["plain_s"], 2),
        "of same": round(told["replay_s"] / told["same_s"], 2),
    }


def _first(journal: Journal, count: int) -> RecordedSource:
    """The first samples of a journal, about so many."""
    seen = 0
    for batch in journal.scan(columns=["time"]):
        seen += batch.num_rows
        if seen >= count:
            end = batch.column("time")[batch.num_rows - 1 - (seen - count)].value * 1000
            return RecordedSource(["**"], ResolvedRange(None, end), journal=journal)
    return RecordedSource(["**"], journal=journal)


def rate(run: Callable[[], None], heard: Callable[[], str], count: int) -> float:
    """Samples a second until all are heard, at best."""
    best = 0.0
    for _ in range(TIMES):
        began = time.perf_counter()
        run()
        assert heard() == "all\n"
        best = max(best, count / (time.perf_counter() - began))
    return best


def until_matched(publisher: zenlake.Publisher) -> None:
    while not publisher.matching_status.matching:
        time.sleep(0.01)


def main() -> None:
    if sys.argv[1] == "--listen":
        listen(sys.argv[2], int(sys.argv[3]))
    else:
        print(json.dumps(replaying(Path(sys.argv[1]), int(sys.argv[2])), indent=1))


if __name__ == "__main__":
    main()
