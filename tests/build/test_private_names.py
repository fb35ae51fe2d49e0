"""Private names are used where they are defined; those of a library, in one module of ours.

A library may change its private names in any release. They are gathered so that a new version is
checked in one place, and the extra that brings the library has an upper bound. What one module of
zenlake lends to another has a name without an underscore.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tools.compiled_tree import ROOT
from tools.needs import needs

#: By library: the module that may touch its private names.
MODULES = {
    "aioquic": "src/zenlake/links/quic_internals.py",
    "py4j": "src/zenlake/spark/jvm.py",
    "pyiceberg": "src/zenlake/lake/table/iceberg.py",
    "pyspark": "src/zenlake/spark/jvm.py",
    "uvicorn": "src/zenlake/http/uvicorn_internals.py",
}
#: Libraries that nothing private of is used.
UNTOUCHED = ("deltalake", "mcp", "sqlglot", "starlette", "typer", "wsproto")
LIBRARIES = (*MODULES, *UNTOUCHED)
FOLDERS = ("src", "bench", "examples", "tests", "tools")
#: Names that a leading underscore does not make private: of named tuples, and Scala's of its own.
PUBLIC = re.compile(r"_asdict|_replace|_fields|_make|_\d+|_")
#: How a library defines a private name: as an attribute, a function, a class or a field.
DEFINED = re.compile(r"(?:\bself\.|\bdef |\bclass |^ *)(_[a-zA-Z]\w*)(?= *[:=(])", re.MULTILINE)

IMPORTED = re.compile(rf"^ *(?:from|import) (?:{'|'.join(LIBRARIES)})\b", re.MULTILINE)
USED = re.compile(r"\b_\w+")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and not PUBLIC.fullmatch(name)


@cache
def private_names(library: str) -> frozenset[str]:
    """The private names that a library's sources define."""
    spec = importlib.util.find_spec(library)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (folder,) = spec.submodule_search_locations
    # Of pyspark the half that zenlake has nothing to do with is left out.
    paths = [
        path
        for path in Path(folder).rglob("*.py")
        if not {"ml", "mllib", "pandas", "tests"} & set(path.relative_to(folder).parts[:-1])
    ]
    return defined_in(*paths)


@cache
def inherited_names(module: str) -> dict[str, str]:
    """By private name that a class inherits from a class of a module: the library it belongs to.

    The module is a library's, or the one of ours whose classes inherit from that library.
    """
    library = module.partition(".")[0]
    if library in LIBRARIES:
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        return dict.fromkeys(defined_in(Path(spec.origin)), library)
    path = f"src/{module.replace('.', '/')}.py"
    if path not in MODULES.values():
        return {}
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    above = {one for one in modules_of(ast.walk(tree)).values() if one.partition(".")[0] in MODULES}
    return {name: library for one in above for name, library in inherited_names(one).items()}


def defined_in(*paths: Path) -> frozenset[str]:
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in paths)
    return frozenset(name for text in texts for name in DEFINED.findall(text) if is_private(name))


