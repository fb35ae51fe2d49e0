"""Publish a value again and again, so that whoever comes late or misses something gets it."""

from __future__ import annotations

import itertools
import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_advanced_pub", "zenoh advanced pub example")
    parser.add_argument(
        "--key", "-k", default="demo/example/zenoh-python-pub", help="the key to publish on"
    )
    parser.add_argument("--payload", "-p", default="Pub from Python!", help="the value")
    parser.add_argument(
        "--history", "-i", type=int, default=1, help="how many values are remembered"
    )
    parser.add_argument("--iter", type=int, help="how many times")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        key = arguments.key
        print(f"Declaring AdvancedPublisher on '{key}'...", flush=True)
        publisher = zenoh.ext.declare_advanced_publisher(
            session,
            key,
            cache=zenoh.ext.CacheConfig(max_samples=arguments.history),
            sample_miss_detection=zenoh.ext.MissDetectionConfig(heartbeat=0.5),
            publisher_detection=True,
        )

        print("Press CTRL-C to quit...", flush=True)
        numbers = itertools.count() if arguments.iter is None else range(arguments.iter)
        for number in numbers:
            time.sleep(arguments.interval)
            text = f"[{number:4d}] {arguments.payload}"
            print(f"Putting Data ('{key}': '{text}')...", flush=True)
            publisher.put(text)


if __name__ == "__main__":
    options.run(main)
