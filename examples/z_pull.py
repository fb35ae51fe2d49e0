"""Look now and then at the newest of what is published."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_pull", "zenoh pull example")
    parser.add_argument("--key", "-k", default="demo/example/**", help="the key expression to pull")
    parser.add_argument("--size", type=int, default=3, help="how many to keep")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two looks")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Declaring Subscriber on '{arguments.key}'...", flush=True)
        # A ring keeps the newest and forgets the oldest.
        ring = zenoh.handlers.RingChannel[zenoh.Sample](arguments.size)
        subscriber = session.declare_subscriber(arguments.key, ring)

        print("Press CTRL-C to quit...", flush=True)
        while True:
            time.sleep(arguments.interval)
            while (sample := subscriber.try_recv()) is not None:
                key, payload = sample.key_expr, sample.payload.to_string()
                print(f">> [Subscriber] Received {sample.kind} ('{key}': '{payload}')", flush=True)


if __name__ == "__main__":
    options.run(main)
