"""Publish that a value is gone."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_delete", "zenoh delete example")
    parser.add_argument(
        "--key", "-k", default="demo/example/zenoh-python-put", help="the key expression to delete"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Deleting resources matching '{arguments.key}'...", flush=True)
        session.delete(arguments.key)


if __name__ == "__main__":
    options.run(main)
