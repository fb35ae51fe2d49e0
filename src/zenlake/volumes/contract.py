"""What a volume is: the place where one storage keeps what it knows.

A volume is made for one storage, opened by its first use and closed with the storage. It keeps
three kinds of records: the entry of each key (a value, or the tombstone of a deleted one), the
updates of key expressions with wildcards, and, if it is capable of it, every sample as history.
It decides nothing: it gives back what it was given.

Promises:

* `write` is a transaction: after a crash all of a batch is there or nothing of it. When it
  returns, a persistent volume survives a loss of power.
* An entry of a batch whose `Value` has no payload keeps the payload that the volume has of its
  key: only times have changed.
* `write`, `trim`, `tidy` and `close` are called by one thread at a time. `read`, `history` and
  `count` may be called by others meanwhile, and see whole batches.
* `entries` and `wide` are called once, before anything else, and need not give payloads back:
  an entry whose `Value` has no payload is read when a query asks for it.
* A failure is an `OSError` or a `VolumeError` with a sentence for people, and never with a
  password. The storage keeps the batch and tries again, so a failed `write` must have changed
  nothing. A server that cannot be reached, or a disk that takes nothing now, is a
  `VolumeUnreachable`: a storage whose volume cannot be opened for that reason is opened later.
* A record that can never be kept, however often it is tried (a key longer than an index takes, a
  value larger than a row), is a `RecordsRefused`, which names the record if the volume knows it.
  The storage writes the batch without it. A disk that is full or fails, and a server that is away,
  refuse no record.
* Whatever else a call raises is a defect of the volume. A record with which alone `write` fails in
  that way, again and again, is refused as well, while the volume writes others.
* No call waits for ever: a server that does not answer in time counts as unreachable.

Other packages add volumes through the entry point group `zenlake.volumes`: a name, and a class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from zenlake.errors import LocalError
from zenlake.keys import intersects
from zenlake.newest import Batch, Entry, WideUpdate

__all__ = [
    "Capability",
    "Option",
    "RecordsRefused",
    "Volume",
    "VolumeError",
    "VolumeUnreachable",
]


class VolumeError(LocalError):
    """A volume cannot do what it was asked for."""


class VolumeUnreachable(VolumeError):
    """The server or the disk of a volume cannot be used now; it may come back."""


class RecordsRefused(VolumeError):
    """A batch has records that the volume can never keep; nothing of the batch was written."""

    def __init__(self, why: str, records: Iterable[Entry | WideUpdate] = ()) -> None:
        """`records`: those that cannot be kept; empty if the volume does not know which."""
        super().__init__(why)
        self.records = tuple(records)


@dataclass(frozen=True, slots=True)
class Capability:
    """What a volume can do."""

    persistence: Literal["volatile", "durable"]
    history: Literal["latest", "all"]
    """Whether it can keep every sample, or the newest value of each key only."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option that the configuration of a volume may have."""

    kind: type[str] | type[int] | type[float] | type[bool]
    doc: str
    default: str | int | float | bool | None = None
    required: bool = False
    secret: bool = False


class Volume(ABC):
    """The place where one storage keeps what it knows."""

    CAPABILITY: ClassVar[Capability]
    OPTIONS: ClassVar[Mapping[str, Option]] = {}
    """What may be configured, for the volume or for one storage in it."""

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Open it for the storage of a name; options are those of OPTIONS, all of them."""
        self.storage = storage

    @abstractmethod
    def entries(self) -> Iterable[Entry]:
        """The entry of every key, deleted ones included."""

    @abstractmethod
    def wide(self) -> Iterable[WideUpdate]:
        """The updates of key expressions with wildcards."""

    @abstractmethod
    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys with their payloads, in that order."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Put, delete and forget what the batch says, all of it or nothing."""

    @abstractmethod
    def count(self) -> int:
        """How many keys have a value."""

    def close(self) -> None:
        """Let go of it; everything written stays."""
        return

    # ----------------------------------------------------------------- those with a default

    def list(self, expr: str) -> list[str]:
        """The keys with a value that `expr` stands for; the storage's index is faster."""
        return [
            entry.key
            for entry in self.entries()
            if entry.value is not None and intersects(expr, entry.key)
        ]

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys from time `start` up to `end`, both included, in order.

        With a limit, the first so many of each key.
        """
        raise VolumeError(f"the volume of storage '{self.storage}' keeps no history")

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples in the history, deleted ones included."""
        return ()

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples older than `before`, beyond `count` of a key, beyond `size` bytes in all.

        The newest sample of a key stays. Gives how many were dropped.
        """
        return 0

    def tidy(self) -> None:
        """Give back room that is no longer of use; the thread that writes calls it now and then."""
        return

    def check(self) -> Iterator[str]:
        """What is wrong with what is stored, a sentence each; reads all of it."""
        return iter(())
