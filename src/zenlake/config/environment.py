"""The one place of this package that looks at the process and the disk.

Everything else takes texts as arguments, so that it can be tested, and used, without either.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zenlake.config.problem import Report
from zenlake.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CONFIG_VARIABLE", "configured_file", "decode", "read_file", "suffix_of"]

CONFIG_VARIABLE = "ZENOH_CONFIG"
"""The environment variable that names the configuration file."""


def configured_file() -> str | None:
    """The file that the environment names, if it names one."""
    return os.environ.get(CONFIG_VARIABLE)


def read_file(path: str | Path) -> str:
    """The text of a file; raises `ConfigError` if there is none to read."""
    try:
        with open(os.fspath(path), "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{path}: cannot be read: {reason}") from error
    return decode(data, str(path))


def suffix_of(path: str) -> str:
    """The end of a file's name from its last dot on, or nothing if it has none."""
    return os.path.splitext(path)[1]


def decode(data: bytes, source: str) -> str:
    """The text that UTF-8 bytes spell; raises `ConfigError` with the place of a bad byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        report = Report(data[: error.start].decode("utf-8", "replace"), source)
        report.add((), f"byte 0x{data[error.start]:02x} is not UTF-8 text", len(report.text))
        report.close()
        raise AssertionError from None
