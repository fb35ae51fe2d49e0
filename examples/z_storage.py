"""Remember what is published, and answer questions from it."""

from __future__ import annotations

import time

import options

import zenlake as zenoh


def main() -> None:
    """Run it."""
    parser = options.parser("z_storage", "zenoh storage example")
    parser.add_argument(
        "--key", "-k", default="demo/example/**", help="the key expression to store"
    )
    parser.add_argument("--complete", action="store_true", help="say that it has all there is")
    arguments = parser.parse_args()
    zenoh.init_log_from_env_or("error")

    store: dict[str, zenoh.Sample] = {}

    def remember(sample: zenoh.Sample) -> None:
        key, payload = sample.key_expr, sample.payload.to_string()
        print(f">> [Subscriber] Received {sample.kind} ('{key}': '{payload}')", flush=True)
        if sample.kind == zenoh.SampleKind.DELETE:
            store.pop(str(key), None)
        else:
            store[str(key)] = sample

    def answer(query: zenoh.Query) -> None:
        print(f">> [Queryable ] Received Query '{query.selector}'", flush=True)
        for sample in list(store.values()):
            if query.key_expr.intersects(sample.key_expr):
                query.reply(sample.key_expr, sample.payload, encoding=sample.encoding)

    print("Opening session...", flush=True)
    with zenoh.open(options.config(zenoh, arguments)) as session:
        print(f"Declaring Subscriber on '{arguments.key}'...", flush=True)
        session.declare_subscriber(arguments.key, remember)

        print(f"Declaring Queryable on '{arguments.key}'...", flush=True)
        session.declare_queryable(arguments.key, answer, complete=arguments.complete)

        print("Press CTRL-C to quit...", flush=True)
        while True:
            time.sleep(1)


if __name__ == "__main__":
    options.run(main)
