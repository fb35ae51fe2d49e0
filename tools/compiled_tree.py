"""Builds the compiled wheel and unpacks it into `build/compiled`, unless it is there already.

    python tools/compiled_tree.py && PYTHONPATH=build/compiled python -m zenlake info
    python tools/compiled_tree.py --isolated   # by pip, as users do; needs nothing but pip

Everything that must run on both builds runs twice in one environment: once with `src` on the
path and once with this tree. A fingerprint of what goes into the wheel says whether the tree
is still good, and the C compiler's work is kept, so a change in a module that is not compiled
costs a second.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Another Python has a folder of its own for what it makes (tools/matrix.py).
BUILD = Path(os.environ.get("ZENLAKE_BUILD_FOLDER", ROOT / "build"))
TREE = BUILD / "compiled"
WHEELS = BUILD / "wheels"
MARK = BUILD / "compiled.fingerprint"


def compiled_tree(isolated: bool = False) -> Path:
    """The folder to put on PYTHONPATH for the compiled build, made fresh if it is stale."""
    wanted = fingerprint()
    if is_fresh(wanted):
        return TREE
    began = time.monotonic()
    _say("compiling the hot modules: a minute or two on two cores, and seconds after a change")
    MARK.unlink(missing_ok=True)
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    with zipfile.ZipFile(build_wheel(WHEELS, isolated)) as wheel:
        wheel.extractall(TREE)
    MARK.write_text(wanted)
    _say(f"compiled in {time.monotonic() - began:.0f} s")
    return TREE


def _say(text: str) -> None:
    print(f"zenlake: {text}", file=sys.stderr, flush=True)


def is_fresh(wanted: str) -> bool:
    """Whether the tree and its wheel were made from what `wanted` is the fingerprint of."""
    return TREE.is_dir() and MARK.is_file() and MARK.read_text() == wanted


def fingerprint() -> str:
    """A digest of the interpreter and of every file that decides what the wheel holds."""
    digest = hashlib.sha256(sys.version.encode())
    names = [ROOT / name for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")]
    source = [path for path in (ROOT / "src").rglob("*") if not _is_cache(path)]
    for path in sorted(names + source):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _is_cache(path: Path) -> bool:
    return any(part == "__pycache__" or part.endswith("_cache") for part in path.parts)


def build_wheel(folder: Path, isolated: bool = False) -> Path:
    """Build the compiled wheel into an empty folder, with what is here or what pip brings."""
    settings = {"ZENLAKE_BUILD": "compiled", "ZENLAKE_BUILD_DIR": str(BUILD / "mypyc")}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    if isolated:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
        command += ["--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | settings,
        # What it has to say goes on while it works: on a terminal, how far it is.
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if built.returncode:
        sys.exit("the compiled wheel does not build")
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the compiled tree, if it is stale.")
    parser.add_argument("--isolated", action="store_true", help="let pip bring what a build takes")
    compiled_tree(parser.parse_args().isolated)
