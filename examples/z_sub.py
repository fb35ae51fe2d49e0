"""Print what is published."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_sub", "zenoh sub example")
    parser.add_argument(
        "--key", "-k", default="demo/example/**", help="the key expression to subscribe to"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Declaring Subscriber on '{arguments.key}'...", flush=True)
        session.declare_subscriber(arguments.key, tell)

        print("Press CTRL-C to quit...", flush=True)
        while True:
            time.sleep(1)


def tell(sample: zenoh.Sample) -> None:
    """Print one sample."""
    key, payload = sample.key_expr, sample.payload.to_string()
    print(f">> [Subscriber] Received {sample.kind} ('{key}': '{payload}')", flush=True)


if __name__ == "__main__":
    options.run(main)
