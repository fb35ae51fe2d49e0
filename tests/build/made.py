"""Building a wheel as a front end does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.compiled_tree import ROOT


def build(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel into `folder` as a front end would."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
