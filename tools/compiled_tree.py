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
import compileall
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Another Python has a folder of its own for what it makes (tools/matrix.py).
BUILD = Path(os.environ.get("ZENLAKE_BUILD_FOLDER", ROOT / "build"))
TREE = BUILD / "compiled"
WHEELS = BUILD / "wheels"
MARK = BUILD / "compiled.fingerprint"
#: Held by the process that compiles, whose number it holds; and how far that process is, in words.
LOCK = BUILD / "compiling.lock"
PROGRESS = BUILD / "compiling.txt"


def compiled_tree(isolated: bool = False, wait: bool = True) -> Path:
    """The folder to put on PYTHONPATH for the compiled build, made fresh if it is stale.

    If another process is compiling, wait until it has ended, or leave it to that process.
    """
    if is_fresh(fingerprint()):
        return TREE
    with _only_one(wait) as lock:
        # What another process has compiled meanwhile may be fresh now.
        wanted = fingerprint()
        if lock is not None and not is_fresh(wanted):
            PROGRESS.write_text("starting the compiler")
            _compile(wanted, isolated, lock)
    return TREE


def compiling_process() -> int:
    """Return the number of the process that compiles into the build folder; 0 if none does."""
    try:
        number = int(LOCK.read_text())
        os.kill(number, 0)
    except (OSError, ValueError):
        return 0
    return number


@contextlib.contextmanager
def _only_one(wait: bool) -> Iterator[int | None]:
    """Hold the lock of the build folder; None if another process has it and `wait` is false."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with LOCK.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                yield None
                return
            _say(f"another process is compiling; waiting for it: {PROGRESS} says how far it is")
            fcntl.flock(lock, fcntl.LOCK_EX)
        LOCK.write_text(str(os.getpid()))
        try:
            yield lock.fileno()
        finally:
            LOCK.write_text("")


def _compile(wanted: str, isolated: bool, lock: int) -> None:
    began = time.monotonic()
    _say("compiling the hot modules: a minute or two on two cores, and seconds after a change")
    MARK.unlink(missing_ok=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    # A program that runs on the old tree has one until the new one is there.
    new, old = TREE.with_name("compiled.new"), TREE.with_name("compiled.old")
    for tree in (new, old):
        shutil.rmtree(tree, ignore_errors=True)
    with zipfile.ZipFile(build_wheel(WHEELS, isolated, lock)) as wheel:
        wheel.extractall(new)
    # As pip does: a program that starts does not wait until modules are compiled to bytecode, not
    # even where PYTHONDONTWRITEBYTECODE is set.
    compileall.compile_dir(new, quiet=1, stripdir=new, prependdir=TREE)
    if TREE.exists():
        TREE.rename(old)
    new.rename(TREE)
    MARK.write_text(wanted)
    shutil.rmtree(old, ignore_errors=True)
    done = f"compiled in {time.monotonic() - began:.0f} s"
    PROGRESS.write_text(done)
    _say(done)


def _say(text: str) -> None:
    print(f"zenlake: {text}", file=sys.stderr, flush=True)


def is_fresh(wanted: str) -> bool:
    """Whether the tree and its wheel were made from what `wanted` is the fingerprint of."""
    return TREE.is_dir() and MARK.is_file() and MARK.read_text() == wanted


def fingerprint() -> str:
    """A digest of the interpreter and of every file that decides what the wheel holds."""
    digest = hashlib.sha256(sys.version.encode())
    names = [ROOT / name for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")]
    found = (ROOT / "src").rglob("*")
    source = [path for path in found if not _is_cache(path.relative_to(ROOT))]
    for path in sorted(names + source):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _is_cache(path: Path) -> bool:
    return any(part == "__pycache__" or part.endswith("_cache") for part in path.parts)


def build_wheel(folder: Path, isolated: bool = False, lock: int | None = None) -> Path:
    """Build the compiled wheel into an empty folder, with what is here or what pip brings.

    The build holds `lock`, too: if this process is killed, nobody else compiles beside the build.
    """
    settings = {"ZENLAKE_BUILD": "compiled", "ZENLAKE_BUILD_DIR": str(BUILD / "mypyc")}
    settings["ZENLAKE_BUILD_PROGRESS"] = str(PROGRESS)
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
        pass_fds=() if lock is None else (lock,),
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
