"""The real zenoh-ts under Node, with an Eclipse client on the other side of `zenlake router`."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.cli.programs import command, endpoint
from tests.remote import node
from tests.waiting import SECONDS, until

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.timeout(400)
def test_every_call_of_zenoh_ts_works_with_an_eclipse_client_beside_it() -> None:
    import zenoh

    node.package()
    plugins = {
        "remote_api": {"websocket_port": "127.0.0.1:0"},
        "storage_manager": {"storages": {"demo": {"key_expr": "demo/**", "volume": "memory"}}},
    }
    config = zenoh.Config()
    finished = threading.Event()
    where = endpoint()
    with command("router", "-l", where, "--cfg", f"plugins:{json.dumps(plugins)}") as router:
        url = router.says("browsers (zenoh-ts) at ").rpartition(" ")[2].replace("ws://", "ws/")
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where]))
        config.insert_json5("scouting/multicast/enabled", "false")
        with zenoh.open(config) as eclipse:

            def echo(sample: zenoh.Sample) -> None:
                if sample.kind == zenoh.SampleKind.DELETE:
                    eclipse.delete("echo/a")
                else:
                    eclipse.put("echo/a", sample.payload, encoding=sample.encoding)

            def ask(sample: zenoh.Sample) -> None:
                found = []
                for reply in eclipse.get(
                    "ts/ask?a=1", payload="body", encoding="text/plain", attachment="att"
                ):
                    one = reply.ok if reply.ok is not None else reply.err
                    assert one is not None
                    found.append(one.payload.to_string())
                if found:
                    eclipse.put("asked", "|".join(sorted(found)))

            def answer(query: zenoh.Query) -> None:
                payload = "" if query.payload is None else query.payload.to_string()
                query.reply("far/ask", f"{query.selector}|{payload}")
                query.reply_err("bad")

            held: list[zenoh.Query] = []
            kept = [
                eclipse.declare_subscriber("say/**", echo),
                eclipse.declare_subscriber("please/ask", ask),
                eclipse.declare_subscriber("finished", lambda _: finished.set()),
                eclipse.declare_queryable("far/ask", answer),
                eclipse.declare_queryable("slow/ask", held.append),
                eclipse.liveliness().declare_token("live/eclipse"),
            ]
            done = node.run(Path(__file__).with_name("every_call.mjs"), url)
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
            assert "every call answered" in done.stdout
            assert finished.wait(SECONDS)
            clients = "@/*/router/status/plugins/remote_api/clients/**"
            until(lambda: not list(eclipse.get(clients)), "the router forgets the client")
            held.clear()
            assert kept
        assert router.interrupt() == 130
