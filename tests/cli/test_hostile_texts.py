"""Keys, names and answers of strangers on terminals and in logs: nothing of them is obeyed."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import re
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import zenlake
from tests.api.sessions import connected, listening, where
from tests.cli.programs import command
from tests.lake.journals import Here, write
from tests.lake.rowsof import Row
from tests.waiting import until
from zenlake.api.log import LineFormatter
from zenlake.cli.app import application
from zenlake.lake import Pipeline, read_config
from zenlake.lake.maintain.status_file import write_status
from zenlake.lake.service.loop import Loop
from zenlake.lake_client import ARROW, ERROR, FACT, HEAD, PAGE
from zenlake.printable import json_text, printable, printable_lines
from zenlake.supervise.requests import HttpPage
from zenlake.supervise.status import JournalReport, LakeReport, PartStatus, Status
from zenlake.supervise.status_server import StatusServer

#: Clears the screen; sets the title; goes to the beginning of the line; begins another one, of the
#: log too; C1 and the directions of Unicode; a line break of Unicode.
BAD = "\x1b[2J\x1b]0;x\x07\rALLOW\nINFO zenlake: fine\x9b31m\u202egnp.exe\u2066\u2028\x7f\x08"
KEY = f"bad/{BAD.replace('?', '')}/k"


def is_calm(text: str) -> bool:
    """Whether a text has nothing but what is printed, its own colours and line breaks."""
    bare = re.sub(r"\x1b\[(?:\d+;?)*m", "", text)
    return all(line.isprintable() for line in bare.split("\n"))


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    """A router that a hostile program is connected to: all that it says is hostile."""
    with (
        listening(
            mode='"router"',
            adminspace__enabled="true",
            timestamping__enabled="true",
            metadata=json.dumps({"name": BAD}),
        ) as router,
        connected(router, mode='"client"', metadata=json.dumps({"name": BAD})) as stranger,
        stranger.declare_subscriber(KEY, lambda _: None),
        stranger.declare_publisher(f"{KEY}/pub"),
    ):

        def answer(query: zenlake.Query) -> None:
            with query:
                query.reply(KEY, BAD, encoding=zenlake.Encoding("text/plain").with_schema(BAD))
                query.reply_err(BAD)

        queryable = stranger.declare_queryable("bad/**", answer)
        token = stranger.liveliness().declare_token(KEY)
        over = threading.Event()

        encoding = zenlake.Encoding("text/plain").with_schema(BAD)

        def talk() -> None:
            while not over.wait(0.02):
                stranger.put(KEY, BAD, attachment=BAD, encoding=encoding)
                list(stranger.get(f"asked/x?{BAD.replace('?', '')}", timeout=0.05))

        talking = threading.Thread(target=talk)
        talking.start()
        try:
            until(lambda: list(router.get("bad/**")), "nobody answers")
            yield where(router)
        finally:
            over.set()
            talking.join()
            token.undeclare()
            queryable.undeclare()


COMMANDS = {
    "sub": ["sub", "-k", "bad/**", "-n", "1"],
    "sub --json": ["sub", "-k", "bad/**", "-n", "1", "--json"],
    "get": ["get", "-s", "bad/**"],
    "get --json": ["get", "-s", "bad/**", "--json"],
    "queryable": ["queryable", "-k", "asked/**", "-p", "x", "-n", "1"],
    "ls": ["ls"],
    "tree": ["tree"],
    "top": ["top", "--once"],
    "top --json": ["top", "--once", "--json"],
    "why": ["why", KEY],
    "why --json": ["why", KEY, "--json"],
    "info": ["info"],
    "liveliness": ["liveliness", "get", "-k", "bad/**"],
    "hz": ["hz", "bad/**", "-n", "3"],
    "bw": ["bw", "bad/**", "-n", "3"],
    "doctor": ["doctor"],
    "storage list": ["storage", "list"],
    "a mistake": ["get", "-s", f"a//{BAD}"],
    "an option that is none": ["get", f"--{BAD}"],
}


#: Those that have no reason to name a stranger's key.
QUIET = {"info", "doctor", "storage list"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_hostile_texts_without_obeying_them(place: str, name: str) -> None:
    words = COMMANDS[name]
    there = ["-e", place, "-m", "client", "--no-multicast-scouting"]
    told = CliRunner().invoke(application(words), [*words, *there], color=True)
    assert told.output
    assert "Usage" not in told.output, told.output
    assert not any(line.startswith("INFO") for line in told.output.splitlines())
    if name not in QUIET:
        assert "1b[2J" in told.output, repr(told.output)
    assert is_calm(told.stdout), repr(told.stdout)
    assert is_calm(told.stderr), repr(told.stderr)


def test_a_recorder_and_a_replay_print_nothing_of_strangers_that_commands(
    place: str, tmp_path: Path
) -> None:
    there = ["-e", place, "-m", "client"]
    folder = str(tmp_path / "j")
    with command("record", "-k", "bad/**", "--to", folder, *there) as recorder:
        recorder.says("recording 'bad/**'")
        recorder.says("rows/s")
        assert recorder.interrupt() == 130
    assert all(line.isprintable() for line in recorder.lines), recorder.lines
    assert not any(line.startswith("INFO") for line in recorder.lines)
    words = ["replay", "bad/**", "--journal", folder, "--prefix", "again", "--speed", "max"]
    words += ["--wait", "0", *there, "--no-multicast-scouting"]
    for more in ([], ["--json"]):
        told = CliRunner().invoke(application([*words, *more]), [*words, *more], color=True)
        assert "samples" in told.output, told.output
        assert is_calm(told.stdout), repr(told.stdout)
        assert is_calm(told.stderr), repr(told.stderr)


class FakeLake:
    """A lake that runs in a folder, and answers every question with hostile names and values."""

    def __init__(self, folder: Path) -> None:
        # The path of a socket is short.
        self._place = tempfile.TemporaryDirectory()
        place = f"{self._place.name}/ask"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(place)
        self._socket.listen()
        (folder / PAGE).write_text(json.dumps({"socket": place}))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        rows = pa.table({BAD: [BAD, None], "value": [BAD.encode(), b"\xff\x1b"], "n": [[BAD], []]})
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, rows.schema) as writer:
            writer.write_table(rows)
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            with line, line.makefile() as asked:
                if "WRONG" in asked.readline():
                    answer = [(ERROR, json.dumps({"error": BAD}).encode())]
                else:
                    answer = [(ARROW, stream.getvalue()), (ARROW, b""), (FACT, b"{}")]
                for kind, data in answer:
                    line.sendall(HEAD.pack(kind, len(data)) + data)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._place.cleanup()


def hostile_status() -> Status:
    """What an `up` says of itself that has read hostile texts."""
    part = PartStatus(BAD, "up", 5.0, 11, restarts=1, reason=BAD)
    found = Status("1.0", 7, BAD, time.time(), 60.0, troubles=[BAD])
    found.parts = [part]
    found.lake = LakeReport(state="retrying", error=BAD, problems=[BAD], stopped={BAD: BAD})
    found.journal = JournalReport(failure=BAD)
    found.last_error = BAD
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A journal and a lake of hostile samples, and an `up` that tells of them."""
    folder = tmp_path_factory.mktemp("hostile")
    values = [BAD.encode(), json.dumps({BAD: BAD}).encode(), b"{"]
    write(
        folder / "journal",
        [
            Row(KEY, value, n, encoding=5, schema=BAD, source=b"\x01" * 16, sn=3 * n)
            for n, value in enumerate(values)
        ],
        1,
    )
    config = read_config('{tables: {bad: {format: "bad/${id:**}"}}}')
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), config)
    loop = Loop(pipeline, Here())
    loop.turn(0.0)
    pipeline.finish()
    status = loop.status(0.0, "running")
    write_status(folder / "lake", dataclasses.replace(status, error=BAD, problems=(BAD,)))
    lake = FakeLake(folder / "lake")
    told = hostile_status().to_json()
    pages = {"/status": lambda: HttpPage(200, "application/json", told)}
    server = StatusServer("127.0.0.1", 0, pages)
    try:
        yield {
            "journal": str(folder / "journal"),
            "lake": str(folder / "lake"),
            "status": f"127.0.0.1:{server.port}",
        }
    finally:
        server.close()
        lake.close()


