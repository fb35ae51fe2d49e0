"""Programs that are killed without a word, and one that writes down all that it publishes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]

# Everything is imported once: a recorder that is killed twenty times need not start twenty times.
NURSERY = """
import json, os, sys
from zenlake.cli.app import main
import zenlake.cli.record, zenlake.journal.recorder
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        sys.argv = ["zenlake", *json.loads(line)]
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        try:
            main()
        finally:
            os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""

# Numbers from zero up under two keys: one by an advanced publisher, one by plain puts. What is
# published is written down first, so that nothing can be heard that is not in the book.
PUBLISHER = """
import importlib, sys, time
package, place, key, book = sys.argv[1:5]
zenoh = importlib.import_module(package)
ext = importlib.import_module(package + ".ext")
config = zenoh.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("connect/endpoints", f'["{place}"]')
config.insert_json5("scouting/multicast/enabled", "false")
with zenoh.open(config) as session, open(book, "w") as written:
    numbered = ext.declare_advanced_publisher(
        session, key + "/numbered", sample_miss_detection=ext.MissDetectionConfig()
    )
    plain = session.declare_publisher(key + "/plain")
    print("ready", numbered.id.zid, numbered.id.eid, flush=True)
    number = 0
    while True:
        for _ in range(20):
            written.write(f"{number}\\n")
            number += 1
        written.flush()
        for one in range(number - 20, number):
            numbered.put(str(one))
            plain.put(str(one))
        time.sleep(0.002)
"""


def environment() -> dict[str, str]:
    """As this process, with the same packages."""
    path = os.environ.get("PYTHONPATH", "")
    return os.environ | {"PYTHONPATH": str(ROOT / path) if path else ""}


class Nursery:
    """Runs `zenlake` commands in processes that start at once."""

    def __init__(self) -> None:
        """Import everything; waits for it."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )
        assert self._line() == "ready"

    def start(self, *arguments: str) -> int:
        """Run a command; the id of its process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def kill(self, process: int, how: signal.Signals = signal.SIGKILL) -> int:
        """End the command that runs; what is told of its end."""
        os.kill(process, how)
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class Publisher:
    """Publishes numbers in a process of its own, and keeps a book of them."""

    def __init__(self, package: str, place: str, key: str, book: Path) -> None:
        """`package`: `zenoh` or `zenlake`; waits until it publishes."""
        self._book = book
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PUBLISHER, package, place, key, str(book)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self._process.stdout is not None
        _, zid, eid = self._process.stdout.readline().split()
        self.source = f"{zid}:{eid}"

    def stop(self) -> list[int]:
        """Publish no more; all that was written down."""
        self._end()
        return [int(line) for line in self._book.read_text().splitlines()]

    def __enter__(self) -> Self:
        return self

    def _end(self) -> None:
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def __exit__(self, *_: object) -> None:
        self._end()
