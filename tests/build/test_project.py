from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
import tomllib

from hatch_build import compiled_modules
from tests.conftest import BOTH, TESTS, runs_on_both
from tools.compiled_tree import ROOT
from tools.needs import needs

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_importing_the_package_imports_no_room_and_no_library() -> None:
    script = (
        "import json, sys; before = set(sys.modules)\n"
        "import zenlake; print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name for name in json.loads(told.stdout) if "._" not in name}
    assert "zenlake" in loaded
    assert not [name for name in loaded if name.startswith("zenlake.")]
    assert loaded - {"zenlake"} <= sys.stdlib_module_names | {"importlib.machinery", "os.path"}
    assert not loaded & {"asyncio", "dataclasses", "enum", "re", "typing"}


def test_every_folder_of_modules_is_a_package() -> None:
    """Without an `__init__.py` a folder still imports, but no tool looks into it."""
    folders = {path.parent for path in (ROOT / "src").rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_pattern_of_the_compiled_list_names_a_module() -> None:
    modules = compiled_modules(ROOT)
    for pattern in PYPROJECT["tool"]["zenlake"]["compiled"]:
        assert fnmatch.filter(modules, pattern), f"{pattern} matches nothing"


def test_what_is_compiled_is_tested_on_both_builds() -> None:
    for module in compiled_modules(ROOT):
        _, *rooms, name = module.split(".")
        tests = TESTS.joinpath(*rooms, f"test_{name}.py")
        assert runs_on_both(tests), module
        assert tests.is_file() or any(f"{'/'.join(rooms)}/".startswith(f"{x}/") for x in BOTH)
    assert all((TESTS / name).is_dir() for name in BOTH)


def test_needs_are_those_of_the_package_of_the_group_and_of_the_groups_it_includes() -> None:
    project = {
        "project": {"name": "zl", "dependencies": ["typer>=1"]},
        "dependency-groups": {"c": ["mypy"], "dev": [{"include-group": "c"}, "pytest", "typer>=1"]},
    }
    assert needs(project, "dev") == ["mypy", "pytest", "typer>=1"]


def test_needs_of_the_packages_own_extras_are_filled_in() -> None:
    project = {
        "project": {
            "name": "zl",
            "dependencies": [],
            "optional-dependencies": {"a": ["one"], "b": ["two[x]"], "all": ["zl[a,b]"]},
        },
        "dependency-groups": {"dev": ["zl[all]", "pytest"]},
    }
    assert needs(project, "dev") == ["one", "pytest", "two[x]"]


def test_the_extra_all_holds_every_other_one() -> None:
    package = PYPROJECT["project"]
    extras = dict(package["optional-dependencies"])
    everything = {"dependency-groups": {"all": extras.pop("all")}, "project": package}
    said = {need for each in extras.values() for need in each}
    assert said | set(package["dependencies"]) == set(needs(everything, "all"))
    assert any(need.startswith("pandas") for need in said)


def test_running_takes_less_than_developing() -> None:
    running, developing = set(needs(PYPROJECT, "run")), set(needs(PYPROJECT, "dev"))
    assert running < developing
    names = " ".join(running)
    for tool in ("pytest", "ruff", "codespell", "coverage", "eclipse-zenoh", "duckdb"):
        assert tool not in names


def test_the_package_without_its_extras_needs_no_more_than_it_says() -> None:
    """What a room imports beyond Python must be declared, or a user's install breaks."""
    script = (
        "import importlib, json, pkgutil, sys, zenlake\n"
        "for found in pkgutil.walk_packages(zenlake.__path__, 'zenlake.'):\n"
        "    if not found.name.startswith(('zenlake.__main__', *sys.argv[1:])):\n"
        "        importlib.import_module(found.name)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    # walk_packages imports packages by itself, these too: their needs must not be there.
    rooms = ["zenlake.testing", "zenlake.journal", "zenlake.spark", "zenlake.lake"]
    rooms += ["zenlake.agents", "zenlake.recorded.columns", "zenlake.recorded.newest_rows"]
    rooms += ["zenlake.replay", "zenlake.ros2", "zenlake.expr.pruning"]
    hidden = ["hypothesis", "yaml", "pyarrow", "numpy", "pyspark", "deltalake", "cbor2", "mcp"]
    hide = f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
    told = subprocess.run(
        [sys.executable, "-c", hide + script, *rooms], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert not {"pytest", "mypy", "mypyc", "zenoh"} & set(json.loads(told.stdout))
