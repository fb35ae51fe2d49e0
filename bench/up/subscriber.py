"""An Eclipse subscriber to everything, so that there is something to forward.

Started as `python subscriber.py ENDPOINT`.
"""

from __future__ import annotations

import json
import sys

import zenoh


def main() -> None:
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("transport/shared_memory/enabled", "false")
    config.insert_json5("connect/endpoints", json.dumps([sys.argv[1]]))
    with zenoh.open(config) as session:
        session.declare_subscriber("bench/**", lambda _: None)
        print(json.dumps({"ready": True}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
