"""`zenlake up`: everything with one command, in a folder of its own, on free ports.

With a lake, and the page, it is in `tests/web/test_page_of_up`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import psutil
import pytest

import zenlake
from tests.cli.programs import COMMAND, HEARING, ROOT, Program, command, endpoint, run, run_alone
from tests.waiting import SECONDS, until
from zenlake.supervise.status_server import fetch

PUT = (
    HEARING
    + """
import json, sys, zenoh
config = zenoh.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5("connect/endpoints", json.dumps([sys.argv[1]]))
session = zenoh.open(config)
for value in sys.argv[3:]:
    session.put(sys.argv[2], value, encoding="application/json")
session.close()
"""
)

GET = (
    HEARING
    + """
import json, sys, zenoh
config = zenoh.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5("connect/endpoints", json.dumps([sys.argv[1]]))
session = zenoh.open(config)
for reply in session.get(sys.argv[2]):
    print(reply.ok.key_expr, reply.ok.payload.to_string(), flush=True)
session.close()
"""
)


class Up:
    """`zenlake up` as a person runs it, but for the ports."""

    def __init__(self, data: Path, where: str, *more: str, http: int = 0) -> None:
        self.data = data
        place = f"127.0.0.1:{http}"
        if not any(
            "rest" in word for word in more
        ):  # else it would be 8000, if that is free at this moment
            more = (*more, "--rest-http-port", "127.0.0.1:0")
        self.program = command(
            "up", "--data", str(data), "-l", where, "--json", "--http", place, *more
        )

    def ready(self) -> dict[str, Any]:
        """The router is up."""
        found: dict[str, Any] = json.loads(self.program.says('"ready": "router"', 150))
        return found

    def all_ready(self) -> None:
        """Everything is up, the lake too."""
        self.program.says('"ready": "all"', 150)

    def status(self) -> dict[str, Any]:
        _, lines = run_alone("status", "--data", str(self.data), "--json")
        found: dict[str, Any] = json.loads(lines[0])
        return found

    def part(self, name: str) -> dict[str, Any]:
        found: dict[str, Any]
        (found,) = [one for one in self.status()["parts"] if one["name"] == name]
        return found

    def family(self) -> list[psutil.Process]:
        found: list[psutil.Process] = psutil.Process(self.program.process.pid).children(True)
        return found


def put(where: str, key: str, *values: str) -> None:
    with Program("-c", PUT, where, key, *values) as eclipse:
        assert eclipse.ends() == 0


def got(where: str, selector: str) -> list[str]:
    with Program("-c", GET, where, selector) as eclipse:
        assert eclipse.ends() == 0
        return [line for line in eclipse.lines if line.startswith("robot/")]


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    """A table as somebody sees it who knows nothing of zenlake."""
    import duckdb
    from deltalake import DeltaTable

    if not (lake / table / "_delta_log").is_dir():
        return []
    files = DeltaTable(str(lake / table)).file_uris()
    if not files:
        return []
    columns = "* EXCLUDE (time, received)" if table == "samples" else "id, percent"
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {columns} FROM read_parquet(?)", [files])
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def others_may(*places: Path) -> list[str]:
    """What below these places others may read, write or enter, where nothing above stops them."""
    found = []
    for place in places:
        with contextlib.suppress(FileNotFoundError):
            mode = place.lstat().st_mode
            if mode & 0o007 and not stat.S_ISLNK(mode):
                found.append(str(place))
            if stat.S_ISDIR(mode) and mode & 0o007:
                found += others_may(*place.iterdir())
    return found


def test_with_users_it_is_well_its_operator_connects_and_others_read_no_file(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)  # as a folder is that somebody else has made
    (data / "users").write_text("ann:long enough\n")
    (data / "users").chmod(0o600)
    before = os.umask(0)
    try:
        up = Up(data, endpoint(), "--no-lake", "--open", "--rest-http-port", "127.0.0.1:0")
    finally:
        os.umask(before)
    with up.program as program:
        told = up.ready()
        up.all_ready()
        operator = str(data / "run" / "operator.json5")
        assert f"-c {operator}" in told["try"][0]
        assert run_alone("put", "-k", "robot/7/battery", "-p", "98", "-c", operator)[0] == 0
        until(lambda: up.status()["journal"]["durable"] == 1)
        stranger = ("-m", "client", "-e", told["locators"][0])
        assert run("get", "-s", "robot/**", *stranger)[0] == 1
        assert others_may(data) == [str(data)]
        assert stat.S_ISSOCK((data / "run" / "router.sock").stat().st_mode)
        assert program.interrupt(signal.SIGTERM) == 0
    assert list((data / "run").iterdir()) == []


def test_a_page_that_cannot_be_served_keeps_it_from_being_well(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        rest = f"plugins/rest/http_port:{taken}"
        up = Up(tmp_path / "data", endpoint(), "--no-lake", "--cfg", rest)
        with up.program as program:
            told = up.ready()
            until(lambda: bool(up.status()["reasons"]))
            assert up.status()["health"] == "unwell"
            (reason,) = up.status()["reasons"]
            assert reason.startswith("plugins/rest: ")
            host, _, port = told["http"].removeprefix("http://").rpartition(":")
            assert fetch(host, int(port), "/ready") == (503, f"{reason}\n")
            assert fetch(host, int(port), "/health") == (200, f"{reason}\n")
            assert "zenlake_healthy 0" in fetch(host, int(port), "/metrics")[1]
            assert program.interrupt(signal.SIGTERM) == 0
        assert not any('"ready": "all"' in line for line in program.lines)


def test_a_port_that_is_taken_is_told_in_words(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        where = f"tcp/127.0.0.1:{other.getsockname()[1]}"
        with Up(tmp_path / "data", where, "--no-lake").program as program:
            assert program.ends() == 1
    assert "the router ended with" in (told := "\n".join(program.lines))
    assert where in told


def test_without_a_lake_it_records_and_answers_and_leaves_nothing_behind(tmp_path: Path) -> None:
    other = socket.create_server(("127.0.0.1", 0))
    taken = other.getsockname()[1]
    up = Up(tmp_path / "data", where := endpoint(), "--no-lake", http=taken)
    with other, up.program as program:
        program.says(f"port {taken} is taken; metrics and status are at http://127.0.0.1:")
        told = up.ready()
        assert told["locators"] == [where]
        assert (tmp_path / "data" / "journal" / "journal.json").is_file()
        family = up.family()
        assert program.interrupt(signal.SIGTERM) == 0
    psutil.wait_procs(family, timeout=SECONDS)
    assert [one for one in family if one.is_running()] == []


def test_a_router_that_is_killed_is_started_again_and_clients_come_back(tmp_path: Path) -> None:
    # With a storage of what is recorded too: each key is answered once.
    storages = 'plugins/storage_manager:{storages:{s:{key_expr:"robot/**",volume:"memory"}}}'
    up = Up(tmp_path / "data", where := endpoint(), "--no-lake", "--cfg", storages)

    def answers() -> list[str]:
        replies = session.get("robot/7/*", consolidation=zenlake.ConsolidationMode.NONE)
        return [reply.ok.payload.to_string() for reply in replies if reply.ok is not None]

    config = zenlake.Config.from_json5(
        json.dumps(
            {
                "mode": "client",
                "connect": {"endpoints": [where]},
                "scouting": {"multicast": {"enabled": False}},
            }
        )
    )
    with up.program as program:
        up.ready()
        with zenlake.open(config) as session:
            session.put("robot/7/battery", "1")
            until(lambda: up.status()["journal"]["durable"] == 1)
            until(lambda: answers() == ["1"])
            before = up.part("router")["pid"]
            os.kill(before, signal.SIGKILL)
            program.says("was killed by SIGKILL; it is started again")
            program.says("the router is up again")
            until(lambda: bool(session.info.transports()))
            session.put("robot/7/battery", "2")
            until(lambda: up.status()["journal"]["durable"] == 2)
            until(lambda: answers() == ["2"])
            assert (
                len(list(session.get("@/*/router/status/plugins/storage_manager/storages/s"))) == 1
            )
        after = up.part("router")
        assert (after["restarts"], after["state"]) == (1, "up")
        assert after["pid"] != before
        assert program.interrupt() == 130


def test_a_router_that_hangs_is_killed_when_it_is_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = Up(tmp_path / "data", endpoint(), "--no-lake")
    with up.program as program:
        up.ready()
        family = up.family()
        psutil.Process(up.part("router")["pid"]).suspend()
        program.process.send_signal(signal.SIGTERM)
        program.process.send_signal(signal.SIGTERM)
        until(lambda: program.process.poll() is not None)
        assert program.ends() == 0
    psutil.wait_procs(family, timeout=SECONDS)
    assert [one for one in family if one.is_running()] == []
    assert any("the router was killed" in line for line in program.lines)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no terminals of that kind")
def test_on_a_terminal_it_is_a_screen_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    arguments = ["up", "--data", "data", "--no-lake", "-l", endpoint(), "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments, "--no-multicast-scouting"],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env=os.environ | {"PYTHONPATH": str(ROOT / os.environ.get("PYTHONPATH", "src"))},
    ) as program:
        os.close(theirs)
        shown = b""
        while b"well" not in shown or b"recorder" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, b"\x03")
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while more := os.read(ours, 4096):
                shown += more
        os.close(ours)
        assert program.wait(SECONDS) == 130
    assert "everything is kept in data" in shown.decode("utf-8", "replace")


def test_one_folder_has_one_up_and_status_finds_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run_alone("status", "--data", str(data))[0] == 3
    up = Up(data, endpoint(), "--no-lake")
    with up.program as program:
        told = up.ready()
        up.all_ready()
        code, lines = run_alone("status", "--data", str(data), "--wait", "20")
        assert code == 0
        assert lines[0].endswith("well")
        assert run_alone("status", "-e", told["http"])[0] == 0
        with Up(data, endpoint(), "--no-lake").program as second:
            assert second.ends() == 1
        assert f"process id {program.process.pid}" in second.lines[-1]
        host, _, port = told["http"].removeprefix("http://").rpartition(":")
        code, text = fetch(host, int(port), "/metrics")
        assert code == 200
        assert 'zenlake_part_up{part="router"} 1' in text
        assert "zenoh_transports_opened" in text
        assert fetch(host, int(port), "/health") == (200, "well\n")
        assert fetch(host, int(port), "/ready") == (200, "well\n")
        assert program.interrupt() == 130
    code, lines = run_alone("status", "--data", str(data))
    assert code == 3
    assert "no `zenlake up` runs" in lines[-1]


def test_a_folder_that_cannot_be_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with command("up", "--data", str(tmp_path / "file" / "data"), "--no-lake") as program:
        assert program.ends() == 1
    assert "cannot write to" in program.lines[-1]
    assert "--data" in program.lines[-1]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux ends children with parents")
def test_when_it_is_killed_its_programs_end_too(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", endpoint(), "--no-lake")
    with up.program as program:
        up.ready()
        family = up.family()
        assert family
        program.process.kill()
        program.process.wait()
        _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert alive == []


def told_to_the_router(
    *options: str, folder: Path, opened: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """The last journal and the other options that the router of `up` would be started with."""
    import zenlake.cli.up as up

    given = dict(zip(options[::2], options[1::2], strict=True))
    journal = up._journal(folder, ["**"], None, None, "50ms")
    file = Path(given["-c"]) if "-c" in given else None
    listen = [given["-l"]] if "-l" in given else None
    changes = [given["--cfg"]] if "--cfg" in given else None
    plan = up._plan(folder, journal, file, listen, None, changes, False, opened)
    *before, option, last = plan.router
    assert option == "--cfg"
    journals = json.loads(last.removeprefix("journals:"))
    assert journals[0] == journal
    return journals[-1], before


def test_journals_of_a_file_are_recorded_beside_the_one_of_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "router.json5"
    file.write_text('{journals: [{name: "other", dir: "/elsewhere", key_exprs: ["a/**"]}]}')
    other, options = told_to_the_router("-c", str(file), folder=tmp_path)
    assert other["name"] == "other"
    assert options == ["-c", str(file), "-l", "tcp/127.0.0.1:7447"]
    file.write_text('{listen: {endpoints: ["tcp/0.0.0.0:7"]}}')
    assert told_to_the_router("-c", str(file), folder=tmp_path)[1] == ["-c", str(file)]


def test_journals_of_an_option_are_recorded_beside_it_too(tmp_path: Path) -> None:
    other = 'journals:[{name: "other", dir: "/elsewhere", key_exprs: ["a/**"]}]'
    journal, options = told_to_the_router("--cfg", other, folder=tmp_path)
    assert journal["name"] == "other"
    assert options == ["-l", "tcp/127.0.0.1:7447", "--cfg", other]


GUARDED = """{
  transport: {auth: {usrpwd: {dictionary_file: "/u"}}},
  plugins: {rest: {http_port: 1, tokens_file: "/t"}},
}"""


def test_no_option_of_up_or_router_opens_what_the_file_closes(tmp_path: Path) -> None:
    file = tmp_path / "router.json5"
    file.write_text(GUARDED)
    change = "transport/auth/usrpwd/dictionary_file:null"
    with pytest.raises(zenlake.ZError, match=r"router.json5 says so, and an option would undo"):
        told_to_the_router("-c", str(file), "--cfg", change, folder=tmp_path)
    code, lines = run_alone("router", "-c", str(file), "--cfg", change)
    assert code == 2
    assert "an option would undo that" in lines[0]
    told_to_the_router("-c", str(file), "--cfg", "plugins/rest/max_body:1", folder=tmp_path)
    told_to_the_router("-c", str(file), "-l", "tcp/0.0.0.0:7", folder=tmp_path)  # it asks for users
    file.write_text("{}")
    told_to_the_router("-c", str(file), "-l", "tcp/0.0.0.0:7", folder=tmp_path)


def test_where_up_serves_http_opens_nothing_that_the_file_closes(tmp_path: Path) -> None:
    import zenlake.cli.up as up

    file = tmp_path / "router.json5"
    file.write_text(
        '{listen: {endpoints: ["tcp/127.0.0.1:7"]}, '
        'plugins: {rest: {http_port: "127.0.0.1:1", allow_anonymous: true}}}'
    )
    journal = up._journal(tmp_path, ["**"], None, None, "50ms")
    plan = up._plan(tmp_path, journal, file, None, None, None, False)
    up._with_page(plan, "127.0.0.1:2", file, None)
    with pytest.raises(zenlake.ZError, match=r"plugins/rest: only this machine reaches it, and 0"):
        up._with_page(plan, "0.0.0.0:2", file, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.7", "[::]", "robot.example"])
@pytest.mark.parametrize("port", ["http", "spark-connect"])
def test_a_port_that_asks_for_no_password_is_for_this_machine_unless_an_option_says_more(
    tmp_path: Path, port: str, host: str
) -> None:
    from zenlake.cli.anonymous import AnonymousPort, refuse_others
    from zenlake.cli.own_spark import connect_conf
    from zenlake.cli.up_http import http_place

    code, lines = run_alone("up", f"--{port}", f"{host}:7", "--data", str(tmp_path / "data"))
    assert code == 2
    assert f"add --allow-anonymous {port} " in lines[-1]
    assert not (tmp_path / "data").exists()
    if port == "spark-connect":
        code, lines = run_alone("lake", "run", "--spark-connect", f"{host}:7")
        assert code == 2
        assert "runs any program in this Spark" in lines[-1]
        allowed = connect_conf(f"{host}:7", [AnonymousPort.SPARK_CONNECT])
        assert f"spark.connect.grpc.binding.address={host}" in allowed
    else:
        assert http_place(f"{host}:7", [AnonymousPort.HTTP]) == (host.strip("[]"), 7)
    other = ({"http", "spark-connect"} - {port}).pop()
    with pytest.raises(zenlake.ZError, match="whoever reaches that address"):
        refuse_others(AnonymousPort(port), host, [AnonymousPort(other)])


@pytest.mark.parametrize("host", ["", "127.0.0.1:", "127.0.0.9:", "[::1]:", "localhost:"])
def test_a_port_of_this_machine_needs_no_option(host: str) -> None:
    from zenlake.cli.own_spark import connect_conf
    from zenlake.cli.up_http import http_place

    bare = host.removesuffix(":") or "127.0.0.1"
    assert f"spark.connect.grpc.binding.address={bare}" in connect_conf(f"{host}7")
    assert http_place(f"{host}7") == (bare.strip("[]"), 7)


def test_what_up_allows_spark_s_clients_reaches_the_lake(tmp_path: Path) -> None:
    import zenlake.cli.up as up

    journal = up._journal(tmp_path, ["**"], None, None, "50ms")
    plan = up._plan(tmp_path, journal, None, None, None, None, False)
    allowed = ["--spark-connect", "0.0.0.0:7", "--allow-anonymous", "spark-connect"]
    lake = up._with_lake(plan, "local[*]", [], allowed, False).lake
    assert lake is not None
    assert lake[-4:] == allowed


def test_a_file_that_stays_on_this_machine_is_not_opened_without_users(tmp_path: Path) -> None:
    file = tmp_path / "router.json5"
    file.write_text('{listen: {endpoints: ["tcp/127.0.0.1:7", "unixsock-stream//s"]}}')
    given = ("-c", str(file), "-l", "tcp/0.0.0.0:7")
    with pytest.raises(zenlake.ZError, match="only this machine reaches it"):
        told_to_the_router(*given, folder=tmp_path)
    (tmp_path / "users").write_text("ann:long enough\n")
    _, options = told_to_the_router(*given, folder=tmp_path, opened=True)
    assert f'transport/auth/usrpwd/dictionary_file:"{tmp_path}/users"' in options


def test_open_keeps_users_and_certificates_of_the_file_and_is_not_undone(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ann:long enough\n")
    file = tmp_path / "router.json5"
    file.write_text(
        '{transport: {auth: {usrpwd: {dictionary_file: "/u"}}, link: {tls: {enable_mtls: true, '
        'listen_private_key: "/k", listen_certificate: "/c"}}}}'
    )
    _, options = told_to_the_router("-c", str(file), folder=tmp_path, opened=True)
    assert options == ["-c", str(file), "-l", "tls/[::]:7447"]
    undone = "transport/auth/usrpwd/dictionary_file:null"
    with pytest.raises(zenlake.ZError, match="--open says so"):
        told_to_the_router("--cfg", undone, folder=tmp_path, opened=True)


def test_options_keep_what_the_file_says_of_http(tmp_path: Path) -> None:
    import zenlake.cli.up as up
    from zenlake.supervise.plan import Plan

    plan = Plan(data=tmp_path, shown=str(tmp_path), router=[])
    file = tmp_path / "router.json5"

    def page(place: str | None, text: str, *changes: str) -> dict[str, Any]:
        file.write_text(text)
        option, found = up._with_page(plan, place, file, list(changes)).page
        assert option == "--cfg"
        zenlake.Config().insert_json5(*found.split(":", 1))  # the router takes it
        settings: dict[str, Any] = json.loads(found.removeprefix("plugins/rest:"))
        return settings

    beside = {"status_file": str(tmp_path / "up.json"), "lake": str(tmp_path / "lake")}
    guarded = '{plugins: {rest: {http_port: "127.0.0.1:9", tokens_file: "/t"}}}'
    told = {**beside, "http_port": "127.0.0.1:9", "tokens_file": "/t"}
    settings = page(None, guarded)
    assert settings | told == settings
    settings = page("8123", guarded)
    assert settings | told | {"http_port": "8123", "__required__": True} == settings
    assert page("8123", "{}") == {**beside, "http_port": "8123", "__required__": True}
    settings = page(None, "{}", 'plugins/rest/http_port:"7"')
    assert settings | {**beside, "http_port": "7"} == settings
    settings = page(None, "{ /* the rest is as it was */ }")
    assert settings["http_port"].startswith("127.0.0.1:")
    assert up._with_page(plan, "none", file, None).page == ["--rest-http-port", "none"]


def test_rules_for_keys_reach_the_router_and_segments_are_sealed_as_often_as_they_need(
    tmp_path: Path,
) -> None:
    import zenlake.cli.up as up
    from zenlake.cli.quantities import rules
    from zenlake.config import Config

    found = rules(["camera/**=2h", "a=b/lidar=90s"], "--retain")
    assert found == [("camera/**", 7200.0), ("a=b/lidar", 90.0)]
    journal = up._journal(tmp_path, ["**"], None, 86400.0, "50ms", found)
    assert (journal["retain_age"], journal["segment_age"]) == (86400.0, 90.0 / 16)
    told = Config.from_json5(json.dumps({"journals": [journal]})).resolved.journals[0]
    assert [(str(one.keys), one.age) for one in told.retain] == found


def test_without_a_word_the_journal_has_a_share_of_the_disk_and_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    journal, options = told_to_the_router(folder=Path("data"))
    room = shutil.disk_usage(tmp_path)
    assert 0 < journal["retain_bytes"] <= room.total / 5
    assert journal["hold_bytes"] <= journal["retain_bytes"]
    assert journal["segment_bytes"] <= journal["retain_bytes"] / 16
    assert journal["dir"] == str(tmp_path / "data" / "journal")
    assert options == ["-l", "tcp/127.0.0.1:7447"]  # nobody else may connect
