"""Send back what z_ping sends."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_pong", "zenoh pong example")
    parser.add_argument(
        "--express", nargs="?", const=True, default=False, type=bool, help="do not wait for company"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        publisher = session.declare_publisher(
            "test/pong",
            congestion_control=zenoh.CongestionControl.BLOCK,
            express=arguments.express,
        )
        session.declare_subscriber("test/ping", lambda sample: publisher.put(sample.payload))

        print("Press CTRL-C to quit...", flush=True)
        while True:
            time.sleep(1)


if __name__ == "__main__":
    options.run(main)
