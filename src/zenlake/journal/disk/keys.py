"""The keys of one segment, each with a number in the order of its first row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["KeyNumbers"]


class KeyNumbers:
    """Gives batches, which have dictionaries of their own, the numbers of their segment.

    New keys are proposed by `number`, and are the segment's when `accept` says that the block
    that brings them is written; `reject` takes them back.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._accepted = 0
        # Recorders send one dictionary again and again, or the same with more at its end.
        self._seen: Any = pa.array([], pa.string())
        self._known = np.empty(0, np.int32)

    def __len__(self) -> int:
        return self._accepted

    def keys(self) -> list[str]:
        """All keys, in the order of their numbers."""
        return list(self._numbers)[: self._accepted]

    def proposed(self) -> list[str]:
        """The keys that the next block has to bring."""
        return list(self._numbers)[self._accepted :] if len(self._numbers) > self._accepted else []

    def number(self, column: pa.DictionaryArray) -> pa.Array:
        """The column's rows by the segment's numbers; keys that no row has get none."""
        indices = np.asarray(column.indices)
        known = self._table(column.dictionary)
        numbers = known[indices]
        if numbers.size and numbers.min() < 0:
            dictionary = column.dictionary
            # In the order of the rows, whatever that of the dictionary is.
            fresh, where = np.unique(indices[numbers < 0], return_index=True)
            for code in fresh[np.argsort(where)].tolist():
                key = dictionary[code].as_py()
                known[code] = self._numbers.setdefault(key, len(self._numbers))
            numbers = known[indices]
        return pa.array(numbers, pa.int32())

    def propose(self, keys: list[str]) -> None:
        """Ask the next block to bring these keys."""
        for key in keys:
            self._numbers.setdefault(key, len(self._numbers))

    def accept(self) -> None:
        """The proposed keys are written."""
        self._accepted = len(self._numbers)

    def reject(self) -> None:
        """The proposed keys could not be written; forget them."""
        for key in self.proposed():
            del self._numbers[key]
        self._seen = pa.array([], pa.string())
        self._known = np.empty(0, np.int32)

    def restore(self, keys: list[str]) -> None:
        """Keys that a block of the file brought."""
        for key in keys:
            self._numbers[key] = len(self._numbers)
        self.accept()

    def _table(self, dictionary: Any) -> Any:
        """For each key of a batch's dictionary its number here, or -1."""
        length = len(self._seen)
        if len(dictionary) >= length and self._seen.equals(dictionary[:length]):
            fresh = dictionary[length:]
            start = self._known
        else:
            fresh = dictionary
            start = np.empty(0, np.int32)
        if len(fresh):
            numbers = self._numbers
            more = [numbers.get(key, -1) for key in fresh.to_pylist()]
            self._known = np.concatenate([start, np.array(more, np.int32)])
            self._seen = dictionary
        elif start is not self._known:
            self._known, self._seen = start, dictionary
        return self._known
