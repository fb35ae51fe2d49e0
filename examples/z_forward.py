"""Publish under one key what comes under others."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_forward", "zenoh forward example")
    parser.add_argument(
        "--key", "-k", default="demo/example/**", help="the key expression to subscribe to"
    )
    parser.add_argument("--forward", "-f", default="demo/forward", help="the key to publish on")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        key, forward = arguments.key, arguments.forward
        print(f"Declaring Subscriber on '{key}'...", flush=True)
        subscriber = session.declare_subscriber(key)
        print(f"Declaring Publisher on '{forward}'...", flush=True)
        publisher = session.declare_publisher(forward)
        print(f"Forwarding data from '{key}' to '{forward}'...", flush=True)
        for sample in subscriber:
            if sample.kind == zenoh.SampleKind.DELETE:
                publisher.delete()
            else:
                publisher.put(sample.payload, encoding=sample.encoding)


if __name__ == "__main__":
    options.run(main)
