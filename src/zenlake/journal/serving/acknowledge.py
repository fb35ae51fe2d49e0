"""Acknowledged puts into a journal: where the row of a put lies, as soon as it is written."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zenlake.errors import Timeout

__all__ = ["Expected", "Place"]

Place = tuple[int, int]
"""The partition and the offset of a row."""

_Put = tuple[str, int, bytes]


class Expected:
    """Puts whose rows are waited for; rows are entered by one thread, waited for by many."""

    def __init__(self) -> None:
        """None yet."""
        self._changed = threading.Condition()
        self._places: dict[_Put, Place | None] = {}

    @contextmanager
    def expect(self, key: str, hlc: int, id: bytes) -> Iterator[_Put]:
        """Look out for the row of a put with this time, from before it is published."""
        put = (key, hlc, id)
        with self._changed:
            self._places[put] = None
        try:
            yield put
        finally:
            with self._changed:
                del self._places[put]

    def entered(self, batch: Any, partition: int, first: int) -> None:
        """Rows were handed to the writer, of which the first has this offset."""
        if not self._places:
            return
        with self._changed:
            names = batch.column("key").dictionary.to_pylist()
            wanted = {key for key, _, _ in self._places} & set(names)
            if not wanted:
                return
            codes = batch.column("key").indices.to_pylist()
            times, ids = batch.column("hlc").to_pylist(), batch.column("stamp_id").to_pylist()
            for row, code in enumerate(codes):
                put = (names[code], times[row], ids[row])
                if names[code] in wanted and put in self._places:
                    self._places[put] = (partition, first + row)
            self._changed.notify_all()

    def wait(self, put: _Put, timeout: float) -> Place:
        """The place of a put's row, when it was handed to the writer."""
        end = time.monotonic() + timeout
        with self._changed:
            while (place := self._places[put]) is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise Timeout(f"'{put[0]}' was published, and not heard here in time")
                self._changed.wait(left)
            return place
