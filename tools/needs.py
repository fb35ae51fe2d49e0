"""Prints what pip must install to work on zenlake: the package's needs and a dependency group.

    python tools/needs.py dev > requirements.txt

pip reads dependency groups by itself only from version 25.1; Python 3.11 brings an older one.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def needs(project: dict[str, Any], group: str) -> list[str]:
    """The run-time requirements and those of `group`, included groups filled in, sorted."""
    return sorted({*project["project"]["dependencies"], *_group(project, group)}, key=str.lower)


def _group(project: dict[str, Any], name: str) -> list[str]:
    found: list[str] = []
    for entry in project["dependency-groups"][name]:
        found += [entry] if isinstance(entry, str) else _group(project, entry["include-group"])
    return found


if __name__ == "__main__":
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    print("\n".join(needs(pyproject, sys.argv[1])))
