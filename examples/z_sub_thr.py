"""Measure how fast z_pub_thr publishes."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_sub_thr", "zenoh throughput sub example")
    parser.add_argument(
        "--number", "-n", type=int, default=50000, help="how many make one measurement"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    meter = Meter(arguments.number)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        session.declare_subscriber("test/thr", zenoh.handlers.Callback(meter.count, meter.report))

        print("Press CTRL-C to quit...", flush=True)
        while True:
            time.sleep(1)


class Meter:
    """Counts samples, and tells how fast each `number` of them came."""

    def __init__(self, number: int) -> None:
        """`number`: how many make one measurement."""
        self.number = number
        self.total = 0
        self.first = 0.0
        self.start = 0.0

    def count(self, _sample: zenoh.Sample) -> None:
        """One more."""
        if self.total % self.number == 0:
            now = time.monotonic()
            if self.total:
                print(f"{self.number / (now - self.start):.6f} msgs/sec", flush=True)
            else:
                self.first = now
            self.start = now
        self.total += 1

    def report(self) -> None:
        """There will be no more."""
        if self.total:
            seconds = time.monotonic() - self.first
            print(
                f"Received {self.total} messages in {seconds}: "
                f"averaged {self.total / seconds:.6f} msgs/sec",
                flush=True,
            )


if __name__ == "__main__":
    options.run(main)
