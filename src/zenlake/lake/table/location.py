"""Where a lake lies: a folder, or an address that pyarrow has a filesystem for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final
from urllib.parse import parse_qs, urlsplit

from pyarrow import fs

from zenlake.journal.disk.remote import RemoteFiles, joined

__all__ = ["LakeLocation", "absolute", "storage_options"]


def absolute(where: str | Path) -> str:
    """A path that means the same in every folder of this machine; addresses stay as they are."""
    text = str(where)
    return text if "://" in text else str(Path(text).expanduser().absolute())


def storage_options(uri: str) -> dict[str, str] | None:
    """What delta-rs is told of an address so that it finds what pyarrow finds there.

    Never a credential: delta-rs looks for those where pyarrow does, in the environment (`AWS_*`)
    and in the services of a cloud's machines, so they are in no object that could be printed.
    """
    parts = urlsplit(uri)
    if parts.scheme != "s3":
        return None
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    # A commit is an object that must not be there yet: two at once cannot both succeed.
    options = {"aws_conditional_put": "etag"}
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if "endpoint_override" in query:
        given = query["endpoint_override"]
        endpoint = given if "://" in given else f"{query.get('scheme', 'https')}://{given}"
        options["aws_endpoint_url"] = endpoint
    if "region" in query:
        options["aws_region"] = query["region"]
    if endpoint.startswith("http://"):
        options["aws_allow_http"] = "true"
    return options


@final
class LakeLocation:
    """A folder on some filesystem; paths inside it are relative and use `/`."""

    __slots__ = ("_files", "options", "remote", "root", "uri")

    def __init__(self, uri: str | Path) -> None:
        """A path on this machine, or an address such as `s3://bucket/lake`."""
        self.uri: str = absolute(uri).rstrip("/")
        self.remote: bool = "://" in self.uri and not self.uri.startswith("file://")
        if self.remote:
            self._files, root = RemoteFiles(self.uri).filesystem()
        else:
            self._files, root = fs.FileSystem.from_uri(self.uri)
        self.root: str = root
        self.options: dict[str, str] | None = storage_options(self.uri)
        """What delta-rs is told of it; see `storage_options`."""

    def __reduce__(self) -> tuple[type[LakeLocation], tuple[str]]:
        return LakeLocation, (self.uri,)

    def __truediv__(self, name: str) -> LakeLocation:
        return LakeLocation(joined(self.uri, name) if self.remote else f"{self.uri}/{name}")

    @property
    def bare(self) -> str:
        """The address without options after a question mark, as delta-rs wants it."""
        return self.uri.partition("?")[0] if self.remote else self.uri

    @property
    def filesystem(self) -> Any:
        """The filesystem, as pyarrow knows it."""
        return self._files

    def path(self, name: str) -> str:
        """Where `name` is on the filesystem."""
        return f"{self.root}/{name}" if name else self.root

    def address(self, name: str) -> str:
        """Where `name` is, for Spark."""
        uri = self.bare if "://" in self.uri else f"file://{self.uri}"
        return f"{uri}/{name}"

    def make(self, name: str) -> None:
        """Make a folder and those above it; stores of objects have none to make.

        On this machine nobody but the owner may look into those that were not there.
        """
        if isinstance(self._files, fs.S3FileSystem | fs.GcsFileSystem):
            return
        if self.remote:
            self._files.create_dir(self.path(name), recursive=True)
        else:
            _make_private(Path(self.path(name)))

    def read(self, name: str) -> bytes:
        """All bytes of a small file; raises FileNotFoundError."""
        with self._files.open_input_stream(self.path(name)) as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Put a small file there, whole."""
        with self._files.open_output_stream(self.path(name)) as file:
            file.write(data)

    def exists(self, name: str = "") -> bool:
        """Whether something is there."""
        return bool(self._files.get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def folders(self) -> list[str]:
        """The names of the folders in it, without those that are set aside: `.name`."""
        if not self.exists():
            return []
        infos = self._files.get_file_info(fs.FileSelector(self.root))
        names = [info.base_name for info in infos if info.type == fs.FileType.Directory]
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


def _make_private(folder: Path) -> None:
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
