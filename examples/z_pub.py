"""Publish a value again and again."""

from __future__ import annotations

import itertools
import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_pub", "zenoh pub example")
    parser.add_argument(
        "--key", "-k", default="demo/example/zenoh-python-pub", help="the key to publish on"
    )
    parser.add_argument("--payload", "-p", default="Pub from Python!", help="the value")
    parser.add_argument("--iter", type=int, help="how many times")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two")
    parser.add_argument(
        "--add-matching-listener", action="store_true", help="tell when the first listens"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        key = arguments.key
        print(f"Declaring Publisher on '{key}'...", flush=True)
        publisher = session.declare_publisher(key)
        if arguments.add_matching_listener:
            publisher.declare_matching_listener(tell_matching)

        print("Press CTRL-C to quit...", flush=True)
        numbers = itertools.count() if arguments.iter is None else range(arguments.iter)
        for number in numbers:
            time.sleep(arguments.interval)
            text = f"[{number:4d}] {arguments.payload}"
            print(f"Putting Data ('{key}': '{text}')...", flush=True)
            publisher.put(text)


def tell_matching(status: zenoh.MatchingStatus) -> None:
    """Say that the first subscriber came, or that the last one left."""
    many = "" if status.matching else "NO MORE "
    print(f"Publisher has {many}matching subscribers.", flush=True)


if __name__ == "__main__":
    options.run(main)
