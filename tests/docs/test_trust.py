"""The table of bounds on the page about trust says what the program does."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "why" / "trust.md"
ROW = re.compile(r"^\| [^|]+ \| (\d+) \| `([\w.]+)\.(\w+)` \|$", re.MULTILINE)


@pytest.mark.parametrize(("number", "module", "name"), ROW.findall(PAGE.read_text("utf-8")))
def test_each_bound_is_the_one_that_holds(number: str, module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) == int(number)


def test_no_row_of_the_table_is_left_out() -> None:
    table = PAGE.read_text("utf-8").partition("| what | bound | name |")[2].partition("\n\n")[0]
    assert len(table.splitlines()) - 2 == len(ROW.findall(table))
