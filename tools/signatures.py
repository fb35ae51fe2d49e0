"""Reads the parameters of a call of the API, with each option of `**options: Unpack[PutOptions]`.

Types are read from the source, because compiled functions have none.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parent.parent / "src"
OPTIONS = "zenlake.api.call_options"


def parameters(call: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a call; each option stands for itself, and is given by name."""
    found = list(inspect.signature(call).parameters.values())
    kwarg = (
        definition(call).args.kwarg if found and found[-1].kind is found[-1].VAR_KEYWORD else None
    )
    if kwarg is None or not isinstance(kwarg.annotation, ast.Subscript):
        return found
    options = declared_types(getattr(import_module(OPTIONS), ast.unparse(kwarg.annotation.slice)))
    kind = inspect.Parameter.KEYWORD_ONLY
    return found[:-1] + [
        inspect.Parameter(name, kind, default=None, annotation=written)
        for name, written in options.items()
    ]


def declared_types(options: type) -> dict[str, str]:
    """Return the options of a `TypedDict`, with their types as they are written."""
    return {name: kind.__forward_arg__ for name, kind in options.__annotations__.items()}


def definition(call: Callable[..., object]) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the syntax tree of a function or method; of overloads, the last."""
    owner = getattr(call, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        call = getattr(type(owner), call.__name__)
    compiled: Any = getattr(call, "__objclass__", None)
    if compiled is None:
        return _definitions(call.__module__)[call.__qualname__]
    return _definitions(compiled.__module__)[f"{compiled.__qualname__}.{call.__name__}"]


@cache
def _definitions(module: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods in the source of a module, by qualified name."""
    path = SOURCES / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for below in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + below.name] = below
    return found
