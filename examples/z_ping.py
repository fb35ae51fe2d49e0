"""Measure round trips to z_pong."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_ping", "zenoh ping example")
    parser.add_argument("--warmup", "-w", type=float, default=1.0, help="seconds to warm up")
    parser.add_argument("--samples", "-n", type=int, default=100, help="how many to measure")
    parser.add_argument("payload_size", type=int, help="how many bytes to send")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        subscriber = session.declare_subscriber("test/pong")
        publisher = session.declare_publisher(
            "test/ping", congestion_control=zenoh.CongestionControl.BLOCK
        )
        size = arguments.payload_size
        data = bytes(number % 10 for number in range(size))

        print(f"Warming up for {arguments.warmup}...", flush=True)
        end = time.monotonic() + arguments.warmup
        while time.monotonic() < end:
            publisher.put(data)
            subscriber.recv()

        trips: list[int] = []
        for _ in range(arguments.samples):
            start = time.perf_counter_ns()
            publisher.put(data)
            subscriber.recv()
            trips.append((time.perf_counter_ns() - start) // 1000)

        for number, trip in enumerate(trips):
            print(f"{size} bytes: seq={number} rtt={trip}µs lat={trip / 2}µs", flush=True)


if __name__ == "__main__":
    options.run(main)
