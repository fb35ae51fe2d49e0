"""Commands that make no data frames run without pandas, installed or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lake.journals import write
from tests.lake.rowsof import Row

SCRIPT = """
import sys
from zenlake.cli.app import main
sys.argv = ["zenlake", *sys.argv[1:]]
try:
    main()
finally:
    print("pyarrow" in sys.modules, "pandas" in sys.modules, "pydantic" in sys.modules)
"""


def test_a_journal_is_read_without_pandas_and_pydantic(tmp_path: Path) -> None:
    write(tmp_path / "journal", [Row("robot/7/battery", b"98", at=1.0)])
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, "journal", "cat", str(tmp_path / "journal")],
        capture_output=True,
        text=True,
        check=False,
    )
    shown, imported = told.stdout.splitlines()
    assert "robot/7/battery" in shown
    assert imported == "True False False"
