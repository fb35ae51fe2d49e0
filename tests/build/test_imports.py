"""Rooms import each other where the contract of `make layers` sees it."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from tools.compiled_tree import ROOT

SOURCES = ROOT / "src" / "zenlake"
#: What imports a module whose name is a value.
LOADERS = {
    "__import__",
    "exec_module",
    "import_module",
    "load_module",
    "resolve_name",
    "run_module",
}
#: Who may: a package its own modules, a registry what is in it, and other people's by their name.
MAY_LOAD = {
    "__init__.py": "the rooms that define its names",
    "cli/app.py": "commands of its own room",
    "config/yaml_text.py": "a library",
    "engine/services.py": "services of rooms above: the registry",
    "lake/decode/formats/bounded.py": "libraries",
    "lake/decode/registry.py": "decoders that a user names",
    "lake/pipelines/project.py": "files of a user's pipeline",
    "lazy.py": "modules below the package that asks",
    "links/registry.py": "links of its own room",
    "testing/__init__.py": "the codecs of a page",
    "volumes/registry.py": "volumes of its own room",
    "wire/generator/document.py": "the page of the protocol above",
    "wire/generator/generate.py": "the pages that it generates from",
    "xrce/__init__.py": "what programs open, which lies above",
}
#: Who names modules of other rooms in quotes, and what it does with them.
MAY_NAME = {
    "__init__.py": "the rooms that define its names",
    "cli/router.py": "asks for a service that was started",
    "engine/services.py": "services of rooms above: the registry",
    "rest/pages.py": "reads the files of the page",
    "supervise/recording.py": "puts a service beside those that were started",
    "testing/__init__.py": "where generated codecs are",
    "wire/generator/document.py": "the page of the protocol above",
    "wire/generator/generate.py": "the pages that it generates from",
    "xrce/__init__.py": "what programs open, which lies above",
}
PURE = "pure rooms take time, chance and bytes as arguments"
MODULE = re.compile(r"zenlake((?:\.\w+)+)(?::\w+)?")


def loads(source: str) -> bool:
    """Return whether a source mentions a function that imports by name, called or not."""
    return any(
        (isinstance(node, ast.Name) and node.id in LOADERS)
        or (isinstance(node, ast.Attribute) and node.attr in LOADERS)
        or (isinstance(node, ast.Constant) and node.value in LOADERS)
        or (isinstance(node, ast.ImportFrom) and LOADERS & {one.name for one in node.names})
        for node in ast.walk(ast.parse(source))
    )


def is_module(parts: list[str]) -> bool:
    """Return whether these parts of a name lead to a module of ours."""
    path = SOURCES.joinpath(*parts)
    return path.is_dir() or path.with_suffix(".py").is_file()


def named_rooms(source: str, room: str) -> set[str]:
    """The modules of other rooms that a source names in quotes; an f-string by its beginning."""
    tree = ast.parse(source)
    # Who logs for another room imports nothing of it.
    loggers = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger")
        for argument in node.args
    }
    found = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in loggers
        ):
            name = MODULE.fullmatch(node.value.rstrip("."))
            if name is not None:
                parts = name[1].split(".")[1:]
                if parts[0] != room and is_module(parts):
                    found.add(node.value)
    return found


def opens_filesystems(source: str) -> bool:
    """Return whether a source imports the filesystems of pyarrow, whose values are pure."""
    return any(
        (isinstance(node, ast.Import) and any(one.name == "pyarrow.fs" for one in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "pyarrow.fs")
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "pyarrow"
            and any(one.name == "fs" for one in node.names)
        )
        for node in ast.walk(ast.parse(source))
    )


def pure_sources() -> dict[str, str]:
    """The sources of the modules that the contract on pure rooms names."""
    page = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = [one for one in page["tool"]["importlinter"]["contracts"] if one["name"] == PURE]
    rooms = [name.partition(".")[2].replace(".", "/") for name in contract["source_modules"]]
    return {
        path: text
        for path, text in sources().items()
        if any(path == f"{room}.py" or path.startswith(f"{room}/") for room in rooms)
    }


def sources() -> dict[str, str]:
    paths = sorted(SOURCES.rglob("*.py"))
    return {path.relative_to(SOURCES).as_posix(): path.read_text("utf-8") for path in paths}


def test_only_registries_import_a_module_by_a_name_that_is_a_value() -> None:
    assert {path for path, text in sources().items() if loads(text)} == set(MAY_LOAD)


def test_only_registries_name_modules_of_other_rooms_in_quotes() -> None:
    found = {
        path: names
        for path, text in sources().items()
        if (names := named_rooms(text, path.partition("/")[0]))
    }
    assert set(found) == set(MAY_NAME), found


def test_pure_modules_open_no_filesystem() -> None:
    # The contract knows libraries, and not their parts.
    pure = pure_sources()
    assert "lake/model/config.py" in pure
    assert [path for path, text in pure.items() if opens_filesystems(text)] == []
    assert opens_filesystems(sources()["lake/table/location.py"])


@pytest.mark.parametrize(
    "source",
    [
        'import importlib\nimportlib.import_module("zenlake.lake").ask()',
        "from importlib import import_module as fetch",
        '__import__("zenlake.lake")',
        'import builtins\nload = builtins.__import__\nload("zenlake." + room)',
        'import pkgutil\npkgutil.resolve_name("zenlake.lake:open")',
        'getattr(importlib, "import_module")(name)',
    ],
)
def test_an_import_by_name_is_seen(source: str) -> None:
    assert loads(source)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('ROOMS = {"lake": "zenlake.lake.query.lake:Lake"}', {"zenlake.lake.query.lake:Lake"}),
        ('f"zenlake.lake.{name}"', {"zenlake.lake."}),
        ('"zenlake.journal.recorder"', set()),
        ('"zenlake.nothing.here"', set()),
        ('logging.getLogger("zenlake.lake")', set()),
    ],
)
def test_a_module_of_another_room_in_quotes_is_seen(source: str, names: set[str]) -> None:
    assert named_rooms(source, "journal") == names
