"""Two nodes on a machine of their own, which find each other by scouting.

Run in a network namespace that the test has just made:

    python alone.py PACKAGE MODE LISTEN PACKAGE MODE LISTEN

The first node subscribes, the second one publishes until it is heard.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

SECONDS = 60.0


def opened(package: str, mode: str, listen: str) -> Any:
    """A session of a package, which looks for others wherever `auto` looks."""
    zenoh = importlib.import_module(package)
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    config.insert_json5("transport/shared_memory/enabled", "false")
    config.insert_json5("listen/endpoints", json.dumps([listen] if listen != "-" else []))
    return zenoh.open(config)


def main(arguments: list[str]) -> int:
    """Whether the first hears the second, as an exit status."""
    first = opened(*arguments[:3])
    subscriber = first.declare_subscriber("alone/*")
    second = opened(*arguments[3:6])
    deadline = time.monotonic() + SECONDS
    heard = None
    while heard is None and time.monotonic() < deadline:
        second.put("alone/key", "here")
        time.sleep(0.05)
        heard = subscriber.try_recv()
    second.close()
    first.close()
    return 0 if heard is not None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
