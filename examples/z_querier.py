"""Ask the same question again and again."""

from __future__ import annotations

import itertools
import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_querier", "zenoh querier example")
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
    parser.add_argument("--iter", type=int, help="how many times")
    parser.add_argument(
        "--add-matching-listener", action="store_true", help="tell when the first can answer"
    )
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        selector = zenoh.Selector(arguments.selector)
        print(f"Declaring Querier on '{selector.key_expr}'...", flush=True)
        querier = session.declare_querier(
            selector.key_expr,
            target=getattr(zenoh.QueryTarget, arguments.target),
            timeout=arguments.timeout,
        )
        if arguments.add_matching_listener:
            querier.declare_matching_listener(tell_matching)

        print("Press CTRL-C to quit...", flush=True)
        numbers = itertools.count() if arguments.iter is None else range(arguments.iter)
        for number in numbers:
            time.sleep(1.0)
            text = f"[{number:4d}] {arguments.payload or ''}"
            print(f"Querying '{arguments.selector}' with payload '{text}')...", flush=True)
            replies = querier.get(parameters=selector.parameters, payload=text)
            for reply in replies:
                if reply.ok is not None:
                    key, payload = reply.ok.key_expr, reply.ok.payload.to_string()
                    print(f">> Received ('{key}': '{payload}')", flush=True)
                elif reply.err is not None:
                    print(f">> Received (ERROR: '{reply.err.payload.to_string()}')", flush=True)


def tell_matching(status: zenoh.MatchingStatus) -> None:
    """Say that the first queryable came, or that the last one left."""
    many = "" if status.matching else "NO MORE "
    print(f"Querier has {many}matching queryables.", flush=True)


if __name__ == "__main__":
    options.run(main)
