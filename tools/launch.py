"""Runs `zenlake` from this checkout: the compiled tree if it matches the sources, else the sources.

    ./zenlake info        # the script at the root calls this file

A compiled tree of other sources never runs. Hashing all sources takes longer than some commands,
so the verdict is kept with the sizes and times of all source files, as git does: the sources are
hashed again only when one of those has changed.

`zenlake up` starts compiling in the background where the tree does not match, and so does the very
first command (tools/compile_behind.py). ZENLAKE_BUILD=pure runs the sources and compiles nothing.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(ROOT, "src")
BUILD = os.environ.get("ZENLAKE_BUILD_FOLDER", os.path.join(ROOT, "build"))
TREE = os.path.join(BUILD, "compiled")
MARK = os.path.join(BUILD, "compiled.fingerprint")
VERDICT = os.path.join(BUILD, "compiled.verdict")
LOG = os.path.join(BUILD, "compiling.log")
"""What the last compilation in the background has printed."""
OTHERS = ("LICENSE", "README.md", "hatch_build.py", "pyproject.toml")
"""Files beside `src` that go into the wheel."""


def is_tree_fresh() -> bool:
    """Return True if the compiled tree was made from the sources as they are, by this Python."""
    mark = _read(MARK)
    if not mark or not os.path.isdir(TREE):
        return False
    seen = "\n".join([mark, sys.version, *_files()])
    verdict, _, kept = _read(VERDICT).partition("\n")
    if kept == seen:
        return verdict == "fresh"
    from tools.compiled_tree import fingerprint

    fresh = fingerprint() == mark
    _write(VERDICT, f"{'fresh' if fresh else 'stale'}\n{seen}")
    return fresh


def _files() -> list[str]:
    """Return a line for each file that goes into the wheel: its path, size and time of change."""
    lines = []
    waiting = [SOURCE]
    for name in OTHERS:
        found = os.stat(os.path.join(ROOT, name))
        lines.append(f"{name} {found.st_size} {found.st_mtime_ns}")
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    if not entry.name.endswith(("__pycache__", "_cache")):
                        waiting.append(entry.path)
                else:
                    found = entry.stat()
                    lines.append(f"{entry.path} {found.st_size} {found.st_mtime_ns}")
    return sorted(lines)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _write(path: str, text: str) -> None:
    """Replace a file as a whole; a folder that may not be written costs time, no more."""
    own = f"{path}.{os.getpid()}"
    try:
        with open(own, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(own, path)
    except OSError:
        pass


def _compile(arguments: list[str]) -> None:
    """Start compiling in the background, if this command is one that does."""
    was_compiled = os.path.exists(MARK)
    if arguments[:1] == ["up"] or not (was_compiled or os.path.exists(LOG)):
        from tools import compile_behind

        compile_behind.start()
    elif was_compiled and sys.stderr.isatty():
        print(
            "zenlake: interpreted: the sources have changed since they were compiled; "
            "`make build/compiled` compiles them",
            file=sys.stderr,
        )


def main() -> None:
    """Put one of the trees on the path, for this process and all that it starts, and run."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:1] = [ROOT] if os.path.abspath(sys.path[0]) == here else [ROOT, sys.path[0]]
    pure = os.environ.get("ZENLAKE_BUILD") == "pure"
    fresh = not pure and is_tree_fresh()
    if not (fresh or pure):
        _compile(sys.argv[1:])
    # Not the folder of the checkout: `tools` and `tests` there are nobody's packages.
    sys.path[0] = tree = TREE if fresh else SOURCE
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{tree}{os.pathsep}{path}" if path else tree
    sys.argv[0] = "zenlake"

    from zenlake.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
