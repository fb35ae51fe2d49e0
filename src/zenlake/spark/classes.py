"""Keeps Spark's loaded classes in a file, so that the next start need not load them again.

Most of the time that Spark takes to start goes into reading and checking thousands of classes.
Java can write them to an archive when it exits and map that archive the next time (class-data
sharing). The first session on a machine writes one as it ends; every later session uses it.

Nothing here may keep Spark from starting: an archive that does not fit is passed over by Java,
and whatever fails on our side means only that this start is not a faster one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from zenlake.spark.java import Java

__all__ = ["ClassArchive"]

# The first bytes of an archive with classes on top of Java's own (as Java writes them: in the
# machine's byte order). They are written last, so a file that has them is whole.
MAGIC = 0xF00BABA8
# An archive takes 180 MB. Others than ours may belong to another environment that is in use.
KEPT = 3
ROOM_NEEDED = 1 << 30
# Seconds; writing one takes ten.
TORN_AFTER = 600
# Java talks about every class that it leaves out, and would do so on the terminal.
SILENT = "-Xlog:disable"


class ClassArchive:
    """The archive for one Java with one Spark, in a folder that other sessions share."""

    def __init__(self, java: Java, jars: Path, folder: Path) -> None:
        """`jars`: the folder of Spark's jars; another Spark means another archive."""
        made_of = "\0".join(
            f"{path}\0{path.stat().st_mtime_ns}" for path in (java.executable.resolve(), jars)
        )
        self.java = java
        self.folder = folder
        self.name = f"classes-{sha256(made_of.encode()).hexdigest()[:12]}"
        self.file = folder / f"{self.name}.jsa"

    def launcher_options(self) -> list[str]:
        """Options for the small Java that only works out how to start the large one."""
        base = self._own_base()
        shared = [f"-XX:SharedArchiveFile={base}", SILENT] if base else []
        return [*shared, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]

    def options(self) -> list[str]:
        """Options for Spark's Java: use the archive, or write it at exit when there is none."""
        self._adopt()
        if self.file.is_file():
            with suppress(OSError):
                os.utime(self.file)  # what was used last is thrown away last
            return [f"-XX:SharedArchiveFile={self.file}", SILENT]
        base = self._own_base()
        if not (base or self._has_base()) or shutil.disk_usage(self.folder).free < ROOM_NEEDED:
            return []
        self._forget_old()
        fresh = self.folder / f"{self.name}.{os.getpid()}.new"
        on_top_of = [f"-XX:SharedArchiveFile={base}"] if base else []
        return [*on_top_of, f"-XX:ArchiveClassesAtExit={fresh}", SILENT]

    def _adopt(self) -> None:
        """Give the right name to an archive that an earlier session finished writing."""
        for fresh in self.folder.glob(f"{self.name}.*.new"):
            with suppress(OSError):
                if _is_whole(fresh):
                    fresh.replace(self.file)

    def _has_base(self) -> bool:
        return any(self.java.home.glob("lib/*/classes.jsa"))

    def _own_base(self) -> Path | None:
        """Java's own classes, for a trimmed Java that came without their archive."""
        if self._has_base():
            return None
        base = self.folder / f"{self.name}.base.jsa"
        if base.is_file():
            return base
        fresh = base.with_suffix(f".{os.getpid()}")
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [self.java.executable, "-Xshare:dump", f"-XX:SharedArchiveFile={fresh}", SILENT],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=60,
                check=True,
            )
            fresh.replace(base)
            return base
        fresh.unlink(missing_ok=True)
        return None

    def _forget_old(self) -> None:
        """Keep the archives used last, and nothing torn by a Java that was killed writing it."""
        with suppress(OSError):
            archives = sorted(
                (path for path in self.folder.glob("classes-*.jsa") if _is_whole(path)),
                key=lambda path: path.stat().st_mtime,
            )
            for path in archives[: max(0, len(archives) - KEPT + 1)]:
                path.unlink(missing_ok=True)
                path.with_name(f"{path.stem}.base.jsa").unlink(missing_ok=True)
            for path in self.folder.glob("classes-*.new"):
                if time.time() - path.stat().st_mtime > TORN_AFTER:
                    path.unlink(missing_ok=True)


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        return int.from_bytes(file.read(4), sys.byteorder) == MAGIC
