from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

from tools.compiled_tree import ROOT

FOLDERS = (".github", "bench", "deploy", "docs", "examples", "src", "tests", "tools")
TEXTS = {".css", ".html", ".js", ".json", ".json5", ".md", ".mjs", ".py", ".toml", ".yaml", ".yml"}
LEFT_ALONE = ("src/zenlake/web/vendor", "tests/golden")


def settings() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read_string("[first]\n" + (ROOT / ".editorconfig").read_text(encoding="utf-8"))
    return found


def texts() -> list[Path]:
    within = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    found = [path for path in (*ROOT.glob("*"), *within) if path.suffix in TEXTS]
    left = [ROOT / folder for folder in LEFT_ALONE]
    return [path for path in found if not any(map(path.is_relative_to, left))]


def test_editors_and_ruff_agree_on_the_length_of_a_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings().getint("*.py", "max_line_length") == project["tool"]["ruff"]["line-length"]


def test_every_text_is_as_editors_are_told_to_write_it() -> None:
    """An editor that obeys would otherwise change lines that nobody meant to change."""
    all_files = settings()["*"]
    assert dict(all_files) == {
        "charset": "utf-8",
        "end_of_line": "lf",
        "indent_size": "4",
        "indent_style": "space",
        "insert_final_newline": "true",
        "trim_trailing_whitespace": "true",
    }
    wrong = []
    for path in texts():
        data = path.read_bytes()
        lines = data.decode("utf-8").split("\n")
        if data and lines[-1]:
            wrong.append(f"{path}: no newline at the end")
        for number, line in enumerate(lines, 1):
            if line != line.rstrip() or line.startswith("\t"):
                wrong.append(f"{path}:{number}: {line!r}")
    assert wrong == []
