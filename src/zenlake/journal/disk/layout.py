"""Where everything lies: the names of the journal's files, and the page that says what it is.

DIR/journal.json                          what this journal is
DIR/watermark.json                        how far it is durable
DIR/lock                                  who writes it
DIR/p0000/manifest.json                   the sealed segments of partition 0
DIR/p0000/00000000000000000000.arrow      a sealed segment, named by its first offset
DIR/p0000/00000000000000004711.open       the write-ahead file: the segment in the making
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any, Final

from zenlake.errors import JournalCorrupt, JournalError

__all__ = [
    "FORMAT",
    "INFO",
    "LATEST",
    "LEDGER",
    "JournalInfo",
    "first_of",
    "folder",
    "is_rewritten",
    "manifest_path",
    "open_path",
    "partition_of",
    "rewritten_path",
    "sealed_path",
]

FORMAT: Final = 1
INFO: Final = "journal.json"
#: There while the journal is written without fsync: then the watermark is no promise.
UNSYNCED: Final = "unsynced"
#: Shortcuts of a recorder, with names of keys in them; without them it reads the rows.
LEDGER: Final = "ledger.json"
LATEST: Final = "latest.arrow"
SEALED: Final = ".arrow"
OPEN: Final = ".open"
TEMPORARY: Final = ".tmp"
MAX_PARTITIONS: Final = 1024


def folder(partition: int) -> str:
    """The folder of a partition."""
    return f"p{partition:04d}"


def manifest_path(partition: int) -> str:
    """The list of a partition's sealed segments."""
    return f"{folder(partition)}/manifest.json"


def open_path(partition: int, first: int) -> str:
    """The write-ahead file that begins with offset `first`."""
    return f"{folder(partition)}/{first:020d}{OPEN}"


def sealed_path(partition: int, first: int) -> str:
    """The sealed segment that begins with offset `first`."""
    return f"{folder(partition)}/{first:020d}{SEALED}"


def rewritten_path(path: str) -> str:
    """What a sealed segment is called when it was written anew: `….1.arrow`, then `….2.arrow`."""
    first, _, rest = path.removesuffix(SEALED).partition(".")
    return f"{first}.{int(rest or 0) + 1}{SEALED}"


def is_rewritten(path: str) -> bool:
    """Whether a sealed segment has the name of one that was written anew."""
    return path.count(".") > 1


def first_of(name: str) -> int:
    """The first offset in a segment of that name, or -1 when it is not a segment's name."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else -1


def partition_of(key: str, partitions: int) -> int:
    """Where the rows of a key go; all to one place, so that their order is kept."""
    return zlib.crc32(key.encode()) % partitions


@dataclass(frozen=True, slots=True)
class JournalInfo:
    """What a journal is, from its first day to its last."""

    id: str
    name: str
    partitions: int
    created: float

    def to_json(self) -> bytes:
        """The content of `journal.json`."""
        return (
            json.dumps(
                {
                    "format": FORMAT,
                    "id": self.id,
                    "name": self.name,
                    "partitions": self.partitions,
                    "created": self.created,
                }
            )
            + "\n"
        ).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> JournalInfo:
        """Read `journal.json`."""
        page = parse(data, f"{where}/{INFO}")
        if page.get("format") != FORMAT:
            raise JournalError(
                f"{where} is a journal of format {page.get('format')!r}; this zenlake reads "
                f"format {FORMAT}: use the version that wrote it"
            )
        try:
            info = cls(
                str(page["id"]), str(page["name"]), int(page["partitions"]), float(page["created"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise JournalCorrupt(f"{where}/{INFO} lacks what a journal is: {error}") from error
        if not 0 < info.partitions <= MAX_PARTITIONS:
            raise JournalCorrupt(
                f"{where}/{INFO} says {info.partitions} partitions; 1 to {MAX_PARTITIONS} exist"
            )
        return info


def page_bytes(name: str, page: dict[str, object]) -> bytes:
    """A page that is replaced whole: JSON under its name, beside its checksum."""
    body = json.dumps(page)
    return f'{{"crc": {zlib.crc32(body.encode())}, "{name}": {body}}}\n'.encode()


def read_page(name: str, data: bytes, where: str) -> dict[str, Any]:
    """What `page_bytes` wrote under this name; damage names the file."""
    outer = parse(data, where)
    page = outer.get(name)
    if not isinstance(page, dict) or "crc" not in outer:
        raise JournalCorrupt(f"{where} is not a {name}: it holds {', '.join(outer) or 'nothing'}")
    if zlib.crc32(json.dumps(page).encode()) != outer["crc"]:
        raise JournalCorrupt(
            f"{where} does not match its checksum; restore it from a copy of the journal"
        )
    return page


def parse(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object that a file holds; damage names the file."""
    try:
        page = json.loads(data)
    except ValueError as error:
        raise JournalCorrupt(
            f"{where} is not JSON ({error}); restore it from a copy of the journal"
        ) from error
    if not isinstance(page, dict):
        raise JournalCorrupt(f"{where} holds {type(page).__name__}, not an object")
    return page
