"""What a user can do wrong: each ends with one clear line and a documented code, never a traceback.

`endings` are the lines; beside them a command may say that no node is there.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.programs import COMMAND, ROOT, command, endpoint, run_alone
from tests.waiting import SECONDS
from zenlake.cli.ending import ended_well
from zenlake.journal import JournalWriter

ALONE = ("--no-multicast-scouting", "--wait", "0.05")
#: An endpoint that nobody listens on, chosen when a test runs.
FREE = "FREE"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with things that are not what they should be."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes.json5").write_bytes(b"{mode: '\xff'}")
    (tmp_path / "torn.yaml").write_text("mode: [")
    (tmp_path / "wrong.json5").write_text("{mode: 5, konnect: {}}")
    (tmp_path / "x.parquet").write_text("no parquet")
    (tmp_path / "x.mcap").write_text("no")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "journal.json").write_text("{broken")
    JournalWriter.open(tmp_path / "empty").close()
    return tmp_path


NETWORK: list[tuple[int, str, tuple[str, ...]]] = [
    (1, "refused", ("put", "-k", "a", "-p", "x", "-m", "client", "-e", FREE)),
    (1, "nobody to connect to", ("put", "-k", "a", "-p", "x", "-m", "client")),
    (3, "refused", ("put", "-k", "a", "-p", "x", "-e", FREE)),
    (3, "refused", ("get", "-s", "a", "-e", FREE)),
    (3, "is not a port", ("put", "-k", "a", "-p", "x", "-e", "tcp/localhost:99999")),
    (2, "names no protocol", ("sub", "-e", "nonsense")),
    (1, "nowhere", ("sub", "-l", "unixsock-stream//nowhere/sock")),
    (1, "192.0.2.77", ("sub", "-l", "tcp/192.0.2.77:7447")),
    (2, "tls", ("sub", "-l", "tls/127.0.0.1:0")),
    (2, "a//b", ("put", "-k", "a//b", "-p", "x")),
    (2, "\\udcff", ("sub", "-k", "a\udcff")),
    (2, "encoding", ("put", "-k", "a", "-p", "x", "--encoding", "y" * 400)),
    (2, "robot", ("scout", "--what", "robot")),
    (2, "cannot be read", ("info", "-c", "nowhere.json5")),
    (2, "cannot be read", ("info", "-c", "folder")),
    (2, "not UTF-8", ("info", "-c", "bytes.json5")),
    (2, "torn.yaml:1", ("info", "-c", "torn.yaml")),
    (2, "KEY:VALUE", ("info", "--cfg", "mode")),
    (2, "hexadecimal", ("router", "-i", "xyz")),
    (1, "192.0.2.77", ("router", "-l", "tcp/192.0.2.77:1")),
    (1, "file", ("record", "-k", "a", "--to", "file")),
    (1, "journal.json", ("record", "-k", "a", "--to", "torn")),
    (2, "is a URI", ("record", "-k", "a", "--to", "s3://bucket/journal")),
    (2, "is not a policy", ("record", "-k", "a", "--to", "r", "--fsync", "seldom")),
    (2, "a//b", ("top", "a//b", "--once")),
    (1, "nobody answers", ("ledger", "--name", "nothere", "-l", "tcp/127.0.0.1:0")),
]

ALONE_CASES: list[tuple[int, str, tuple[str, ...]]] = [
    (2, "No such command 'pupp'", ("pupp",)),
    (2, "No such option: --nope", ("put", "--nope")),
    (1, "is not a journal", ("journal", "ls", "nowhere")),
    (1, "is not a journal", ("journal", "ls", "folder")),
    (1, "is not a journal", ("journal", "cat", "file")),
    (1, "journal.json", ("journal", "verify", "torn")),
    (1, "is not a journal", ("ledger", "nowhere")),
    (2, "brackets", ("journal", "cat", "empty", "--time", "yesterday")),
    (2, "a//b", ("journal", "cat", "empty", "-k", "a//b")),
    (1, "No such file", ("journal", "export", "empty", "--parquet", "/nowhere/x.parquet")),
    (1, "irectory", ("journal", "export", "empty", "--parquet", "folder")),
    (1, "No such file", ("journal", "import", "new", "nowhere.parquet")),
    (1, "is no Parquet file", ("journal", "import", "new", "x.parquet")),
    (1, "is no MCAP file", ("journal", "import", "new", "x.mcap")),
    (1, "irectory", ("journal", "import", "new", "folder")),
    (2, "is a URI", ("journal", "import", "s3://bucket/journal", "x.mcap")),
    (1, "cannot be read", ("check-config", "nowhere.json5")),
    (1, "not UTF-8", ("check-config", "bytes.json5")),
    (2, "cannot be read", ("acl", "explain", "--config", "x.json5", "--op", "put", "--key", "a")),
    (2, "hexadecimal", ("wire", "zz")),
]


@pytest.mark.parametrize(
    ("code", "said", "arguments"),
    [(code, said, (*words, *ALONE)) for code, said, words in NETWORK] + ALONE_CASES,
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_a_mistake_is_told_in_one_line(code: int, said: str, arguments: tuple[str, ...]) -> None:
    where = endpoint()
    found, lines = run_alone(*[where if word == FREE else word for word in arguments])
    endings = [line for line in lines if "nobody is there yet" not in line] or lines
    assert found == code, lines
    assert said in endings[-1]
    assert len(endings) == 1, lines
    assert "Traceback" not in endings[0]


def test_every_problem_of_a_configuration_has_its_line() -> None:
    code, lines = run_alone("info", "-c", "wrong.json5")
    assert code == 2
    assert len(lines) == 2
    assert "did you mean 'connect'" in lines[1]


def test_a_folder_that_cannot_be_written_is_told(place: Path) -> None:
    code, lines = run_alone("record", "-k", "a", "--to", "/proc/nothing/here", *ALONE)
    assert code == 1
    assert "/proc/nothing" in lines[-1]


@pytest.mark.parametrize("missing", ["pyarrow", "numpy"])
def test_an_extra_that_is_not_installed_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("zenlake.journal")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    code, lines = run_alone("journal", "verify", "empty")
    assert code == 1
    assert lines[-1].endswith("pip install 'zenlake[journal]'")


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"tcp/127.0.0.1:{taken.getsockname()[1]}"
        code, lines = run_alone("router", "-l", where, *ALONE)
    assert code == 1
    assert len(lines) == 1
    assert where in lines[0]


@pytest.fixture
def pipe() -> Iterator[subprocess.Popen[str]]:
    """A program whose output is read by the test, which may stop reading."""
    path = os.environ.get("PYTHONPATH", "")
    environment = os.environ | {"PYTHONPATH": str(ROOT / path) if path else ""}
    folder = Path("flood")
    with JournalWriter.open(folder) as writer:
        from tests.journal.rows import rows

        for start in range(0, 20_000, 1000):
            writer.append(0, rows(["a"] * 1000, start=start))
    words = [sys.executable, "-c", COMMAND, "journal", "cat", str(folder)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as program:
        yield program
        program.kill()


def test_a_reader_that_goes_away_ends_it_without_a_word(pipe: subprocess.Popen[str]) -> None:
    assert pipe.stdout is not None
    assert pipe.stderr is not None
    assert "put a: 0" in pipe.stdout.readline()
    pipe.stdout.close()
    assert pipe.stderr.read() == ""
    assert pipe.wait(SECONDS) == 141


@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["Ctrl-C", "SIGTERM"]
)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sub", "-l", FREE), "subscribed"),
        (("queryable", "-k", "a", "-l", FREE), "answering"),
        (("router", "-l", FREE), "listens on"),
        (("hz", "a", "-l", FREE), "measuring"),
        (("pong", "-l", FREE), "sending"),
        (("liveliness", "sub", "-k", "a", "-l", FREE), "watching"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_interruption_is_quiet(
    arguments: tuple[str, ...], said: str, how: signal.Signals, code: int
) -> None:
    where = endpoint()
    words = [where if word == FREE else word for word in arguments]
    with command(*words, "--wait", "60") as program:
        program.says(said)
        assert program.interrupt(how) == (3 if arguments[0] == "hz" and not code else code)
    assert not any("Traceback" in line or "Interrupt" in line for line in program.lines)


def test_a_time_beyond_all_clocks_is_refused() -> None:
    code, lines = run_alone("pub", "-n", "2", "-i", "1e300", "-l", "tcp/127.0.0.1:0", *ALONE)
    assert code == 2
    assert "too large" in lines[-1]


def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(KeyError), ended_well():
        raise KeyError("ours")
