"""Writes the generated files anew, or says which of them are stale.

    python tools/generated.py            # write them (make wire)
    python tools/generated.py --check    # fail if one differs from what its source says

The check runs the generators on a copy of the repository, so they need no mode for it and
cannot forget a file.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "docs", "tests", "tools", "pyproject.toml", "README.md", "CONTRIBUTING.md")

GENERATORS = (
    "zenlake.wire.generator.generate",
    "zenlake.wire.generator.document",
    "zenlake.keys.document",
    "zenlake.config.document",
    "zenlake.links.document",
    "zenlake.xrce.conformance",
    "zenlake.admin.document",
    "zenlake.supervise.openmetrics",
    "zenlake.rest.document",
    "zenlake.cli.document",
    "zenlake.spark.document",
    "zenlake.lake.service.document",
    "tools.python_reference",
    "tools.nightly",
)
"""Modules that write files when they are run; each knows where its files belong."""


def write(root: Path, quiet: bool = False) -> None:
    """Run every generator in the repository at `root`."""
    for module in GENERATORS:
        subprocess.run(
            [sys.executable, "-m", module],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL if quiet else None,
            check=True,
        )


def stale() -> list[str]:
    """The files, by path, that differ from what the generators write now."""
    with tempfile.TemporaryDirectory(prefix="zenlake-fresh-") as folder:
        copy = Path(folder)
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.so")
                shutil.copytree(ROOT / name, copy / name, ignore=ignored)
            elif (ROOT / name).is_file():
                shutil.copy2(ROOT / name, copy / name)
        write(copy, quiet=True)
        return sorted(
            str(path.relative_to(copy))
            for path in copy.rglob("*")
            if path.is_file()
            and "__pycache__" not in path.parts
            and not _same(path, ROOT / path.relative_to(copy))
        )


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


if __name__ == "__main__":
    if "--check" not in sys.argv[1:]:
        write(ROOT)
    elif names := stale():
        sys.exit("stale, run `make wire`:\n  " + "\n  ".join(names))
