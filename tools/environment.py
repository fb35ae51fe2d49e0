"""Makes the environment in `.venv` and installs what a dependency group needs, if it is not there.

    python3 tools/environment.py run     # what running zenlake takes: `make up` and `./zenlake`
    python3 tools/environment.py dev     # what working on it takes: `make test` and the others
    python3 tools/environment.py empty   # the environment alone

It runs on the Python of the system, before anything is installed. All that it prints goes to the
standard error. A mark in the environment says that a group is installed; it is touched each time,
so that a mark older than pyproject.toml means: look again.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
OLDEST = (3, 11)
MARKS = {"run": "ready-to-run", "dev": "ready"}
LISTS = {"run": "needs-to-run.txt", "dev": "needs-to-develop.txt"}
"""The file of each group that lists what was installed for it."""

PURPOSES = {
    "run": "what running takes: 1.2 GB on disk, mostly Spark and its Java",
    "dev": "what running and testing take: 2.1 GB on disk, mostly Spark and its Java",
}
REPEAT_AFTER_SECONDS = 10.0
"""How often a log without a terminal is told that the installation goes on."""


def prepare(group: str) -> None:
    """Install what a group needs, unless it is installed already."""
    VENV.mkdir(exist_ok=True)
    with _only_one():
        wanted = _needs(group)
        if not _is_installed(group, wanted):
            began = time.monotonic()
            _make()
            if wanted:
                _say(f"installing {PURPOSES[group]}; a minute, or as long as they download")
                _install(group, wanted)
            _say(f"the environment is ready after {time.monotonic() - began:.0f} s")
        if group in MARKS:
            (VENV / MARKS[group]).touch()


def _needs(group: str) -> list[str]:
    if group == "empty":
        return []
    import tomllib  # not at the top: a Python that is too old has none, and is told so

    sys.path.insert(0, str(ROOT))
    from tools.needs import needs

    return needs(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8")), group)


def _is_installed(group: str, wanted: list[str]) -> bool:
    """Return True if all that is wanted was installed, for this group or for another one."""
    if not _has_python():
        return False
    lists = [VENV / name for other, name in LISTS.items() if (VENV / MARKS[other]).exists()]
    installed = [set(path.read_text().splitlines()) for path in lists if path.exists()]
    return not wanted or any(set(wanted) <= lines for lines in installed)


def _has_python() -> bool:
    # A Python that was upgraded or removed leaves links that lead nowhere.
    return PYTHON.exists() and (VENV / "bin" / "pip").exists()


def _make() -> None:
    if not _has_python():
        _say(f"making an environment of Python {sys.version.split()[0]} in {VENV}; some 5 s")
        if _run([sys.executable, "-m", "venv", str(VENV)]):
            sys.exit("zenlake: the environment cannot be made; see above")


def _install(group: str, wanted: list[str]) -> None:
    """Install by uv, which fetches and unpacks in parallel; where that fails, by pip.

    uv does not read pip's settings, such as another index.
    """
    listed = VENV / f"{LISTS[group]}.new"
    listed.write_text("\n".join(wanted) + "\n")
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    uv = [str(VENV / "bin" / "uv"), "pip", "install", "--python", str(PYTHON), "-r", str(listed)]
    # On a terminal both show bars.
    if _run([*pip, "--quiet", "uv"]) or _run(uv):
        _say("uv could not do it; installing with pip, which takes longer")
        if _run([*pip, "--prefer-binary", "-r", str(listed)]):
            sys.exit("zenlake: the installation failed; see above. The next start tries it again")
    for other, name in LISTS.items():
        if other != group:  # another group may have wanted other versions
            (VENV / name).unlink(missing_ok=True)
    listed.replace(VENV / LISTS[group])


@contextmanager
def _only_one() -> Iterator[None]:
    """Wait until no other process changes the environment."""
    with (VENV / "zenlake.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is making the environment; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str]) -> int:
    """Run a program and return its exit code; where there is no terminal, say that it goes on."""
    if sys.stderr.isatty():
        return subprocess.run(command, check=False, stdout=sys.stderr).returncode
    began, over = time.monotonic(), threading.Event()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:

        def repeat() -> None:
            while not over.wait(REPEAT_AFTER_SECONDS):
                written = _written(process.pid)
                _say(f"still installing after {time.monotonic() - began:.0f} s{written}")

        threading.Thread(target=repeat, daemon=True).start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if not line.startswith((" + ", " - ", " ~ ")):  # uv lists every package
                    print(line, end="", file=sys.stderr, flush=True)
            return process.wait()
        finally:
            over.set()


def _written(process: int) -> str:
    """Return how much a process has written, in words; nothing where the system does not say."""
    try:
        found = re.search(r"^wchar: (\d+)", Path(f"/proc/{process}/io").read_text(), re.MULTILINE)
    except OSError:
        return ""
    return "" if found is None else f", {int(found[1]) / 1e6:.0f} MB written"


def _say(text: str) -> None:
    print(f"zenlake: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(
            f"zenlake: Python {sys.version.split()[0]} is too old: 3.11 or newer is needed; name "
            "one in the variable PYTHON, for example PYTHON=python3.13 make up"
        )
    if sys.argv[1:] not in (["run"], ["dev"], ["empty"]):
        sys.exit(f"usage: {os.path.basename(sys.argv[0])} run|dev|empty")
    prepare(sys.argv[1])
