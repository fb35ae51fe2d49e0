"""A router in a process of its own, with a bound on its memory.

python -m bench.storm.target PACKAGE '{"listen": […], "connect": […], "config": {…}}'
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
from typing import Any


def main() -> None:
    """Route until the input ends."""
    package, orders = sys.argv[1], json.loads(sys.argv[2])
    limit = orders.get("limit", 5 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit + (4 << 30),) * 2)
    z: Any = importlib.import_module(package)
    config = z.Config()
    settings = {
        "mode": "router",
        "listen/endpoints": orders["listen"],
        "connect/endpoints": orders.get("connect", []),
        "scouting/multicast/enabled": False,
        "adminspace/enabled": True,
        **orders.get("config", {}),
    }
    if package == "zenoh":
        settings["transport/shared_memory/enabled"] = False
    for key, value in settings.items():
        config.insert_json5(key, json.dumps(value))
    session = z.open(config)
    if package == "zenlake":
        from zenlake.engine.survivors import set_survivors_aside

        set_survivors_aside()  # as `zenlake router` does
    zid = str(session.info.zid())
    print(json.dumps({"zid": zid}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
