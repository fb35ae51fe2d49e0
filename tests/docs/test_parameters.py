"""Every parameter of the public API is documented in a docstring."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import zenlake
from tools.signatures import parameters
from zenlake import aio, ext, handlers, shm

MODULES = [zenlake, aio, ext, handlers, shm]
#: A call that has the parameters of another, or some of them, may point to that one.
AS = re.compile(r"[Pp]arameters as of `zenlake\.([\w.]+)`")


@cache
def texts(module: str) -> dict[str, str]:
    """The docstrings in a module's source, by qualified name: compiled functions have none."""
    package, _, name = module.rpartition(".")
    folder = Path(importlib.import_module(package).__path__[0])
    source = folder / f"{name}.py"
    if not source.is_file():
        source = folder / name / "__init__.py"
    found: dict[str, str] = {}

    def walk(body: list[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{before}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[before + node.name] = ast.get_docstring(node) or ""

    walk(ast.parse(source.read_text(encoding="utf-8")).body, "")
    return found


def text_of(owner: object, name: str) -> str:
    """The docstring of a method of a class, or of a function of a module."""
    if inspect.isclass(owner):
        for base in owner.__mro__:
            if name in vars(base):
                return texts(base.__module__).get(f"{base.__name__}.{name}", "")
    return texts(getattr(owner, name).__module__).get(name, "")


def called(module: ModuleType) -> Iterator[tuple[str, Callable[..., object]]]:
    """Functions and public methods of public classes, by name."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            own = [base for base in value.__mro__ if base.__module__.startswith("zenlake")]
            for member in sorted({member for base in own for member in vars(base)}):
                found = inspect.getattr_static(value, member)
                if isinstance(found, Enum):
                    continue  # a value that can be called, such as a mode of consolidation
                is_method = isinstance(found, classmethod | staticmethod) or callable(found)
                if is_method and not member.startswith("_"):
                    yield f"{name}.{member}", getattr(value, member)
        elif callable(value):
            yield name, value


def documented(module: ModuleType, name: str) -> str:
    """The docstring of a public call, with that of the one that it refers to."""
    owner, dot, last = name.rpartition(".")
    text = text_of(getattr(module, owner) if dot else module, last)
    if (told := AS.search(text)) is not None:
        text += documented(zenlake, told[1])
    return text


def undocumented(module: ModuleType, name: str, function: Callable[..., object]) -> list[str]:
    """Parameters that the docstring does not name."""
    text = documented(module, name)
    try:
        taken = [one.name for one in parameters(function)]
    except ValueError:
        return []  # compiled, and made by a decorator: the interpreted build tells
    return [
        name
        for name in taken
        if name not in {"self", "cls"}
        and not name.startswith("_")
        and not re.search(rf"`{name}`|^\s*{name}: \S", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
def test_every_parameter_of_a_public_call_is_documented(module: ModuleType) -> None:
    missing = {
        name: left for name, call in called(module) if (left := undocumented(module, name, call))
    }
    assert missing == {}


def test_the_walk_sees_the_api() -> None:
    names = {name for module in MODULES for name, _ in called(module)}
    assert {"open", "Session.put", "Query.reply", "Config.from_file", "KeyExpr.join"} <= names
    assert len(names) > 100