ON_FILES = {
    "journal ls": "journal ls {journal}",
    "journal ls --json": "journal ls {journal} --json",
    "journal cat": "journal cat {journal}",
    "journal cat --json": "journal cat {journal} --json",
    "journal verify": "journal verify {journal}",
    "ledger": "ledger {journal}",
    "ledger --json": "ledger {journal} --json",
    "lake status": "lake status --lake {lake} --journal {journal}",
    "lake status --json": "lake status --lake {lake} --journal {journal} --json",
    "lake tables": "lake tables --lake {lake}",
    "lake tables --json": "lake tables --lake {lake} --json",
    "lake suggest": "lake suggest --lake {lake}",
    "lake suggest --json": "lake suggest --lake {lake} --json",
    "lake table list": "lake table list --lake {lake}",
    "lake view list": "lake view list --lake {lake}",
    "lake alert list": "lake alert list --lake {lake}",
    "diff": "diff bad/** nothing/** --journal {journal}",
    "sql": "sql SELECT --lake {lake}",
    "sql --format json": "sql SELECT --lake {lake} --format json",
    "sql --plot": "sql SELECT --lake {lake} --plot",
    "sql that is refused": "sql WRONG --lake {lake}",
    "status": "status -e {status}",
    "status --json": "status -e {status} --json",
}
#: Those that name no key, value or reason of a stranger.
QUIET_ON_FILES = {
    "journal ls", "journal verify", "ledger", "lake tables", "lake tables --json",
    "lake table list", "lake view list", "lake alert list", "sql --plot",
}  # fmt: skip


