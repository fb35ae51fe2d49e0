"""Where a lake lies: a folder, or an address that pyarrow has a filesystem for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

from pyarrow import fs

__all__ = ["Place", "absolute"]


def absolute(where: str | Path) -> str:
    """A path that means the same in every folder of this machine; addresses stay as they are."""
    text = str(where)
    return text if "://" in text else str(Path(text).expanduser().absolute())


@final
class Place:
    """A folder on some filesystem; paths inside it are relative and use `/`."""

    __slots__ = ("_files", "root", "uri")

    def __init__(self, uri: str | Path) -> None:
        """A path on this machine, or an address such as `s3://bucket/lake`."""
        self.uri: str = absolute(uri).rstrip("/")
        self._files, root = fs.FileSystem.from_uri(self.uri)
        self.root: str = root

    def __reduce__(self) -> tuple[type[Place], tuple[str]]:
        return Place, (self.uri,)

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.uri}/{name}")

    @property
    def filesystem(self) -> Any:
        """The filesystem, as pyarrow knows it."""
        return self._files

    def path(self, name: str) -> str:
        """Where `name` is on the filesystem."""
        return f"{self.root}/{name}" if name else self.root

    def address(self, name: str) -> str:
        """Where `name` is, for Spark."""
        uri = self.uri if "://" in self.uri else f"file://{self.uri}"
        return f"{uri}/{name}"

    def make(self, name: str) -> None:
        """Make a folder and those above it."""
        self._files.create_dir(self.path(name), recursive=True)

    def exists(self, name: str = "") -> bool:
        """Whether something is there."""
        return bool(self._files.get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def folders(self) -> list[str]:
        """The names of the folders in it, without those that are set aside: `.name`."""
        if not self.exists():
            return []
        found = self._files.get_file_info(fs.FileSelector(self.root))
        names = [info.base_name for info in found if info.type == fs.FileType.Directory]
        return sorted(name for name in names if not name.startswith("."))

    def files(self) -> Iterator[tuple[str, int, float]]:
        """Every file below: its name from here, its size, and its age in seconds."""
        if not self.exists():
            return
        now = time.time()
        for info in self._files.get_file_info(fs.FileSelector(self.root, recursive=True)):
            if info.type == fs.FileType.File:
                name = info.path[len(self.root) :].lstrip("/")
                yield name, info.size, now - info.mtime_ns / 1e9

    def remove(self, name: str) -> None:
        """Take a file away; it may be gone already."""
        try:
            self._files.delete_file(self.path(name))
        except FileNotFoundError:
            return

    def remove_folder(self, name: str) -> None:
        """Take a folder away with all in it; it may be gone already."""
        try:
            self._files.delete_dir(self.path(name))
        except FileNotFoundError:
            return
