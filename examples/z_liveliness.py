"""Be alive under a key."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_liveliness", "zenoh liveliness example")
    parser.add_argument("--key", "-k", default="group1/zenoh-py", help="the key to be alive under")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Declaring LivelinessToken on '{arguments.key}'...", flush=True)
        token = session.liveliness().declare_token(arguments.key)

        print("Press CTRL-C to quit...", flush=True)
        with token:
            while True:
                time.sleep(1)


if __name__ == "__main__":
    options.run(main)
