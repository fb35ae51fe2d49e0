"""Files on any filesystem that pyarrow knows: S3, GCS, Azure, HDFS, or a folder."""

from __future__ import annotations

import posixpath
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from zenlake.errors import LocalError

__all__ = ["RemoteFiles", "is_uri", "joined", "parted"]


SMALL: Final = 32 << 20
"""Bytes of a file that is fetched at once from a store of objects."""
_FOLDERS: Final = fs.LocalFileSystem | fs.HadoopFileSystem


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
        """Raises `LocalError` for an address with a password in it, and does not repeat it."""
        parts = urlsplit(uri)
        # Before the @ of an address of Azure is the name of a container.
        named = parts.username is not None and parts.scheme not in ("abfs", "abfss")
        if parts.password is not None or named:
            scheme, _, rest = uri.partition("://")
            raise LocalError(
                f"the address {scheme}://…@{rest.rpartition('@')[2]} has a key in it, and "
                "addresses are written into tables and logs; take it out, and set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
            )
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

    def filesystem(self) -> tuple[Any, str]:
        """The filesystem as pyarrow knows it, and the folder's path on it."""
        return self._fs, str(self._root)

    def size(self, path: str) -> int:
        """The bytes of a file, or -1 when there is none."""
        info = self._fs.get_file_info(self._at(path))
        return int(info.size) if info.type == fs.FileType.File else -1

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
        """A file to read from anywhere.

        From a store of objects a small one comes whole: readers ask for each column of each
        block, and every question is a journey.
        """
        file = self._fs.open_input_file(self._at(path))
        if isinstance(self._fs, _FOLDERS) or file.size() > SMALL:
            return file
        with file:
            return pa.BufferReader(file.read_buffer())

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; empty when there is none."""
        selector = fs.FileSelector(self._at(path), allow_not_found=True)
        return sorted(info.base_name for info in self._fs.get_file_info(selector))

    def put(self, path: str, source: Any) -> None:
        """Copy a file here: `source` is open for reading."""
        where = self._at(path)
        # Object stores show an object when it is whole, and have no folders; folders need a rename.
        last = isinstance(self._fs, _FOLDERS)
        if last:
            self._fs.create_dir(posixpath.dirname(where), recursive=True)
        target = where + ".tmp" if last else where
        with self._fs.open_output_stream(target) as sink:
            while chunk := source.read(8 << 20):
                sink.write(chunk)
        if last:
            self._fs.move(target, where)

    def remove(self, path: str) -> None:
        """Delete a file."""
        self._fs.delete_file(self._at(path))
