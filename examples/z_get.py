"""Ask for values, and print the answers."""

from __future__ import annotations

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_get", "zenoh get example")
    parser.add_argument("--selector", "-s", default="demo/example/**", help="what to ask for")
    parser.add_argument(
        "--target",
        "-t",
        choices=["ALL", "BEST_MATCHING", "ALL_COMPLETE"],
        default="BEST_MATCHING",
        help="whom to ask",
    )
    parser.add_argument("--payload", "-p", help="a payload for the question")
    parser.add_argument("--timeout", "-o", type=float, default=10.0, help="how long to wait")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Sending Query '{arguments.selector}'...", flush=True)
        replies = session.get(
            arguments.selector,
            target=getattr(zenoh.QueryTarget, arguments.target),
            payload=arguments.payload,
            timeout=arguments.timeout,
        )
        for reply in replies:
            if reply.ok is not None:
                key, payload = reply.ok.key_expr, reply.ok.payload.to_string()
                print(f">> Received ('{key}': '{payload}')", flush=True)
            elif reply.err is not None:
                print(f">> Received (ERROR: '{reply.err.payload.to_string()}')", flush=True)


if __name__ == "__main__":
    options.run(main)
