"""Rooms import each other where the contract of `make layers` sees it."""

from __future__ import annotations

import ast

from tools.compiled_tree import ROOT

SOURCES = ROOT / "src" / "zenlake"
#: What is imported here by a name in quotes lies above, and programs look for it below.
REGISTRIES = {"xrce/__init__.py", "wire/generator/document.py"}


def imported_by_name(source: str) -> list[str]:
    """The modules of ours that a source imports by a name in quotes."""
    return [
        str(argument.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "import_module"
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant) and str(argument.value).startswith("zenlake")
    ]


def test_no_room_is_imported_by_a_name_in_quotes() -> None:
    found = {
        path.relative_to(SOURCES).as_posix(): names
        for path in sorted(SOURCES.rglob("*.py"))
        if (names := imported_by_name(path.read_text("utf-8")))
    }
    assert set(found) == REGISTRIES, found


def test_a_name_in_quotes_is_seen() -> None:
    assert imported_by_name('import importlib\nimportlib.import_module("zenlake.lake").ask()') == [
        "zenlake.lake"
    ]
