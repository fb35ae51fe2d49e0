"""What programs may import is listed once; pages and examples import nothing else."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_prose import PAGES, ROOT, named
from tools.python_reference import explanation, public

PUBLIC = public()
TEXTS = [*PAGES, *sorted((ROOT / "examples").rglob("*.py"))]
IMPORT = re.compile(
    r"^[ >.]*(?:from (zenlake[\w.]*) import (\([^)]*\)|[^\n#;]*)|import (zenlake[^\n#;]*))",
    re.MULTILINE,
)


def imports(text: str) -> Iterator[str]:
    """What a text imports of ours, by full names."""
    for module, names, modules in IMPORT.findall(text):
        for one in re.sub(r"[()>]|\.\.\.", " ", names or modules).split(","):
            if name := one.partition(" as ")[0].strip():
                yield f"{module}.{name}" if module else name


def is_public(full: str) -> bool:
    """Return whether a full name is a listed module, or in the `__all__` of one."""
    module, _, name = full.rpartition(".")
    return full in PUBLIC or (module in PUBLIC and name in importlib.import_module(module).__all__)


@pytest.mark.parametrize("page", TEXTS, ids=named)
def test_a_page_imports_what_is_public(page: Path) -> None:
    assert [one for one in imports(page.read_text("utf-8")) if not is_public(one)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import zenlake as zenoh", ["zenlake"]),
        (">>> from zenlake.keys import KeyExpr, KeyTree as Tree  # two",
         ["zenlake.keys.KeyExpr", "zenlake.keys.KeyTree"]),
        ("    import zenlake.lake, zenlake.aio", ["zenlake.lake", "zenlake.aio"]),
        (">>> from zenlake import (\n...     aio,\n...     ext,\n... )",
         ["zenlake.aio", "zenlake.ext"]),
        ("a sentence from zenlake imports nothing", []),
    ],
)  # fmt: skip
def test_imports_are_seen(text: str, found: list[str]) -> None:
    assert list(imports(text)) == found


def test_what_is_not_listed_is_private() -> None:
    private = [
        "zenlake.node",
        "zenlake.node.Node",
        "zenlake.keys.matching",
        "zenlake.keys.lazy_names",
    ]
    assert [one for one in private if is_public(one)] == []


@pytest.mark.parametrize("module", PUBLIC)
def test_all_names_of_a_public_module_are_there_and_explained(module: str) -> None:
    found = importlib.import_module(module)
    assert found.__doc__
    assert [name for name in found.__all__ if not hasattr(found, name)] == []
    assert [name for name in found.__all__ if not explanation(module, name)] == []


def test_a_name_without_a_word_is_seen() -> None:
    assert explanation("zenlake.keys", "lazy_names").startswith("Return the `__getattr__`")
    assert explanation("zenlake.keys.keyexpr", "_text") == ""


def test_no_public_call_takes_the_running_node() -> None:
    """`Runtime` is internal, and so is what is made of one."""
    page = (ROOT / "docs/reference/python.md").read_text("utf-8")
    calls = [line for line in page.splitlines() if line.startswith("#### `")]
    assert len(calls) > 300
    assert [line for line in calls if "Runtime" in line] == []
