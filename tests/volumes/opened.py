"""Every volume that can be tried on this machine, opened in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from zenlake.volumes import Volume, volume_class

OPTIONS: dict[str, Callable[[Path], dict[str, object]]] = {
    "sqlite": lambda folder: {"dir": str(folder), "fsync": False},
    "fs": lambda folder: {"dir": str(folder / "fs"), "fsync": False},
}


def opened(kind: str, folder: Path) -> Volume:
    """The volume of a kind, for the storage `s`."""
    return volume_class(kind)("s", OPTIONS[kind](folder))
