"""The stubs of Eclipse Zenoh's Python package, held against our functions.

Type checkers and editors read the stubs, so a program that follows them must run here: every name
in them is here, and every parameter has the kind that they say, and a default where they say so.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.interop

MODULES = ["zenoh", "zenoh.handlers", "zenoh.ext", "zenoh.shm"]

#: Where ours takes more than the stub says, and why.
MORE = {"open": "the configuration may be left out"}

Shape = dict[str, tuple[str, bool]]


def stub(module: str) -> ast.Module:
    """The stub file of one of Eclipse's modules."""
    path = Path(importlib.import_module("zenoh").__path__[0])
    name = module.partition(".")[2] or "__init__"
    return ast.parse((path / f"{name}.pyi").read_text(encoding="utf-8"))


def stated(function: ast.FunctionDef) -> Shape:
    """The parameters that a stub states: by name, the kind and whether there is a default."""
    given = function.args
    places = [(one.arg, "POSITIONAL_ONLY") for one in given.posonlyargs]
    places += [(one.arg, "POSITIONAL_OR_KEYWORD") for one in given.args]
    first_default = len(places) - len(given.defaults)
    shape = {name: (kind, at >= first_default) for at, (name, kind) in enumerate(places)}
    if given.vararg:
        shape[given.vararg.arg] = ("VAR_POSITIONAL", False)
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        shape[one.arg] = ("KEYWORD_ONLY", default is not None)
    if given.kwarg:
        shape[given.kwarg.arg] = ("VAR_KEYWORD", False)
    shape.pop("cls", None)
    if "self" in shape:
        # Stubs leave the stroke out; the extension has it everywhere.
        shape["self"] = ("POSITIONAL_ONLY", False)
    return shape


def found(function: object) -> Shape:
    """The parameters that a function of ours has."""
    return {
        one.name: (one.kind.name, one.default is not inspect.Parameter.empty)
        for one in inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    }


def members(module: str) -> Iterator[tuple[str, object, ast.AST]]:
    """Everything that a stub declares: its name, where to look for it here, and its node."""
    ours = importlib.import_module(module.replace("zenoh", "zenlake", 1))
    for node in stub(module).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, ours, node
        elif isinstance(node, ast.ClassDef):
            owner = getattr(ours, node.name)
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield f"{node.name}.{member.name}", owner, member
                elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                    yield f"{node.name}.{member.target.id}", owner, member


def differences(module: str) -> Iterator[tuple[str, Shape, Shape]]:
    """What ours has otherwise than the stub says."""
    for name, owner, node in members(module):
        last = name.rpartition(".")[2]
        if last.startswith("_"):
            continue
        member = getattr(owner, last)
        if not isinstance(node, ast.FunctionDef) or not callable(member):
            continue
        expected = stated(node)
        if "handler" in expected and not expected["handler"][1]:
            continue  # one of several overloads; the first has the default
        if last.endswith("serializer"):
            continue  # a decorator, with and without brackets
        if name not in MORE and found(member) != expected:
            yield name, expected, found(member)


@pytest.mark.parametrize("module", MODULES)
def test_parameters_are_as_the_stub_says(module: str) -> None:
    assert list(differences(module)) == []


def test_the_stubs_say_much() -> None:
    """A walk over nothing would find no difference."""
    assert len([name for module in MODULES for name, _, _ in members(module)]) > 300


def test_what_may_be_left_out_here_is_stated_there() -> None:
    (node,) = [node for name, _, node in members("zenoh") if name == "open"]
    assert isinstance(node, ast.FunctionDef)
    assert stated(node)["config"] == ("POSITIONAL_OR_KEYWORD", False)
    ours = importlib.import_module("zenlake").open
    assert found(ours) == stated(node) | {"config": ("POSITIONAL_OR_KEYWORD", True)}
