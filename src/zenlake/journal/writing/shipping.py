"""Sealed segments on their way to another filesystem, by a thread of their own.

What arrives there is a journal too: `journal.json`, manifests, and a watermark that ends with the
last segment that arrived. An upload takes as long as the network wants; the writer waits for none.
"""

from __future__ import annotations

import io
import logging
import threading
import time
from typing import Final

import pyarrow as pa

from zenlake.clock.backoff import Backoff
from zenlake.clock.throttle import Throttle
from zenlake.journal.disk.files import Shelf
from zenlake.journal.disk.layout import (
    INFO,
    SEALED,
    JournalInfo,
    first_of,
    folder,
    manifest_path,
    sealed_path,
)
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.remote import RemoteFiles, is_uri, joined
from zenlake.journal.disk.watermark import WATERMARK, Watermark

__all__ = ["Shipper"]

_log = logging.getLogger("zenlake.journal")
_RETRY: Final = Backoff(1.0, 60.0)


class Shipper:
    """Makes the far filesystem hold what the manifests list."""

    def __init__(self, shelf: Shelf, uri: str, info: JournalInfo) -> None:
        self._shelf = shelf
        self._uri = uri
        self._info = info
        self._far = RemoteFiles(uri)
        self._state = threading.Condition()
        self._wanted: tuple[Manifest, ...] = ()
        self._shipped: tuple[Manifest, ...] = ()
        self._arrived: set[tuple[int, int]] = set()
        self._stopping = False
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="zenlake-shipping", daemon=True)
        self._thread.start()

    def offer(self, manifests: tuple[Manifest, ...]) -> None:
        """This is what the partitions list now."""
        with self._state:
            if self._wanted != manifests:
                self._wanted = manifests
                self._state.notify_all()

    def arrived(self) -> dict[tuple[int, int], str]:
        """The segments that are there whole and listed there: (partition, first) to their URI."""
        with self._state:
            return {place: joined(self._uri, sealed_path(*place)) for place in self._arrived}

    def close(self) -> None:
        """Stop after the segment under way; the rest is shipped when the journal is opened next."""
        with self._state:
            self._stopping = True
            self._state.notify_all()
        self._thread.join()

    def _run(self) -> None:
        throttle, pause = Throttle(), 0.0
        while True:
            with self._state:
                self._state.wait_for(lambda: self._stopping or self._shipped != self._wanted)
                if self._stopping:
                    return
                wanted = self._wanted
            try:
                self._ship(wanted)
            except (OSError, pa.ArrowException) as error:
                self.failures += 1
                line = throttle.line(time.monotonic(), str(error))
                if line is not None:
                    _log.warning("segments could not be shipped to %s: %s", self._uri, line)
                pause = _RETRY.after(pause)
                with self._state:
                    self._state.wait_for(lambda: self._stopping, pause)
            else:
                pause = 0.0

    def _ship(self, wanted: tuple[Manifest, ...]) -> None:
        """First the rows, then the pages that list them, then the watermark; then remove."""
        for number, manifest in enumerate(wanted):
            for segment in manifest.segments:
                place = (number, segment.first)
                if not is_uri(segment.path) and place not in self._arrived:
                    if self._stopping:
                        return
                    with self._shelf.open(segment.path) as source:
                        self._far.put(sealed_path(*place), source)
        self._put(INFO, self._info.to_json())
        for number, manifest in enumerate(wanted):
            there = manifest.moved(
                {each.first: sealed_path(number, each.first) for each in manifest.segments}
            )
            self._put(manifest_path(number), there.to_json())
        self._put(WATERMARK, Watermark(tuple(each.end for each in wanted)).to_json())
        for number, manifest in enumerate(wanted):
            if not self._shipped or self._shipped[number].earliest < manifest.earliest:
                self._let_go(number, manifest.earliest)
        with self._state:
            self._shipped = wanted
            self._arrived = {
                (number, segment.first)
                for number, manifest in enumerate(wanted)
                for segment in manifest.segments
            }

    def _let_go(self, partition: int, earliest: int) -> None:
        """Remove files that are not listed any more, whichever process left them."""
        for name in self._far.list(folder(partition)):
            if name.endswith(SEALED) and first_of(name) < earliest:
                self._far.remove(f"{folder(partition)}/{name}")

    def _put(self, path: str, data: bytes) -> None:
        self._far.put(path, io.BytesIO(data))
