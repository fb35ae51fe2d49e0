"""A volume behind a prefix that all its keys share, and that it never sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from zenlake.newest import Batch, Entry, WideUpdate
from zenlake.volumes.contract import RecordsRefused, Volume

__all__ = ["NONE_KEY", "Stripped"]

NONE_KEY: Final = "@@none_key@@"
"""What the key is called that equals the prefix, as Eclipse Zenoh calls it."""


class Stripped(Volume):
    """Takes a prefix away from keys on their way into a volume, and puts it back."""

    def __init__(self, volume: Volume, prefix: str) -> None:
        """`prefix` has no slash at its end."""
        self.CAPABILITY = volume.CAPABILITY  # type: ignore[misc]
        self.storage = volume.storage
        self._volume = volume
        self._prefix = prefix

    def _inside(self, key: str) -> str:
        return NONE_KEY if key == self._prefix else key[len(self._prefix) + 1 :]

    def _outside(self, key: str) -> str:
        return self._prefix if key == NONE_KEY else f"{self._prefix}/{key}"

    def _in(self, entry: Entry) -> Entry:
        return entry._replace(key=self._inside(entry.key))

    def _out(self, entry: Entry) -> Entry:
        return entry._replace(key=self._outside(entry.key))

    def entries(self) -> Iterable[Entry]:
        """As the volume has them, with the prefix."""
        return map(self._out, self._volume.entries())

    def wide(self) -> Iterable[WideUpdate]:
        """Whole: an expression with wildcards may mean more than what lies behind the prefix."""
        return self._volume.wide()

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """As the volume has them, with the prefix."""
        entries = self._volume.read([self._inside(key) for key in keys])
        return [None if entry is None else self._out(entry) for entry in entries]

    def write(self, batch: Batch) -> None:
        """Without the prefix."""
        taken = f"{self._prefix}/{NONE_KEY}"
        refused = [one for one in (*batch.entries, *batch.samples) if one.key == taken]
        if refused:
            why = f"inside of the volume '{NONE_KEY}' is the key '{self._prefix}'; use another key"
            raise RecordsRefused(why, refused)
        try:
            self._volume.write(
                batch._replace(
                    entries=[self._in(entry) for entry in batch.entries],
                    removed=[self._inside(key) for key in batch.removed if key != taken],
                    samples=[self._in(sample) for sample in batch.samples],
                )
            )
        except RecordsRefused as error:
            outside = [self._out(one) if isinstance(one, Entry) else one for one in error.records]
            raise RecordsRefused(str(error), outside) from error

    def count(self) -> int:
        """As the volume counts."""
        return self._volume.count()

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """As the volume has it, with the prefix."""
        inside = [self._inside(key) for key in keys]
        return map(self._out, self._volume.history(inside, start, end, limit))

    def history_keys(self) -> Iterable[str]:
        """As the volume has them, with the prefix."""
        return map(self._outside, self._volume.history_keys())

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """As the volume does."""
        return self._volume.trim(before, count, size)

    def tidy(self) -> None:
        """As the volume does."""
        self._volume.tidy()

    def check(self) -> Iterator[str]:
        """As the volume does."""
        return self._volume.check()

    def close(self) -> None:
        """As the volume does."""
        self._volume.close()