@pytest.mark.parametrize("name", ON_FILES)
def test_a_command_prints_hostile_texts_of_files_without_obeying_them(
    files: dict[str, str], name: str
) -> None:
    words = ON_FILES[name].format(**files).split()
    told = CliRunner().invoke(application(words), words, color=True)
    assert told.output
    assert "Usage" not in told.output, told.output
    assert not any(line.startswith("INFO") for line in told.output.splitlines()), repr(told.output)
    if name not in QUIET_ON_FILES:
        assert "1b[2J" in told.output, repr(told.output)
    assert is_calm(told.stdout), repr(told.stdout)
    assert is_calm(told.stderr), repr(told.stderr)


def test_a_message_of_the_log_is_one_line() -> None:
    record = logging.LogRecord("zenlake", logging.WARNING, "", 1, "key %s", (KEY,), None)
    line = LineFormatter("%(levelname)s %(message)s").format(record)
    assert line.startswith("WARNING key bad/\\x1b[2J")
    assert line.isprintable()


def test_a_traceback_in_the_log_keeps_its_lines_and_commands_nothing() -> None:
    try:
        raise ValueError(BAD)
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("zenlake", logging.ERROR, "", 1, "it failed", (), info)
    text = LineFormatter("%(message)s").format(record)
    assert len(text.splitlines()) > 3
    assert all(line.isprintable() for line in text.split("\n"))


@given(st.text())
def test_any_text_becomes_one_line_and_json_of_it_says_the_same(text: str) -> None:
    assert printable(text).isprintable()
    assert all(line.isprintable() for line in printable_lines(text).split("\n"))
    written = json_text({"text": text})
    assert written.isprintable()
    assert json.loads(written) == {"text": text}
