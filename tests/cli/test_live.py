"""Commands beside commands, over TCP on loopback; those that run on have their own process."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.programs import command, endpoint, run


def test_a_subscriber_prints_what_is_put_published_and_deleted() -> None:
    where = endpoint()
    with command("sub", "-k", "demo/**", "-l", where, "-n", "4") as sub:
        sub.says("subscribed to 'demo/**'")
        put = run(
            "put", "-k", "demo/a", "-p", "hello", "-a", "extra", "--encoding", "text/plain",
            "-e", where,
        )  # fmt: skip
        assert put == (0, [])
        code, lines = run("delete", "-k", "demo/a", "-e", where, "--json")
        assert code == 0
        assert json.loads(lines[-1]) == {"key": "demo/a", "kind": "delete", "heard": True}
        with command("pub", "-k", "demo/b", "-p", "-", "-e", where, given="one\ntwo\n") as pub:
            assert pub.ends() == 0
        assert sub.ends() == 0
    assert sub.lines[1:] == [
        "put demo/a: hello  [text/plain, 5 B, attachment extra]",
        "delete demo/a",
        "put demo/b: one  [3 B]",
        "put demo/b: two  [3 B]",
    ]


def test_a_publisher_repeats_itself_until_its_count() -> None:
    where = endpoint()
    with command("sub", "-k", "demo/**", "-l", where, "--json") as sub:
        sub.says("subscribed")
        code, lines = run(
            "pub", "-k", "demo/p", "-p", "{}", "--encoding", "application/json",
            "-n", "2", "-i", "0", "-e", where, "--priority", "data_high",
        )  # fmt: skip
        assert code == 0
        assert lines == ["     1  demo/p: {}", "     2  demo/p: {}"]
        sub.says("demo/p")
        told = json.loads(sub.says("demo/p"))
        assert sub.interrupt() == 130
    assert told == {
        "key": "demo/p",
        "kind": "put",
        "payload": "{}",
        "size": 2,
        "encoding": "application/json",
        "timestamp": None,
        "priority": "data_high",
        "congestion_control": "block",
        "express": False,
        "reliability": "reliable",
    }


def test_statistics_end_with_a_total() -> None:
    where = endpoint()
    with command("sub", "-k", "demo/**", "-l", where, "--stats", "-n", "500") as sub:
        sub.says("counting")
        lines = "12345678\n" * 500
        assert run("pub", "-k", "demo/p", "-p", "-", "-e", where, given=lines) == (0, [])
        assert sub.ends() == 0
    assert sub.lines[-1].startswith("500 samples, 4000 B in ")
    assert sub.lines[-1].endswith("dropped: none")


def test_questions_are_answered() -> None:
    where = endpoint()
    with command("queryable", "-k", "demo/q/**", "-p", "an answer", "-l", where) as queryable:
        queryable.says("answering")
        code, lines = run("get", "-s", "demo/q/1?unit=m", "-p", "how far", "-e", where)
        assert code == 0
        assert lines == ["put demo/q/1: an answer  [9 B]"]
        queryable.says("query demo/q/1?unit=m  [payload how far]")
        code, lines = run("get", "-k", "demo/q/2", "--json", "-e", where)
        assert code == 0
        told = json.loads(lines[0])
        assert (told["ok"], told["key"], told["payload"]) == (True, "demo/q/2", "an answer")
        assert queryable.interrupt() == 130


def test_only_errors_for_an_answer_end_with_1() -> None:
    where = endpoint()
    with command(
        "queryable", "-k", "demo/q", "-p", "no\x1b[2J", "--error", "-n", "2", "-l", where, "--json"
    ) as queryable:
        queryable.says("answering")
        code, lines = run("get", "-s", "demo/q", "-e", where)
        assert code == 1
        assert lines == ["error: no\\x1b[2J  [6 B]"]
        code, lines = run("get", "-s", "demo/q", "-a", "x", "-e", where, "--json")
        assert code == 1
        assert json.loads(lines[0])["payload"] == "no\x1b[2J"
        assert queryable.ends() == 0
    assert json.loads(queryable.lines[-1]) == {
        "selector": "demo/q",
        "key": "demo/q",
        "parameters": "",
        "attachment": "x",
    }


def test_those_who_are_alive_are_told() -> None:
    where = endpoint()
    with (
        command("liveliness", "token", "-k", "group/me", "-l", where) as token,
        command("liveliness", "sub", "-k", "group/**", "--history", "-e", where) as sub,
    ):
        token.says("alive as 'group/me'")
        sub.says("alive group/me")
        code, lines = run("liveliness", "get", "-k", "group/**", "-e", where)
        assert code == 0
        assert lines == ["alive group/me"]
        code, lines = run("liveliness", "get", "-k", "group/**", "--json", "-e", where)
        assert code == 0
        assert json.loads(lines[0]) == {"key": "group/me", "alive": True}
        code, lines = run("liveliness", "get", "-k", "others/**", "-e", where)
        assert code == 3
        assert lines == ["zenlake: nobody is alive as 'others/**'"]
        assert token.interrupt() == 130
        sub.says("gone group/me")
        assert sub.interrupt() == 130


def test_round_trips_are_measured() -> None:
    where = endpoint()
    with command("pong", "-l", where) as pong:
        pong.says("sending test/ping back")
        code, lines = run("ping", "8", "-n", "20", "-w", "0", "-e", where, "--json")
        assert code == 0
        told = json.loads(lines[-1])
        assert (told["size"], told["samples"]) == (8, 20)
        assert 0 < told["min_us"] <= told["p50_us"] <= told["p99_us"] <= told["max_us"]
        code, lines = run("ping", "-n", "1", "-w", "0", "-e", where)
        assert code == 0
        assert lines[0] == "1 round trips of 64 B, in µs"
        assert pong.interrupt(signal.SIGTERM) == 0
    assert pong.lines[-1] == "21 sent back"


def test_info_shows_the_neighbours() -> None:
    where = endpoint()
    with command("sub", "-l", where) as sub:
        sub.says("subscribed")
        code, lines = run("info", "-e", where, "--json")
        assert code == 0
        told = json.loads(lines[0])
        assert told["routers"] == []
        assert told["links"] == [
            {"zid": told["peers"][0], "src": told["links"][0]["src"], "dst": where}
        ]
        code, lines = run("info", "-e", where)
        assert code == 0
        assert lines[2] == f"peers     {told['peers'][0]}"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("put", "-k", "demo/a", "-p", "x"), 3),
        (("pub", "-k", "demo/a", "-n", "1"), 3),
        (("get", "-s", "demo/a"), 3),
        (("info",), 3),
        (("liveliness", "get", "-k", "a"), 3),
        (("ping",), 3),
        (("put", "-k", "demo/a", "-p", "x", "-m", "client"), 1),
    ],
)
def test_what_was_tried_is_told_when_nobody_is_there(arguments: tuple[str, ...], code: int) -> None:
    where = endpoint()
    ended, lines = run(*arguments, "-e", where, "--wait", "0.05")
    assert ended == code
    told = "\n".join(lines)
    assert where in told
    assert "refused" in told
    assert "Traceback" not in told


def test_a_subscriber_says_that_nobody_is_there_and_goes_on() -> None:
    with command("sub", "-l", endpoint(), "--wait", "0.05") as sub:
        told = sub.says("nobody is there yet")
        assert "listening on tcp/127.0.0.1" in told
        assert sub.interrupt() == 130


def test_an_interruption_before_the_end_has_a_code_of_its_own() -> None:
    where = endpoint()
    with command("sub", "-k", "test/ping", "-l", where) as deaf:
        deaf.says("subscribed")
        with command("ping", "-e", where, "-w", "0", "-o", "60") as ping:
            deaf.says("put test/ping")
            assert ping.interrupt() == 130
        assert ping.lines == []


def test_an_echo_that_does_not_come_is_told() -> None:
    where = endpoint()
    with command("sub", "-k", "test/ping", "-l", where) as deaf:
        deaf.says("subscribed")
        code, lines = run("ping", "-e", where, "-w", "0", "-o", "0.05")
        assert code == 1
    assert lines == ["zenlake: no echo within 0.05 s: 0 of 100 came back"]


def test_an_address_in_use_is_told() -> None:
    where = endpoint()
    with command("sub", "-l", where) as first:
        first.says("subscribed")
        code, lines = run("sub", "-l", where)
        assert code == 1
    assert where in lines[-1]
    assert len(lines) == 1
