"""Every parameter of the public API is documented where `help()` shows it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import zenlake
from zenlake import aio, ext, handlers, shm

MODULES = [zenlake, aio, ext, handlers, shm]
#: `async` twins may point to the call that they await.
AS = re.compile(r"[Pp]arameters as of `zenlake\.([\w.]+)`")


def called(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Functions and public methods of public classes, by name."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            own = [base for base in value.__mro__ if base.__module__.startswith("zenlake")]
            for member in sorted({member for base in own for member in vars(base)}):
                found = inspect.getattr_static(value, member)
                is_method = isinstance(found, classmethod | staticmethod) or callable(found)
                if is_method and not member.startswith("_"):
                    yield f"{name}.{member}", getattr(value, member)
        elif callable(value):
            yield name, value


def undocumented(function: object) -> list[str]:
    """Parameters that the docstring does not name."""
    text = inspect.getdoc(function) or ""
    if (told := AS.search(text)) is not None:
        target: object = zenlake
        for part in told[1].split("."):
            target = getattr(target, part)
        text += inspect.getdoc(target) or ""
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    return [
        name
        for name in parameters
        if name not in {"self", "cls"}
        and not name.startswith("_")
        and not re.search(rf"`{name}`|^\s*{name}: \S", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
def test_every_parameter_of_a_public_call_is_documented(module: ModuleType) -> None:
    missing = {name: left for name, call in called(module) if (left := undocumented(call))}
    assert missing == {}


def test_the_walk_sees_the_api() -> None:
    names = {name for module in MODULES for name, _ in called(module)}
    assert {"open", "Session.put", "Query.reply", "Config.from_file", "KeyExpr.join"} <= names
    assert len(names) > 100
