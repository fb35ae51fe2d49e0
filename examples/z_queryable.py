"""Answer questions."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_queryable", "zenoh queryable example")
    parser.add_argument(
        "--key",
        "-k",
        default="demo/example/zenoh-python-queryable",
        help="the key expression to answer for",
    )
    parser.add_argument("--payload", "-p", default="Queryable from Python!", help="the answer")
    parser.add_argument("--complete", action="store_true", help="say that it has all there is")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    def answer(query: zenoh.Query) -> None:
        given = query.payload
        with_payload = "" if given is None else f" with payload: {given.to_string()}"
        print(f">> [Queryable ] Received Query '{query.selector}'{with_payload}", flush=True)
        query.reply(arguments.key, arguments.payload)

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Declaring Queryable on '{arguments.key}'...", flush=True)
        session.declare_queryable(arguments.key, answer, complete=arguments.complete)

        print("Press CTRL-C to quit...", flush=True)
        while True:
            time.sleep(1)


if __name__ == "__main__":
    options.run(main)
