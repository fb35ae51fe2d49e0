"""A router with HTTP, the remote API and a storage, for the benchmark."""

from __future__ import annotations

import json
import sys
import threading

import zenlake


def main(bus: str, http: str, remote: str) -> None:
    config = zenlake.Config.from_json5(
        json.dumps(
            {
                "mode": "router",
                "listen": {"endpoints": [bus]},
                "scouting": {"multicast": {"enabled": False}},
                "plugins": {
                    "rest": {"http_port": http},
                    "remote_api": {"websocket_port": remote, "queue_bytes": 1 << 20},
                    "storage_manager": {
                        "storages": {"demo": {"key_expr": "demo/**", "volume": "memory"}}
                    },
                },
            }
        )
    )
    with zenlake.open(config) as session:
        session.put("demo/a", '{"battery":80}', encoding="application/json")
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
