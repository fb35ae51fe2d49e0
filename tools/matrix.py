"""Runs the suite on other Pythons of this machine, each in an environment of its own.

    python tools/matrix.py                       # everything, every Python from 3.11 on
    python tools/matrix.py --only 3.13 tests/aio # some tests on both builds, one Python
    python tools/matrix.py --newest tests/aio    # some tests, interpreted, on the newest Python

Looked for on the PATH and among the versions of pyenv. Environments and compiled trees are kept
in `build/matrix`. `--newest` needs neither Spark nor a compiler, so it costs CI little; where no
Python is newer than the one that runs this, it says so and runs nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.needs import ROOT, needs

OLDEST = (3, 11)
MATRIX = ROOT / "build" / "matrix"
UV = ROOT / ".venv" / "bin" / "uv"
LIGHT = "not interop and not slow and not spark"

Version = tuple[int, ...]


def version_of(python: Path) -> Version | None:
    """What an interpreter says that it is; None for what does not run, or is not CPython."""
    ask = "import sys; print(sys.implementation.name, *sys.version_info[:3], sys.version_info[3])"
    try:
        told = subprocess.run(
            [python, "-c", ask], capture_output=True, text=True, check=True, timeout=20
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    # A release candidate is nobody's newest Python.
    if told[0] != "cpython" or told[-1] != "final":
        return None
    return tuple(int(part) for part in told[1:4])


def candidates() -> list[Path]:
    """Every file that is called like a Python, wherever Pythons are usually kept."""
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted((root / "versions").glob("*/bin"))
    return [
        path
        for folder in folders
        if folder.is_dir()
        for path in sorted(folder.iterdir())
        if re.fullmatch(r"python3\.\d+", path.name)
    ]


def pythons(found: dict[Path, Version | None]) -> dict[str, Path]:
    """The newest interpreter of each minor version that zenlake runs on, by `3.x`, oldest first."""
    best: dict[Version, tuple[Version, Path]] = {}
    for path, version in found.items():
        if version is None or version[:2] < OLDEST:
            continue
        known = best.get(version[:2])
        if known is None or version > known[0]:
            best[version[:2]] = (version, path)
    return {f"{minor[0]}.{minor[1]}": best[minor][1] for minor in sorted(best)}


def environment(name: str, python: Path, group: str) -> Path:
    """The interpreter of an environment of `python` that holds `group`, made if it is stale."""
    folder = MATRIX / (name if group == "dev" else f"{name}-{group}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = "\n".join(needs(project, group))
    mark, listed = folder / "installed.txt", folder / "needs.txt"
    own = folder / "bin" / "python"
    if not mark.is_file() or mark.read_text() != wanted or version_of(own) != version_of(python):
        print(f"matrix: installing what the tests take on Python {name}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        listed.write_text(wanted)
        install(own, listed)
        mark.write_text(wanted)
    return own


def install(python: Path, listed: Path) -> None:
    """Install what a file lists, by the uv of `make`, which is quick, or else by pip."""
    uv = [str(UV), "pip", "install", "--quiet", "--python", str(python), "-r", str(listed)]
    if not UV.is_file() or subprocess.run(uv, check=False).returncode:
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--prefer-binary", "-r", str(listed)], check=True)


def suite(name: str, python: Path, compiled: bool, marked: str, arguments: list[str]) -> bool:
    """Run tests on one build; whether all of them passed."""
    kind = "compiled" if compiled else "interpreted"
    settings = {
        "ZENLAKE_EXPECT": kind,
        "ZENLAKE_BUILD_FOLDER": str(MATRIX / name / "tree"),
        "PYTHONPATH": "src",
    }
    if compiled:
        settings["PYTHONPATH"] = str(MATRIX / name / "tree" / "compiled")
        subprocess.run(
            [python, "tools/compiled_tree.py"], cwd=ROOT, env=os.environ | settings, check=True
        )
    print(f"matrix: Python {name}, {kind}", flush=True)
    command = [str(python), "-m", "pytest", "-q", "-n", "2", "--dist=worksteal"]
    command += [*(["-m", marked] if marked else []), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=False)
    return done.returncode == 0


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Run the suite on other Pythons.")
    parser.add_argument("--newest", action="store_true", help="only the newest one, interpreted")
    parser.add_argument("--only", metavar="3.X", help="only this version")
    asked, arguments = parser.parse_known_args()
    found = pythons({path: version_of(path) for path in candidates()})
    if asked.only:
        if asked.only not in found:
            parser.error(f"there is no Python {asked.only} here: {', '.join(found)}")
        found = {asked.only: found[asked.only]}
    if asked.newest:
        name = list(found)[-1] if found else ""
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        if not found or tuple(map(int, name.split("."))) <= sys.version_info[:2]:
            print(f"matrix: no Python newer than {here} on this machine: nothing more to run")
            return 0
        python = environment(name, found[name], "light")
        return 0 if suite(name, python, False, LIGHT, arguments) else 1
    failed = []
    for name, path in found.items():
        python = environment(name, path, "dev")
        for compiled in (False, True):
            if not suite(name, python, compiled, "" if compiled else LIGHT, arguments):
                failed.append(f"{name} {'compiled' if compiled else 'interpreted'}")
    print(f"matrix: {', '.join(found)}: {'failed: ' + ', '.join(failed) if failed else 'passed'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
