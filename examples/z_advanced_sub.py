"""Print what is published and what was published before, in order, and say what is lost."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_advanced_sub", "zenoh advanced sub example")
    parser.add_argument(
        "--key", "-k", default="demo/example/**", help="the key expression to subscribe to"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Declaring AdvancedSubscriber on '{arguments.key}'...", flush=True)
        subscriber = zenoh.ext.declare_advanced_subscriber(
            session,
            arguments.key,
            history=zenoh.ext.HistoryConfig(detect_late_publishers=True),
            recovery=zenoh.ext.RecoveryConfig(heartbeat=True),
            subscriber_detection=True,
        )
        subscriber.sample_miss_listener(tell_missed)

        print("Press CTRL-C to quit...", flush=True)
        for sample in subscriber:
            key, payload = sample.key_expr, sample.payload.to_string()
            print(f">> [Subscriber] Received {sample.kind} ('{key}': '{payload}')", flush=True)


def tell_missed(miss: zenoh.ext.Miss) -> None:
    """Say how many samples will never come."""
    print(f">> [Subscriber] Missed {miss.nb} samples from '{miss.source}' !!!", flush=True)


if __name__ == "__main__":
    options.run(main)
