"""What GitHub and pre-commit run is what `make` runs here, on the versions that are promised."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from tools.compiled_tree import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILES = sorted([*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / ".pre-commit-config.yaml"])
VERBS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def workflow(name: str) -> Any:
    text = (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    return yaml.safe_load(text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_verb_that_is_run_elsewhere_is_one_of_the_makefile(file: Any) -> None:
    text = file.read_text(encoding="utf-8")
    run = set(re.findall(r"(?:run|entry): make ([a-z-]+)", text))
    assert run <= VERBS
    assert run or file.name == "wheels.yml"


def test_the_suite_runs_on_every_python_that_is_promised() -> None:
    promised = [
        entry.rpartition(" ")[2]
        for entry in PYPROJECT["project"]["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", entry)
    ]
    assert workflow("ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == promised
    wheels = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert wheels == [f"cp{version.replace('.', '')}-*" for version in promised]


@pytest.mark.parametrize("name", ["ci.yml", "wheels.yml"])
def test_every_action_is_pinned_to_a_commit(name: str) -> None:
    for job in workflow(name)["jobs"].values():
        for step in job["steps"]:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step.get("uses", f"a@{'0' * 40}"))
