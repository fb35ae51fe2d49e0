from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.compiled_tree import ROOT
from tools.matrix import pythons, version_of


def test_of_each_minor_version_from_the_oldest_supported_on_the_newest_is_taken() -> None:
    found = pythons(
        {
            Path("/usr/bin/python3.12"): (3, 12, 3),
            Path("/a/python3.13"): (3, 13, 0),
            Path("/b/python3.12"): (3, 12, 9),
            Path("/c/python3.9"): (3, 9, 18),
            Path("/d/python3.14"): None,
        }
    )
    assert found == {"3.12": Path("/b/python3.12"), "3.13": Path("/a/python3.13")}
    assert list(found)[-1] == "3.13"


def test_an_interpreter_says_its_version_and_other_files_none(tmp_path: Path) -> None:
    assert version_of(Path(sys.executable)) == sys.version_info[:3]
    assert version_of(tmp_path / "python3.99") is None


def test_where_no_python_is_newer_it_says_so_and_is_content(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "matrix.py", "--newest", "tests/aio"],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "no Python newer than" in done.stdout
