"""Runs the examples in the README and in the hand-written pages, as a reader would.

```python   with >>> prompts: a doctest; a page's blocks share their names
```console  `$ zenlake …` and `$ curl …` lines: run in a folder of the page's own, and compared;
            `$ ./zenlake …` in a fresh checkout, in a shell with the base system alone on its PATH;
            with `&` at the end it runs on beside what follows, which waits for its first line
            that begins without dots; it must have said all lines in their order by the page's end
```shellsession  the same with a Spark
```json5    whose first line is `// name`: the file `name` in that folder

`...` in expected output stands for anything. Every `127.0.0.1:PORT` becomes a port that is free,
and programs on it do not look for others.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.checkout import base_system, checkout
from tests.cli.programs import Program, endpoint
from tests.waiting import SECONDS, until
from zenlake.cli.app import application
from zenlake.config import ConfigWarning
from zenlake.journal import Journal

ROOT = Path(__file__).resolve().parents[2]
BESIDE = ("README.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md")
README = ROOT / "README.md"
PAGES = [*(ROOT / name for name in BESIDE), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?://|#)([^)#]+)[^)]*\)")
CHECKS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(page.read_text("utf-8")) if name == language]


# Run by tests/spark/test_page.py, where there is a Spark.
ON_SPARK = [ROOT / "docs" / "how-to" / "spark.md"]


def having(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language) and page not in ON_SPARK]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", having("python"), ids=named)
def test_python_on_a_page_does_what_the_page_says(page: Path) -> None:
    text = "\n".join(blocks(page, "python"))
    test = doctest.DocTestParser().get_doctest(text, {}, named(page), str(page), 0)
    assert test.examples, "python on a page needs >>> prompts, so that it can be run"
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        doctest.DocTestRunner(optionflags=CHECKS).run(test, out=told.append)
    assert not told, "".join(told)


@pytest.mark.timeout(240)  # a page starts a dozen programs, one after the other
@pytest.mark.parametrize("page", having("console"), ids=named)
def test_commands_on_a_page_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    follow(page, "console", tmp_path)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_commands_with_a_spark_print_what_the_readme_says(tmp_path: Path) -> None:
    follow(README, "shellsession", tmp_path)


@pytest.mark.nightly(
    day="docs/test_prose.py, lake/continuous/test_views_and_alerts.py, cli/test_lake.py"
)
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", [x for x in having("shellsession") if x != README], ids=named)
def test_commands_with_a_spark_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    follow(page, "shellsession", tmp_path)


def follow(page: Path, language: str, folder: Path) -> None:
    """Do what a page says, in its order."""
    if any(command.startswith(CHECKOUT) for command, _ in commands(page, language)):
        checkout(folder)
    for body in blocks(page, "json5"):
        first = body.partition("\n")[0]
        if first.startswith("// "):
            (folder / first.removeprefix("// ")).write_text(body, encoding="utf-8")
    behind: list[tuple[Program, list[str]]] = []
    beside: list[str] = []
    with ExitStack() as running:
        for command, expected in commands(page, language):
            if command.endswith(" &"):
                program = running.enter_context(started(command.removesuffix(" &"), folder))
                lines = iter(expected.splitlines())
                for line in lines:
                    program.says(certain(line), 150)
                    if not line.startswith("..."):
                        break
                behind.append((program, list(lines)))
                beside.append(command)
                continue
            alone = language == "console" and PLAIN.fullmatch(command)
            invoke = run_here if alone else run
            before = recorded(folder)
            told = invoke(command, folder)
            if command.startswith("zenlake put") and any(RECORDS_ALL in each for each in beside):
                until(lambda: recorded(folder) > before, "a put was not recorded")  # noqa: B023
            deadline = time.monotonic() + SECONDS
            while READS.match(command) and not matches(expected, told):
                if time.monotonic() > deadline:
                    break
                told = invoke(command, folder)
            assert matches(expected, told), f"$ {command}\n{told}\nbut the page says\n{expected}"
        for program, rest in behind:
            for line in rest:
                if line != "...":
                    program.says(certain(line))


#: What these print depends on programs beside them, which may need a moment for the command before.
READS = re.compile(r"(?:\./)?zenlake (?:diff|get|journal|ledger|ls|status|tree|xrce pull)\b")


RECORDS_ALL = "zenlake record -k '**'"


def recorded(folder: Path) -> int:
    """Return how many samples the journals in a folder hold."""
    journals = [Journal.open(found.parent) for found in folder.glob("*/journal.json")]
    return sum(sum(journal.watermark().offsets) for journal in journals)


def matches(expected: str, told: str) -> bool:
    return doctest.OutputChecker().check_output(expected, told, CHECKS)


def certain(line: str) -> str:
    """The longest part of an expected line that stands for itself alone."""
    words = max(line.split("..."), key=len)
    assert words, "a line of dots alone is said by everything, and waiting for it is for nothing"
    return words


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    broken = [
        target
        for target in LINK.findall(page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def commands(page: Path, language: str) -> Iterator[tuple[str, str]]:
    """The commands of a page, and what they print, on ports that are free."""
    free: dict[str, str] = {}
    for body in blocks(page, language):
        for port in re.findall(r"127\.0\.0\.1:[1-9]\d+", body):
            if port not in free:
                free[port] = endpoint().removeprefix("tcp/")
            body = body.replace(port, free[port])
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            if "tcp/127" in command and not command.startswith("zenlake xrce"):
                beside = command.endswith(" &")
                command = f"{command.removesuffix(' &')} --no-multicast-scouting"
                command += " &" if beside else ""
            yield command, expected


#: What a terminal shows in one line and takes away again.
PROGRESS = re.compile(r"^zenlake: (?:starting Spark|Spark \S+ is ready).*\n", re.MULTILINE)


#: The command of a checkout.
CHECKOUT = "./zenlake"


def started(command: str, folder: Path) -> Program:
    word, *arguments = shlex.split(command)
    assert word in ("zenlake", CHECKOUT), f"only zenlake runs beside others, not {command!r}"
    if word == CHECKOUT:
        return Program(*arguments, folder=folder, program=word, environment=base_system())
    return Program("-m", "zenlake", *arguments, folder=folder)


#: A command of ours that needs no shell: nothing but words, in quotes or without them.
PLAIN = re.compile(r"""zenlake(?:[^'"<>|;`$&*?~]|'[^']*'|"[^"$`]*")*""")
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def run_here(command: str, folder: Path) -> str:
    """Run a command in this process: starting Python takes longer than most commands."""
    _, *arguments = shlex.split(command)
    with contextlib.chdir(folder):
        told = CliRunner(env=TERMINAL).invoke(application(arguments), arguments)
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise told.exception
    return told.output


def run(command: str, folder: Path) -> str:
    before, piped, command = command.rpartition("| ")
    word, _, arguments = command.partition(" ")
    words = ("zenlake", CHECKOUT, "curl")
    assert word in words, f"only zenlake and curl run here, not {command!r}"
    program = f"{sys.executable} -m zenlake" if word == "zenlake" else word
    path = str(Path(os.environ["PYTHONPATH"]).absolute()) if "PYTHONPATH" in os.environ else ""
    ours = base_system() if word == CHECKOUT else os.environ | {"PYTHONPATH": path}
    done = subprocess.run(
        f"{before}{piped}{program} {arguments}",
        shell=True,
        cwd=folder,
        env=ours | TERMINAL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return PROGRESS.sub("", done.stdout)


def test_the_readme_links_every_page() -> None:
    linked = {(ROOT / target).resolve() for target in LINK.findall(PAGES[0].read_text("utf-8"))}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert sorted(named(page) for page in pages - linked) == []
