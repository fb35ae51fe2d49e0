"""Publish as fast as possible, for z_sub_thr."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_pub_thr", "zenoh throughput pub example")
    parser.add_argument("payload_size", type=int, help="how many bytes to publish each time")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    data = bytes(number % 10 for number in range(arguments.payload_size))
    with zenoh.open(options.config(zenoh, arguments)) as session:
        publisher = session.declare_publisher(
            "test/thr", congestion_control=zenoh.CongestionControl.BLOCK
        )

        print("Press CTRL-C to quit...", flush=True)
        while True:
            publisher.put(data)


if __name__ == "__main__":
    options.run(main)
