"""A fresh checkout of this repository in a folder, and a shell with the base system on its PATH.

Nothing is downloaded and nothing compiled: what is installed for the tests serves the checkout, and
so does the compiled tree if the tests run on it.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import venv
from pathlib import Path

import zenlake
from tools.compiled_tree import BUILD, MARK, ROOT, TREE, fingerprint, is_fresh

#: What a user of a checkout needs of it.
FILES = ("LICENSE", "Makefile", "README.md", "hatch_build.py", "pyproject.toml", "zenlake")
FOLDERS = ("src", "tools")
BASE = "/usr/bin:/bin"
KEPT = {"HOME", "LANG", "TMPDIR", "ZENLAKE_JAVA_OPTIONS"}


def checkout(folder: Path) -> Path:
    """Copy the sources into `folder`, with an environment in which all needs are installed."""
    folder.mkdir(exist_ok=True)
    for name in FILES:
        shutil.copy2(ROOT / name, folder)
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*_cache")
        )
    environment(folder)
    if is_tree_shared():
        build = folder / BUILD.name
        build.mkdir()
        (build / TREE.name).symlink_to(TREE)
        shutil.copy2(MARK, build)
    return folder


def environment(folder: Path) -> None:
    """Make `.venv` in a folder, with the packages of the Python that runs the tests."""
    made = folder / ".venv"
    venv.create(made, symlinks=True)
    own = sysconfig.get_path("purelib", "venv", {"base": str(made)})
    shared = sysconfig.get_path("purelib")
    # Not the path alone: packages there may have `.pth` files of their own.
    Path(own, "shared.pth").write_text(f"import site; site.addsitedir({shared!r})\n")
    (made / "ready-to-run").touch()


def is_tree_shared() -> bool:
    """Return True if a checkout runs on the compiled tree, because the tests do."""
    return zenlake.compiled and is_fresh(fingerprint())


def base_system(**settings: str) -> dict[str, str]:
    """Return the environment variables of a shell in which nothing of zenlake is installed."""
    assert shutil.which("zenlake", path=BASE) is None
    kept = {name: text for name, text in os.environ.items() if name in KEPT}
    build = {} if is_tree_shared() else {"ZENLAKE_BUILD": "pure"}
    return kept | build | {"PATH": BASE} | settings
