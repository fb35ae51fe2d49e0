"""Keys, names and answers of strangers on terminals and in logs: nothing of them is obeyed."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import zenlake
from tests.api.sessions import connected, listening, where
from tests.waiting import until
from zenlake.api.log import LineFormatter
from zenlake.cli.app import application
from zenlake.printable import json_text, printable, printable_lines

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
