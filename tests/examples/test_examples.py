"""Every program in `examples` beside another, and beside itself on the real eclipse-zenoh."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.programs import ROOT, Program, endpoint, script

EXAMPLES = ROOT / "examples"
IMPORT = "import zenlake as zenoh"
# A peer opens after `scouting/delay` though it is not connected yet: on a busy machine it is not
# after half a second. Not longer than needed: Eclipse now and then waits for all of it in vain.
ALONE = ("--no-multicast-scouting", "--cfg", "scouting/delay:5000")

Start = Callable[..., Program]

# Which package runs the program that listens, and which one the program that connects.
OURS = pytest.param(("zenlake", "zenlake"), id="ours", marks=pytest.mark.slow)
MIXED = [
    pytest.param(("zenlake", "zenoh"), id="theirs connects", marks=pytest.mark.interop),
    pytest.param(("zenoh", "zenlake"), id="theirs listens", marks=pytest.mark.interop),
]


def example(name: str, package: str, folder: Path) -> Path:
    """The file of an example; for the real package, with nothing changed but its import."""
    file = EXAMPLES / f"{name}.py"
    if package == "zenlake":
        return file
    text = file.read_text("utf-8")
    assert text.count(IMPORT) == 1
    shutil.copy(EXAMPLES / "options.py", folder)
    changed = folder / file.name
    changed.write_text(text.replace(IMPORT, "import zenoh"), encoding="utf-8")
    return changed


@pytest.fixture
def host(packages: tuple[str, str], tmp_path: Path) -> Start:
    def start(name: str, *arguments: str) -> Program:
        return script(example(name, packages[0], tmp_path), *arguments, *ALONE)

    return start


@pytest.fixture
def guest(packages: tuple[str, str], tmp_path: Path) -> Start:
    def start(name: str, *arguments: str) -> Program:
        return script(example(name, packages[1], tmp_path), *arguments, *ALONE)

    return start


@pytest.mark.parametrize("packages", [OURS, *MIXED])
def test_what_is_put_published_and_deleted_is_heard(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_sub", "-l", where, "-k", "demo/**") as sub:
        sub.says("Press CTRL-C to quit...")
        with guest("z_put", "-e", where, "-k", "demo/a", "-p", "hello") as put:
            assert put.ends() == 0
        assert put.lines[-1] == "Putting Data ('demo/a': 'hello')..."
        assert sub.says(">>") == ">> [Subscriber] Received SampleKind.PUT ('demo/a': 'hello')"
        with guest("z_delete", "-e", where, "-k", "demo/a") as delete:
            assert delete.ends() == 0
        assert delete.lines[-1] == "Deleting resources matching 'demo/a'..."
        assert sub.says(">>") == ">> [Subscriber] Received SampleKind.DELETE ('demo/a': '')"
        with guest("z_pub", "-e", where, "--iter", "2", "--interval", "0.01") as pub:
            assert pub.ends() == 0
        assert pub.lines[-1].endswith("'[   1] Pub from Python!')...")
        sub.says("('demo/example/zenoh-python-pub': '[   0] Pub from Python!')")
        sub.says("('demo/example/zenoh-python-pub': '[   1] Pub from Python!')")
        assert sub.interrupt() == 0


@pytest.mark.parametrize("packages", [OURS])
def test_the_newest_are_pulled(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_pull", "-l", where, "--interval", "0.05", "--size", "1") as pull:
        pull.says("Press CTRL-C to quit...")
        with guest("z_put", "-e", where) as put:
            assert put.ends() == 0
        pull.says(
            ">> [Subscriber] Received SampleKind.PUT "
            "('demo/example/zenoh-python-put': 'Put from Python!')"
        )
        assert pull.interrupt() == 0


@pytest.mark.parametrize("packages", [OURS])
def test_the_first_subscriber_is_told_to_the_publisher(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_pub", "-l", where, "--interval", "0.05", "--add-matching-listener") as pub:
        pub.says("Press CTRL-C to quit...")
        with guest("z_sub", "-e", where) as sub:
            pub.says("Publisher has matching subscribers.")
            sub.says(">> [Subscriber] Received")
            assert sub.interrupt() == 0
        pub.says("Publisher has NO MORE matching subscribers.")
        assert pub.interrupt() == 0


@pytest.mark.parametrize("packages", [OURS, *MIXED])
def test_a_storage_remembers(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_storage", "-l", where, "-k", "demo/**", "--complete") as storage:
        storage.says("Press CTRL-C to quit...")
        with guest("z_put", "-e", where, "-k", "demo/s", "-p", "kept") as put:
            assert put.ends() == 0
        storage.says(">> [Subscriber] Received SampleKind.PUT ('demo/s': 'kept')")
        with guest("z_get", "-e", where, "-s", "demo/*", "-t", "ALL_COMPLETE") as get:
            assert get.ends() == 0
        assert get.lines[-2:] == ["Sending Query 'demo/*'...", ">> Received ('demo/s': 'kept')"]
        storage.says(">> [Queryable ] Received Query 'demo/*'")
        with guest("z_delete", "-e", where, "-k", "demo/s") as delete:
            assert delete.ends() == 0
        storage.says(">> [Subscriber] Received SampleKind.DELETE ('demo/s': '')")
        with guest("z_get", "-e", where, "-s", "demo/*") as get:
            assert get.ends() == 0
        assert get.lines[-1] == "Sending Query 'demo/*'..."
        assert storage.interrupt() == 0


@pytest.mark.parametrize("packages", [OURS, *MIXED])
def test_questions_are_asked_again_and_again(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_queryable", "-l", where, "-k", "demo/q", "-p", "an answer") as queryable:
        queryable.says("Press CTRL-C to quit...")
        with guest(
            "z_querier", "-e", where, "-s", "demo/q?x=1", "-p", "why", "--iter", "1",
            "--add-matching-listener",
        ) as querier:  # fmt: skip
            assert querier.ends() == 0
        # Two threads of the program print: a line of one may lack its end before the other's.
        printed = "\n".join(querier.lines)
        assert "Querier has matching queryables." in printed
        assert "Querying 'demo/q?x=1' with payload '[   0] why')..." in printed
        assert ">> Received ('demo/q': 'an answer')" in querier.lines
        queryable.says(">> [Queryable ] Received Query 'demo/q?x=1' with payload: [   0] why")
        assert queryable.interrupt() == 0


@pytest.mark.parametrize("packages", [OURS, *MIXED])
def test_who_is_alive_is_known(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_liveliness", "-l", where, "-k", "group1/me") as token:
        token.says("Press CTRL-C to quit...")
        with guest("z_info", "-e", where) as info:
            assert info.ends() == 0
        assert info.lines[-2] == "routers: []"
        assert info.lines[-1] != "peers: []"
        with guest("z_get_liveliness", "-e", where) as get:
            assert get.ends() == 0
        assert get.lines[-1] == ">> Alive token ('group1/me')"
        with guest("z_sub_liveliness", "-e", where, "--history", "true") as sub:
            sub.says(">> [LivelinessSubscriber] New alive token ('group1/me')")
            assert token.interrupt() == 0
            sub.says(">> [LivelinessSubscriber] Dropped token ('group1/me')")


@pytest.mark.parametrize("packages", [OURS, *MIXED])
def test_round_trips_are_measured(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_pong", "-l", where) as pong:
        pong.says("Press CTRL-C to quit...")
        with guest("z_ping", "-e", where, "-n", "3", "-w", "0.01", "8") as ping:
            assert ping.ends() == 0
        assert ping.lines[-4] == "Warming up for 0.01..."
        assert ping.lines[-1].startswith("8 bytes: seq=2 rtt=")
        assert pong.interrupt() == 0


@pytest.mark.parametrize("packages", [OURS])
def test_throughput_is_measured(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_sub_thr", "-l", where, "-n", "500") as sub:
        sub.says("Press CTRL-C to quit...")
        with guest("z_pub_thr", "-e", where, "8") as pub:
            sub.says("msgs/sec")
            assert pub.interrupt() == 0
        assert sub.interrupt() == 0


@pytest.mark.parametrize("packages", [OURS])
def test_what_comes_is_forwarded(host: Start, guest: Start) -> None:
    where = endpoint()
    with host("z_forward", "-l", where, "-k", "demo/in/*", "-f", "demo/out") as forward:
        forward.says("Forwarding data from 'demo/in/*' to 'demo/out'...")
        with guest("z_sub", "-e", where, "-k", "demo/out") as sub:
            sub.says("Press CTRL-C to quit...")
            with guest("z_put", "-e", where, "-k", "demo/in/1", "-p", "onward") as put:
                assert put.ends() == 0
            sub.says(">> [Subscriber] Received SampleKind.PUT ('demo/out': 'onward')")


@pytest.mark.slow
def test_who_is_there_is_found() -> None:
    group = (
        "--cfg", 'scouting/multicast/interface:"lo"',
        "--cfg", 'scouting/multicast/address:"224.0.0.233:7993"',
    )  # fmt: skip
    with script(EXAMPLES / "z_liveliness.py", "-l", "tcp/127.0.0.1:0", *group) as there:
        there.says("Press CTRL-C to quit...")
        with script(EXAMPLES / "z_scout.py", *group) as scout:
            scout.says("Scouting...")
            assert "tcp/127.0.0.1:" in scout.says("peer")
            assert scout.ends() == 0


@pytest.mark.parametrize("package", ["zenlake", pytest.param("zenoh", marks=pytest.mark.interop)])
def test_what_can_be_sent_is_read_back(package: str, tmp_path: Path) -> None:
    with script(example("z_bytes", package, tmp_path)) as program:
        assert program.ends() == 0
    assert program.lines == []


def test_every_program_is_run_here() -> None:
    texts = [file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py")]
    left_out = [
        file.stem
        for file in EXAMPLES.glob("z_*.py")
        if not any(f'"{file.stem}' in text for text in texts)
    ]
    assert left_out == []
