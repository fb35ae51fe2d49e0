"""Prints what pip must install for a dependency group: its needs and those of the package.

    python tools/needs.py run > requirements.txt

pip reads dependency groups by itself only from version 25.1; Python 3.11 brings an older one. And
pip would install the package itself for `zenlake[all]`, where only what it needs is wanted.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def needs(project: dict[str, Any], group: str) -> list[str]:
    """The run-time requirements and those of `group`, everything included filled in, sorted."""
    package = project["project"]
    found = [*package["dependencies"], *_group(project["dependency-groups"], group)]
    return sorted({need for each in found for need in _extras(package, each)}, key=str.lower)


def _group(groups: dict[str, Any], name: str) -> list[str]:
    found: list[str] = []
    for entry in groups[name]:
        found += [entry] if isinstance(entry, str) else _group(groups, entry["include-group"])
    return found


def _extras(package: dict[str, Any], need: str) -> list[str]:
    """What `name[extra,...]` of the package itself stands for; any other need stands for itself."""
    own = re.fullmatch(rf"{re.escape(package['name'])}\[(.+)\]", need)
    if own is None:
        return [need]
    extras = package["optional-dependencies"]
    return [
        found
        for extra in own[1].split(",")
        for each in extras[extra.strip()]
        for found in _extras(package, each)
    ]


if __name__ == "__main__":
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    print("\n".join(needs(pyproject, sys.argv[1])))
