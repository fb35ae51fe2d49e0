"""The interpreter's memory between reads."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

#: Makes what a read becomes and lets it go, ten times; the interpreter says what that took.
READS = """
import sys
from zenlake.engine.arenas import keep_arenas

if {kept}:
    keep_arenas()
for _ in range(2):
    for _ in range(5):
        [bytes(64) for _ in range(25_000)]
    sys._debugmallocstats()
"""


@pytest.mark.parametrize("kept", [True, False])
def test_arenas_that_are_kept_serve_one_read_after_the_other(kept: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READS.format(kept=kept)], capture_output=True, text=True, check=True
    )
    first, last = (int(n) for n in re.findall(r"# arenas allocated total += +(\d+)", done.stderr))
    assert (last == first) is kept