def modules_of(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """By name in a module: the module that it was imported from."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update({one.asname or one.name: node.module for one in node.names})
        elif isinstance(node, ast.Import):
            found.update({one.asname or one.name.partition(".")[0]: one.name for one in node.names})
    return found


def private_imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int, str]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = [*node.module.split("."), *(one.name for one in node.names)]
            if any(is_private(part) for part in parts):
                yield parts[0], node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Import):
            for one in node.names:
                if any(is_private(part) for part in one.name.split(".")):
                    yield one.name.partition(".")[0], node.lineno, ast.unparse(node)


def accessed(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The attribute that an expression reads or sets, and of what; by its name as text, too."""
    if isinstance(node, ast.Attribute):
        return node.attr, node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
        name = node.args[1]
        if node.func.id in ("getattr", "hasattr", "setattr") and isinstance(name, ast.Constant):
            return str(name.value), node.args[0]
    return None


def is_self(base: ast.expr) -> bool:
    name = base.func if isinstance(base, ast.Call) and not base.args else base
    return isinstance(name, ast.Name) and name.id in ("self", "cls", "super")


def touched(where: str, tree: ast.Module, own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """What a module uses of libraries that is private: the library, and where.

    Types are not known here. An attribute is a library's if none of our classes has one of this
    name, or if the module imports a library that has it; one of `self`, if the class inherits from
    a class of a library that has it. `own` are the private names of our classes.
    """
    nodes = list(ast.walk(tree))
    imported = modules_of(nodes)
    libraries = {module.partition(".")[0] for module in imported.values()}
    known = [one for one in LIBRARIES if one in libraries]
    for library, line, text in private_imports(nodes):
        if library in LIBRARIES:
            yield library, f"{where}:{line}: {text}"
    inherited: dict[ast.AST, dict[str, str]] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                module = imported.get(base.id, "") if isinstance(base, ast.Name) else ""
                if names := inherited_names(module):
                    inherited.update(dict.fromkeys(ast.walk(node), names))
    for node in nodes:
        access = accessed(node)
        if access is None or not is_private(access[0]):
            continue
        name, base = access
        if is_self(base):
            found = inherited.get(node, {}).get(name, "")
        elif isinstance(base, ast.Name) and base.id in sys.stdlib_module_names:
            found = ""
        else:
            candidates = known if name in own else LIBRARIES
            found = next((one for one in candidates if name in private_names(one)), "")
        if found:
            yield found, f"{where}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def own_private_names(tree: ast.Module) -> set[str]:
    """Return the private names that a module defines: functions, classes, variables, attributes."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
    return found


def reaches(where: str, tree: ast.Module) -> Iterator[str]:
    """Find private attributes and imports of another module, as text with their place."""
    nodes = list(ast.walk(tree))
    own = own_private_names(tree)
    for library, line, text in private_imports(nodes):
        if library == "zenlake":
            yield f"{where}:{line}: {text}"
    for node in nodes:
        access = accessed(node)
        if access is None or not is_private(access[0]) or access[0] in own or is_self(access[1]):
            continue
        of_python = isinstance(access[1], ast.Name) and access[1].id in sys.stdlib_module_names
        if not of_python:
            yield f"{where}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def test_no_module_reaches_for_a_private_name_of_another() -> None:
    found: list[str] = []
    for path in sorted((ROOT / "src" / "zenlake").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where not in MODULES.values():
            found += reaches(where, ast.parse(path.read_text(encoding="utf-8")))
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(session):\n    return session._runtime", 1),
        ("def f(session):\n    return getattr(session, '_runtime', None)", 1),
        ("class Outer:\n    def f(self):\n        return self._inner._check()", 1),
        ("from zenlake.api.query import _names", 1),
        ("class One:\n    def f(self, other):\n        self._a = other._a", 0),
        ("class One:\n    def _f(self):\n        pass\ndef g(one):\n    one._f()", 0),
        ("class One(Base):\n    def f(self):\n        return self._inherited", 0),
        ("import sys\nsys._current_frames()", 0),
    ],
)
def test_a_reach_for_a_private_name_is_found(text: str, found: int) -> None:
    assert len(list(reaches("here.py", ast.parse(text)))) == found


def own_names() -> frozenset[str]:
    """The private names that our own classes and modules define."""
    return defined_in(*sources())


def may_touch(text: str, foreign: frozenset[str]) -> bool:
    """Whether it is worth parsing: most modules name no library and none of its names."""
    return IMPORTED.search(text) is not None or not foreign.isdisjoint(USED.findall(text))


def sources() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def test_private_names_of_a_library_are_used_in_one_module() -> None:
    own = own_names()
    foreign = frozenset().union(*map(private_names, LIBRARIES)) - own
    wrong = []
    for path in sources():
        text, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        if may_touch(text, foreign):
            for library, place in touched(where, ast.parse(text), own):
                instead = MODULES.get(library, "a public name")
                if where != instead:
                    wrong.append(f"{place} is private to {library}; use {instead}")
    assert wrong == []


@pytest.mark.parametrize("library", MODULES)
def test_a_library_whose_private_names_are_used_has_an_upper_bound(library: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project["dependency-groups"] = {"all": ["zenlake[all]"]}
    bounds = [need for need in needs(project, "all") if re.match(rf"{library}\b", need)]
    if library == "py4j":
        assert bounds == [], "pyspark demands one version of it"
    else:
        assert bounds
        assert all("<" in need or "==" in need for need in bounds), bounds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(context):\n    return context._jsc.sc()", ["pyspark"]),
        ("def f(frame):\n    return getattr(frame, '_jdf')", ["pyspark"]),
        ("from pyspark.util import _load_from_socket", ["pyspark"]),
        ("import uvicorn\ndef f(server: uvicorn.Server):\n    server._serve()", ["uvicorn"]),
        (
            "from aioquic.asyncio.server import QuicServer\n"
            "class Ours(QuicServer):\n    def f(self):\n        self._protocols = self._loop = {}",
            ["aioquic", "aioquic"],
        ),
        (
            "from zenlake.links.quic_internals import ConnectionProtocol\n"
            "class Ours(ConnectionProtocol):\n    def f(self):\n        self._loop.stop()",
            ["aioquic"],
        ),
        ("class Ours:\n    def f(self):\n        self._loop = self._protocols = {}", []),
        ("import sys\nsys._current_frames()", []),
        ("def f(pair):\n    return pair._1()", []),
        ("import pyspark\ndef f(other):\n    return other._of_nobody", []),
    ],
)
def test_what_is_private_is_found(text: str, found: list[str]) -> None:
    own = frozenset({"_loop", "_serve"})
    assert [library for library, _ in touched("here.py", ast.parse(text), own)] == found
