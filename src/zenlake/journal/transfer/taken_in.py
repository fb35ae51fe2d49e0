"""Which files a journal has taken in, so that none is taken in twice by mistake."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from zenlake.errors import JournalError
from zenlake.journal.disk.files import replace
from zenlake.journal.writing.writer import JournalWriter

__all__ = ["IMPORTS", "Import", "taking_in"]

IMPORTS: Final = "imports.json"
MOST: Final = 10_000
"""How many files are remembered; the oldest is forgotten first."""


@dataclass(slots=True)
class Import:
    """A file that is being taken in, and how many of its rows were."""

    rows: int = 0


@contextmanager
def taking_in(writer: JournalWriter, file: str | os.PathLike[str], again: bool) -> Iterator[Import]:
    """Remember a file by its content while its rows are appended.

    Raises `JournalError` if it was taken in before, unless `again`. It is written down before the
    first row, so that an import that was cut short is noticed too.
    """
    page = _read(writer)
    digest = _digest(file)
    before = page.get(digest)
    if before is not None and not again:
        raise JournalError(_refusal(os.fspath(file), before))
    _write(writer, page, digest, {"file": os.path.basename(file), "rows": None, "at": time.time()})
    running = Import()
    try:
        yield running
        writer.flush()
    except BaseException:
        if not running.rows:  # nothing came of it
            _write(writer, page, digest, before)
        raise
    entry = {"file": os.path.basename(file), "rows": running.rows, "at": time.time()}
    _write(writer, page, digest, entry)


def _refusal(file: str, before: dict[str, Any]) -> str:
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(before["at"]))
    force = "--again (in Python: again=True)"
    if before["rows"] is None:
        return (
            f"the import of {file} on {day} UTC was cut short: some of its rows are here already; "
            f"{force} appends all of them"
        )
    return (
        f"{file} was imported on {day} UTC as {before['file']}, {before['rows']} rows; "
        f"{force} appends them once more"
    )


def _digest(file: str | os.PathLike[str]) -> str:
    with open(file, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _read(writer: JournalWriter) -> dict[str, dict[str, Any]]:
    try:
        page = json.loads(writer.files.read(IMPORTS))
    except (FileNotFoundError, ValueError):
        return {}  # a help, not a truth: a page that is damaged is begun anew
    return page if isinstance(page, dict) else {}


def _write(
    writer: JournalWriter,
    page: dict[str, dict[str, Any]],
    digest: str,
    entry: dict[str, Any] | None,
) -> None:
    page.pop(digest, None)
    if entry is not None:
        page[digest] = entry
    for oldest in list(page)[: max(0, len(page) - MOST)]:
        del page[oldest]
    replace(writer.files, IMPORTS, json.dumps(page).encode())
