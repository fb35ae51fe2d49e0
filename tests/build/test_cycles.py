"""Modules import each other in one direction, imports for type checkers included.

A part that imports the whole, even under `TYPE_CHECKING`, cannot be read or tested without it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from tools.compiled_tree import ROOT

ONE_MACHINE = "one machine in several files, compiled: a protocol would cost a lookup a sample"
FETCHED_LATE = "fetched when it is called, which is seldom or late"
TYPES = "a part names the type of its whole"

#: Modules that still import each other, below `zenlake`, and why.
REMAINING = {
    ("cli.connection", "cli.patience"): FETCHED_LATE,
    ("cli.sql", "cli.sql_shell"): FETCHED_LATE,
    ("engine.channel", "engine.delivery", "engine.takers"): ONE_MACHINE,
    ("expr.closure", "expr.parse", "expr.tree"): FETCHED_LATE,
    ("journal.ingest.kernel", "journal.ingest.walk"): ONE_MACHINE,
    ("links.c_interfaces", "links.interfaces"): FETCHED_LATE,
    ("storage_manager.answers", "storage_manager.storage"): TYPES,
    ("testing.host", "testing.network", "testing.wires"): TYPES,
}

Imports = dict[str, set[str]]


def imports() -> Imports:
    """By module of zenlake: the modules that it imports, anywhere and for any purpose."""
    source = ROOT / "src"
    paths = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (source / "zenlake").rglob("*.py")
    }
    return {
        module: imported(ast.parse(path.read_text(encoding="utf-8")), set(paths)) - {module}
        for module, path in paths.items()
    }


def imported(tree: ast.Module, modules: set[str]) -> set[str]:
    """The modules, of those given, that a module imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                inner = f"{node.module}.{one.name}"
                names.add(inner if inner in modules else node.module)
        elif isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
    return names & modules


def groups(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The largest groups of modules of which each reaches every other."""
    left = {module: set(targets) for module, targets in graph.items()}
    found: list[frozenset[str]] = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            group = component(left, error.args[1][0])
        else:
            return found
        found.append(group)
        for module in group:
            left[module] = left[module] - group


def component(graph: Mapping[str, set[str]], module: str) -> frozenset[str]:
    """The modules that a module reaches and that reach it."""
    back: Imports = {one: set() for one in graph}
    for one, targets in graph.items():
        for target in targets:
            back[target].add(one)
    return frozenset(reached(graph, module) & reached(back, module))


def reached(graph: Mapping[str, set[str]], module: str) -> set[str]:
    found, waiting = {module}, [module]
    while waiting:
        more = graph[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def test_no_modules_import_each_other_but_those_that_are_listed() -> None:
    found = {
        tuple(sorted(one.removeprefix("zenlake.") for one in group)) for group in groups(imports())
    }
    assert found == set(REMAINING)


def test_cycles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert set(groups(graph)) == {frozenset("abc"), frozenset("de")}


def test_an_import_for_type_checkers_counts() -> None:
    text = "if TYPE_CHECKING:\n    from zenlake.api.session import Session\nimport zenlake.keys"
    modules = {"zenlake.api.session", "zenlake.keys", "zenlake.api"}
    assert imported(ast.parse(text), modules) == {"zenlake.api.session", "zenlake.keys"}
