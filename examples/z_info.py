"""Print who is connected."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_info", "zenoh info example")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        info = session.info
        print(f"zid: {info.zid()}", flush=True)
        print(f"routers: {[str(zid) for zid in info.routers_zid()]}", flush=True)
        print(f"peers: {[str(zid) for zid in info.peers_zid()]}", flush=True)


if __name__ == "__main__":
    options.run(main)
