"""Files on any filesystem that pyarrow knows: S3, GCS, Azure, HDFS, or a folder."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from zenlake.errors import LocalError

__all__ = ["RemoteFiles", "is_uri", "joined", "parted"]


def is_uri(where: str) -> bool:
    """Whether a place is named by a URI, and not by a path of this machine."""
    scheme, colon, _ = where.partition("://")
    return bool(colon) and scheme.replace("+", "").replace("-", "").isalnum()


def joined(uri: str, path: str) -> str:
    """The URI of a file in the folder that a URI names; options stay at its end."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(path=posixpath.join(parts.path, path)))


def parted(uri: str) -> tuple[str, str]:
    """The URI of the folder that a file is in, and the file's name."""
    parts = urlsplit(uri)
    folder, name = posixpath.split(parts.path)
    return urlunsplit(parts._replace(path=folder)), name


class RemoteFiles:
    """A folder of a pyarrow filesystem. Files appear there whole, or not at all."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        try:
            self._fs, self._root = fs.FileSystem.from_uri(uri)
        except (pa.ArrowInvalid, OSError) as error:
            raise LocalError(
                f"'{uri}' names no filesystem that pyarrow knows ({error}); write for instance "
                "file:///data/journal or s3://bucket/journal?region=eu-central-1"
            ) from error

    def __repr__(self) -> str:
        return f"RemoteFiles({self.uri!r})"

    def _at(self, path: str) -> str:
        return posixpath.join(self._root, path) if path else str(self._root)

    def read(self, path: str) -> bytes:
        """All bytes of a small file."""
        with self._fs.open_input_file(self._at(path)) as file:
            return bytes(file.read())

    def mark(self, path: str) -> object:
        """Asking would take a journey of its own."""
        return None

    def open(self, path: str) -> pa.NativeFile:
        """A file to read from anywhere."""
        return self._fs.open_input_file(self._at(path))

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; empty when there is none."""
        selector = fs.FileSelector(self._at(path), allow_not_found=True)
        return sorted(info.base_name for info in self._fs.get_file_info(selector))

    def put(self, path: str, source: Any) -> None:
        """Copy a file here: `source` is open for reading."""
        where = self._at(path)
        self._fs.create_dir(posixpath.dirname(where), recursive=True)
        # Object stores show an object when it is whole; folders need a rename for that.
        last = isinstance(self._fs, fs.LocalFileSystem | fs.HadoopFileSystem)
        target = where + ".tmp" if last else where
        with self._fs.open_output_stream(target) as sink:
            while chunk := source.read(8 << 20):
                sink.write(chunk)
        if last:
            self._fs.move(target, where)

    def remove(self, path: str) -> None:
        """Delete a file."""
        self._fs.delete_file(self._at(path))
