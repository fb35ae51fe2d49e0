"""Runs the examples in the README and in the hand-written pages, as a reader would.

```python   with >>> prompts: a doctest; a page's blocks share their names
```console  `$ zenlake …` lines: run in a folder of the page's own, the output compared
```json5    whose first line is `// name`: the file `name` in that folder

`...` in expected output stands for anything.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?://|#)([^)#]+)[^)]*\)")
CHECKS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(page.read_text("utf-8")) if name == language]


def having(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", having("python"), ids=named)
def test_python_on_a_page_does_what_the_page_says(page: Path) -> None:
    text = "\n".join(blocks(page, "python"))
    test = doctest.DocTestParser().get_doctest(text, {}, named(page), str(page), 0)
    assert test.examples, "python on a page needs >>> prompts, so that it can be run"
    told: list[str] = []
    doctest.DocTestRunner(optionflags=CHECKS).run(test, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize("page", having("console"), ids=named)
def test_commands_on_a_page_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    for body in blocks(page, "json5"):
        first = body.partition("\n")[0]
        if first.startswith("// "):
            (tmp_path / first.removeprefix("// ")).write_text(body, encoding="utf-8")
    for body in blocks(page, "console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            told = run(command, tmp_path)
            assert doctest.OutputChecker().check_output(expected, told, CHECKS), (
                f"$ {command}\n{told}\nbut the page says\n{expected}"
            )


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    broken = [
        target
        for target in LINK.findall(page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def run(command: str, folder: Path) -> str:
    word, _, arguments = command.partition(" ")
    assert word == "zenlake", f"only zenlake commands can be run here, not {command!r}"
    path = str(Path(os.environ["PYTHONPATH"]).absolute()) if "PYTHONPATH" in os.environ else ""
    done = subprocess.run(
        f"{sys.executable} -m zenlake {arguments}",
        shell=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout
