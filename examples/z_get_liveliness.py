"""Ask who is alive."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_get_liveliness", "zenoh liveliness get example")
    parser.add_argument("--key", "-k", default="group1/**", help="whom to ask for")
    parser.add_argument("--timeout", "-o", type=float, default=10.0, help="how long to wait")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Sending Liveliness Query '{arguments.key}'...", flush=True)
        for reply in session.liveliness().get(arguments.key, timeout=arguments.timeout):
            if reply.ok is not None:
                print(f">> Alive token ('{reply.ok.key_expr}')", flush=True)
            elif reply.err is not None:
                print(f">> Received (ERROR: '{reply.err.payload.to_string()}')", flush=True)


if __name__ == "__main__":
    options.run(main)
