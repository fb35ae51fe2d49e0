"""Publish one value."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_put", "zenoh put example")
    parser.add_argument(
        "--key", "-k", default="demo/example/zenoh-python-put", help="the key to write"
    )
    parser.add_argument("--payload", "-p", default="Put from Python!", help="the value")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        key, payload = arguments.key, arguments.payload
        print(f"Putting Data ('{key}': '{payload}')...", flush=True)
        session.put(key, payload)


if __name__ == "__main__":
    options.run(main)
