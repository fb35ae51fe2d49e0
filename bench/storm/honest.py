"""Two honest clients of one router: one puts every few milliseconds, the other counts and times.

    python -m bench.storm.honest PACKAGE ENDPOINT ENDPOINT

Takes orders as lines: `mark` begins a stretch, and what happened in the one before is printed.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import threading
import time
from typing import Any

PERIOD = 0.005


class Pair:
    """The publisher, the subscriber, and what was measured since the last mark."""

    def __init__(self, package: str, endpoints: list[str]) -> None:
        """Open both sessions."""
        z = importlib.import_module(package)
        self._sessions = [self._open(z, endpoint) for endpoint in endpoints]
        self._extra: list[Any] = []
        self._lock = threading.Lock()
        self._delays: list[float] = []
        self._last = time.perf_counter()
        self._frozen = 0.0
        self.heard = 0
        self.sent = 0
        self._subscriber = self._sessions[1].declare_subscriber("honest/**", self._arrived)
        self._publisher = self._sessions[0].declare_publisher(
            "honest/word", congestion_control=z.CongestionControl.BLOCK
        )
        time.sleep(0.5)
        self._stopped = False
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    @staticmethod
    def _open(z: Any, endpoint: str) -> Any:
        config = z.Config()
        for key, value in {
            "mode": "client",
            "connect/endpoints": [endpoint],
            "scouting/multicast/enabled": False,
            "transport/shared_memory/enabled": False,
        }.items():
            config.insert_json5(key, json.dumps(value))
        return z.open(config)

    def _talk(self) -> None:
        while not self._stopped:
            self.sent += 1
            self._publisher.put(str(time.perf_counter()))
            time.sleep(PERIOD)

    def _arrived(self, sample: Any) -> None:
        now = time.perf_counter()
        with self._lock:
            self.heard += 1
            self._delays.append(now - float(sample.payload.to_string()))
            self._frozen = max(self._frozen, now - self._last)
            self._last = now

    def mark(self) -> dict[str, float]:
        """What happened since the last mark; and one subscriber more is declared."""
        key = f"extra/{len(self._extra)}"
        self._extra.append(self._sessions[1].declare_subscriber(key, lambda _: None))
        now = time.perf_counter()
        with self._lock:
            delays, self._delays = self._delays, []
            frozen, self._frozen = max(self._frozen, now - self._last), 0.0
        ordered = sorted(delays) or [float("inf")]
        return {
            "p50": statistics.median(ordered),
            "p99": ordered[len(ordered) * 99 // 100],
            "frozen": frozen,
            "samples": len(delays),
        }

    def end(self) -> dict[str, int]:
        """Stop, wait for what is on its way, and count."""
        self._stopped = True
        self._thread.join(5)
        stop = time.monotonic() + 5
        while self.heard < self.sent and time.monotonic() < stop:
            time.sleep(0.02)
        return {"sent": self.sent, "lost": self.sent - self.heard}


def main() -> None:
    """Measure until told to end."""
    pair = Pair(sys.argv[1], sys.argv[2:4])
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(pair.end() if line.strip() == "end" else pair.mark()), flush=True)


if __name__ == "__main__":
    main()
