from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from zenlake.spark.classes import KEPT, ClassArchive
from zenlake.spark.java import Java

# CDS_DYNAMIC_ARCHIVE_MAGIC of OpenJDK's cds.h, with which a whole archive begins.
WHOLE = 0xF00BABA8.to_bytes(4, sys.byteorder) + b"classes"


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    """For a Java that has an archive of its own classes, as full ones have."""
    java = Java(tmp_path / "jdk", 17, "PATH")
    for path in (java.executable, java.home / "lib" / "server" / "classes.jsa"):
        path.parent.mkdir(parents=True)
        path.touch()
    (tmp_path / "jars").mkdir()
    (tmp_path / "cache").mkdir()
    return ClassArchive(java, tmp_path / "jars", tmp_path / "cache")


def test_the_first_session_writes_at_its_end_and_the_second_uses_it(archive: ClassArchive) -> None:
    (writing, _) = archive.options()
    option, _, fresh = writing.partition("=")
    assert option == "-XX:ArchiveClassesAtExit"
    Path(fresh).write_bytes(WHOLE)
    assert archive.options()[0] == f"-XX:SharedArchiveFile={archive.file}"
    assert archive.file.read_bytes() == WHOLE


def test_an_archive_that_is_still_being_written_is_not_used(archive: ClassArchive) -> None:
    # Java writes the header last.
    torn = archive.folder / f"{archive.name}.1.new"
    torn.write_bytes(bytes(100))
    assert archive.options()[0].startswith("-XX:ArchiveClassesAtExit=")
    assert torn.exists()


def test_what_was_torn_long_ago_is_swept_away(archive: ClassArchive) -> None:
    torn = archive.folder / f"{archive.name}.1.new"
    torn.write_bytes(bytes(100))
    os.utime(torn, (0, 0))
    archive.options()
    assert not torn.exists()


def test_old_archives_make_room(archive: ClassArchive) -> None:
    others = [archive.folder / f"classes-{number}.jsa" for number in range(5)]
    for number, path in enumerate(others):
        path.write_bytes(WHOLE)
        os.utime(path, (number, number))
    archive.options()
    assert [path for path in others if path.exists()] == others[5 - KEPT + 1 :]


def test_a_java_that_cannot_archive_starts_without(archive: ClassArchive) -> None:
    (archive.java.home / "lib" / "server" / "classes.jsa").unlink()
    # The "Java" is an empty file: making an archive of its own classes fails.
    assert archive.options() == []
    assert "-XX:+UseSerialGC" in archive.launcher_options()


def test_another_spark_means_another_archive(archive: ClassArchive, tmp_path: Path) -> None:
    os.utime(tmp_path / "jars", (1, 1))
    again = ClassArchive(archive.java, tmp_path / "jars", archive.folder)
    assert again.name != archive.name
