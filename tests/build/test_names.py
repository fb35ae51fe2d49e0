"""Names that a reader meets mean one thing: classes, and the folders of tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tools.compiled_tree import ROOT

SOURCES = ROOT / "src" / "zenlake"
#: What programs open is called the same in each of these, and is the same thing in other clothes.
SURFACES = {"api", "aio", "xrce_io"}
#: Names of messages are the protocols' own, and so are those of the pages that declare them.
PROTOCOLS = ("codec", "declared")
#: What is tested across rooms, or beside them.
BESIDE = {"build", "deploy", "docs", "examples", "golden", "hostile", "interop", "network"}


def classes(folder: Path) -> dict[str, set[str]]:
    """Public classes, and the places that have one of that name; one for all of the surfaces."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(PROTOCOLS) for part in parts):
            continue
        place = "a surface" if parts[0] in SURFACES else "/".join(parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(place)
    return places


def test_two_classes_have_two_names() -> None:
    twice = {name: sorted(places) for name, places in classes(SOURCES).items() if len(places) > 1}
    assert twice == {"Handler": ["a surface", "engine/handlers.py"]}, "find a second name"


def test_the_walk_sees_classes_of_one_name(tmp_path: Path) -> None:
    for room in ("one", "other"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "file.py").write_text("class Lane:\n    pass\n")
    assert classes(tmp_path) == {"Lane": {"one/file.py", "other/file.py"}}


def test_folders_of_tests_mirror_those_of_the_sources() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    strange = {
        str(below)
        for folder in folders
        if (below := folder.relative_to(ROOT / "tests")).parts
        and below.parts[0] not in BESIDE
        and not (SOURCES / below).is_dir()
    }
    assert strange == set()
