"""Commands beside programs of the real eclipse-zenoh, in processes of their own."""

from __future__ import annotations

import pytest

from tests.cli.programs import HEARING, Program, command, endpoint, run

pytestmark = pytest.mark.interop

OPEN = (
    HEARING
    + """
import json, sys, threading, zenoh
config = zenoh.Config()
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5(sys.argv[1] + "/endpoints", json.dumps([sys.argv[2]]))
if sys.argv[1] == "connect":
    config.insert_json5("listen/endpoints", "[]")
session = zenoh.open(config)
"""
)


def theirs(what: str, *arguments: str) -> Program:
    return Program("-c", OPEN + what, *arguments)


def test_a_real_publisher_is_heard() -> None:
    where = endpoint()
    with command("sub", "-k", "demo/**", "-l", where, "-n", "2") as sub:
        sub.says("subscribed")
        what = (
            'session.put("demo/a", "hello", encoding="text/plain", attachment="extra")\n'
            'session.delete("demo/a")\nsession.close()'
        )
        with theirs(what, "connect", where) as publisher:
            assert publisher.ends() == 0
        assert sub.ends() == 0
    assert sub.lines[1:] == [
        "put demo/a: hello  [text/plain, 5 B, attachment extra]",
        "delete demo/a",
    ]


def test_a_real_subscriber_hears() -> None:
    where = endpoint()
    what = (
        'subscriber = session.declare_subscriber("demo/**")\nprint("ready", flush=True)\n'
        "for sample in subscriber:\n"
        "    print(sample.kind, sample.key_expr, sample.payload.to_string(), flush=True)"
    )
    with theirs(what, "listen", where) as subscriber:
        subscriber.says("ready")
        assert run("put", "-k", "demo/a", "-p", "hello", "-e", where) == (0, [])
        assert run("delete", "-k", "demo/a", "-e", where) == (0, [])
        code, lines = run("pub", "-k", "demo/b", "-p", "-", "-e", where, given="one\ntwo\n")
        assert (code, lines) == (0, [])
        heard = [subscriber.says("demo/").strip() for _ in range(4)]
    assert heard == [
        "SampleKind.PUT demo/a hello",
        "SampleKind.DELETE demo/a",
        "SampleKind.PUT demo/b one",
        "SampleKind.PUT demo/b two",
    ]


def test_a_real_router_is_asked_and_seen() -> None:
    where = endpoint()
    router = OPEN.replace("session =", "config.insert_json5('mode', '\"router\"'); session =")
    what = (
        'queryable = session.declare_queryable("demo/q", '
        'lambda query: query.reply("demo/q", "an answer"))\n'
        'token = session.liveliness().declare_token("group/router")\n'
        'print("ready", flush=True)\nthreading.Event().wait()'
    )
    with Program("-c", router + what, "listen", where) as node:
        node.says("ready")
        client = ("-m", "client", "-e", where)
        assert run("get", "-s", "demo/q", *client) == (0, ["put demo/q: an answer  [9 B]"])
        assert run("liveliness", "get", "-k", "group/*", *client) == (0, ["alive group/router"])
        code, lines = run("info", *client)
        assert code == 0
        assert lines[1].startswith("routers   ")
        assert lines[1] != "routers   none"
        code, lines = run("put", "-k", "demo/nobody", "-p", "x", "--wait", "0.2", *client)
        assert (code, lines) == (3, ["zenlake: nobody has declared an interest in 'demo/nobody'"])
