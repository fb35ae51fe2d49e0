"""Look who is in the network."""

from __future__ import annotations

import threading

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_scout", "zenoh scout example")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Scouting...", flush=True)
    scout = zenoh.scout(what="peer|router", config=options.config(zenoh, arguments))
    threading.Timer(1.0, scout.stop).start()
    for hello in scout:
        print(hello, flush=True)


if __name__ == "__main__":
    options.run(main)
