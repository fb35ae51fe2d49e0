"""Hear who comes and goes."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_sub_liveliness", "zenoh liveliness subscriber example")
    parser.add_argument("--key", "-k", default="group1/**", help="whom to watch")
    parser.add_argument(
        "--history", nargs="?", const=True, default=False, type=bool, help="tell who is there too"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Declaring Liveliness Subscriber on '{arguments.key}'...", flush=True)
        liveliness = session.liveliness()
        subscriber = liveliness.declare_subscriber(arguments.key, history=arguments.history)
        for sample in subscriber:
            alive = sample.kind == zenoh.SampleKind.PUT
            what = "New alive token" if alive else "Dropped token"
            print(f">> [LivelinessSubscriber] {what} ('{sample.key_expr}')", flush=True)


if __name__ == "__main__":
    options.run(main)
