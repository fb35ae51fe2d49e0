"""The lives in docs/architecture.md lead through functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
LIVES = re.findall(
    r"^\*\*(A \w+)\*\*[^\n]*\n\n((?:\d+\. [^\n]*\n(?: +[^\n]*\n)*)+)", PAGE, re.MULTILINE
)
HOP = re.compile(r"`([\w/]+\.py):(\w+)`")


def functions(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_a_sample_a_query_a_declaration_and_a_question_have_a_life() -> None:
    names = [name for name, _ in LIVES]
    assert names == ["A sample", "A query", "A declaration", "A question"]


@pytest.mark.parametrize(("name", "life"), LIVES)
def test_every_hop_of_a_life_is_a_function(name: str, life: str) -> None:
    steps = re.split(r"^\d+\. ", life, flags=re.MULTILINE)[1:]
    assert 2 < len(steps) <= 12, "a life has at most twelve steps"
    for step in steps:
        hops = HOP.findall(step)
        assert hops, f"no hop in: {step}"
        for file, function in hops:
            assert function in functions(ROOT / "src" / "zenlake" / file), f"{file}:{function}"


def test_a_question_is_followed_in_ten_files_at_most() -> None:
    assert len({file for file, _ in HOP.findall(dict(LIVES)["A question"])}) <= 10
