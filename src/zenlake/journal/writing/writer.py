"""Writing a journal: a bounded queue, and one thread that writes, syncs and seals."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Literal

import pyarrow as pa

from zenlake.errors import JournalError, JournalFull, LocalError, Timeout, ZError
from zenlake.journal.disk.files import JournalFiles, LocalFiles
from zenlake.journal.disk.watermark import Watermark
from zenlake.journal.options import RetainRule
from zenlake.journal.schema import UNNUMBERED
from zenlake.journal.writing.log import Log, LogLimits
from zenlake.journal.writing.partition import runs
from zenlake.journal.writing.retention import JournalRetention
from zenlake.journal.writing.trouble import DiskTrouble, WriterStats

__all__ = ["JournalWriter", "interval_of"]

_log = logging.getLogger("zenlake.journal")
_REQUIRED: Final = [i for i, field in enumerate(UNNUMBERED) if not field.nullable]
#: How long the writer waits before it asks a full disk again.
_ASK_AGAIN: Final = 0.1
#: With this much waiting, the writer does not wait for the end of its interval.
_ENOUGH_BYTES: Final = 4 << 20


def interval_of(fsync: str) -> tuple[float, bool]:
    """Seconds between two watermarks, 0 for one after every batch; and whether fsync is called."""
    if fsync == "batch":
        return 0.0, True
    if fsync == "never":
        return 0.05, False
    for unit, scale in (("ms", 1e-3), ("s", 1.0)):
        number = fsync.removesuffix(unit)
        if number != fsync and number.isdecimal() and int(number):
            return int(number) * scale, True
    raise LocalError(f"fsync='{fsync}' is not a policy; write 'batch', 'never', or like '50ms'")


class JournalWriter:
    """The one writer of a journal.

    `append` puts rows into a queue of `queue_bytes`; a thread of the writer's own numbers them,
    writes them, calls fsync as the policy says, and then publishes the watermark. `on_full` says
    what happens when the disk is full: `"block"` keeps everything and lets the queue fill, so
    that `append` waits; `"drop"` counts what it drops and goes on.
    """

    def __init__(
        self,
        log: Log,
        *,
        interval: float = 0.05,
        on_full: Literal["block", "drop"] = "block",
        queue_bytes: int = 64 << 20,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        """For a log of your own; `JournalWriter.open` makes one in a folder."""
        if on_full not in ("block", "drop"):
            raise LocalError(f"on_full='{on_full}' is not a policy; write 'block' or 'drop'")
        self._journal = log
        self._interval = interval
        self._drop = on_full == "drop"
        self._most = queue_bytes
        self._enough = min(_ENOUGH_BYTES, queue_bytes)
        self._due: float | None = None
        self._release = release
        self.stats: Final = WriterStats()
        self.stats.recovered_bytes_cut = sum(partition.cut for partition in log.partitions)
        self._trouble = DiskTrouble(self.stats, log.info.name, drops=self._drop)
        self._state = threading.Condition()
        self._queue: deque[tuple[int, pa.RecordBatch, int]] = deque()
        self._requested = 0
        self._flushed = 0
        self._closing = False
        self._closed = False
        self._failure: ZError | None = None
        self._watermark = log.watermark
        self._listeners: list[Callable[[Watermark], None]] = []
        self._thread = threading.Thread(target=self._run, name="zenlake-journal", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        partitions: int | None = None,
        fsync: str = "50ms",
        segment_bytes: int = 128 << 20,
        segment_age: float = 3600.0,
        retain_bytes: int | None = None,
        retain_age: float | None = None,
        hold_bytes: int | None = None,
        retain: Iterable[RetainRule] = (),
        on_full: Literal["block", "drop"] = "block",
        sealed_to: str | None = None,
        queue_bytes: int = 64 << 20,
        files: JournalFiles | None = None,
    ) -> JournalWriter:
        """Create the journal in a folder, or go on with it.

        What a crash left half written is mended first. `fsync` is `"batch"`, `"never"` or a time
        like `"50ms"`. Segments are sealed at `segment_bytes` or after `segment_age` seconds, kept
        while all have at most `retain_bytes` and for `retain_age` seconds (with `hold_bytes`, so
        many bytes longer for readers in `readers.json` that have not read them), and moved to
        `sealed_to`, a URI that pyarrow knows. `retain` are rules for keys that are kept for a
        shorter time; what readers have not read is left alone. `partitions` is fixed
        when the journal is created. Raises `JournalLocked` when another process writes it, and
        `JournalCorrupt` when acknowledged rows are damaged.
        """
        interval, durable = interval_of(fsync)
        limits = LogLimits(
            segment_bytes,
            segment_age,
            JournalRetention(retain_bytes, retain_age, hold_bytes),
            tuple(retain),
        )
        place = files or LocalFiles(path)
        lock = place.lock()
        try:
            log = Log(
                place,
                name=name or os.path.basename(os.path.abspath(path)) or "journal",
                partitions=partitions,
                durable=durable,
                limits=limits,
                sealed_to=sealed_to,
            )
            return cls(
                log,
                interval=interval,
                on_full=on_full,
                queue_bytes=queue_bytes,
                release=lock.release,
            )
        except BaseException:
            lock.release()
            raise

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """What distinguishes this journal from all others."""
        return self._journal.info.id

    @property
    def files(self) -> JournalFiles:
        """The files of the journal, for pages that lie beside its rows."""
        return self._journal.files

    @property
    def name(self) -> str:
        """What people call it."""
        return self._journal.info.name

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return self._journal.info.partitions

    @property
    def watermark(self) -> Watermark:
        """How far the journal is durable."""
        return self._watermark

    def on_durable(self, callback: Callable[[Watermark], None]) -> None:
        """Call back, on the writer's thread, whenever more has become durable."""
        self._listeners.append(callback)

    def append(
        self, partition: int, batch: pa.RecordBatch, *, timeout: float | None = None
    ) -> None:
        """Take rows, without offsets, to be written; waits while the queue is full."""
        self.extend([(partition, batch)], timeout=timeout)

    def extend(
        self, parts: Iterable[tuple[int, pa.RecordBatch]], *, timeout: float | None = None
    ) -> None:
        """Take rows of several partitions that become durable together."""
        items = []
        for partition, batch in parts:
            self._check(partition, batch)
            if len(batch):
                items.append((partition, batch, _size(batch)))
        size = sum(nbytes for _, _, nbytes in items)
        with self._state:
            self._raise_if_over()
            if self.stats.queued_bytes and self.stats.queued_bytes + size > self._most:
                self.stats.blocked_appends += 1
                self._state.wait_for(
                    lambda: (
                        self._over()
                        or not self.stats.queued_bytes
                        or self.stats.queued_bytes + size <= self._most
                    ),
                    timeout,
                )
                self._raise_if_over()
                if self.stats.queued_bytes and self.stats.queued_bytes + size > self._most:
                    raise self._too_late("append", timeout)
            if not items:
                return
            self._queue.extend(items)
            self.stats.queued_bytes += size
            self.stats.appended_rows += sum([len(batch) for _, batch, _ in items])
            # A wake costs more than the rest: one for the first rows of a group, one for many.
            if self._due is None:
                self._due = time.monotonic() + self._interval
                self._state.notify_all()
            elif self._urgent():
                self._state.notify_all()

    def has_room(self, size: int = 0) -> bool:
        """Whether `append` of so many bytes would not wait."""
        return not self.stats.queued_bytes or self.stats.queued_bytes + size <= self._most

    def flush(self, timeout: float | None = None) -> Watermark:
        """Return when everything appended so far is durable, or was dropped and counted."""
        with self._state:
            self._raise_if_over()
            self._requested += 1
            wanted = self._requested
            self._state.notify_all()
            self._state.wait_for(lambda: self._over() or self._flushed >= wanted, timeout)
            if self._flushed < wanted:
                self._raise_if_over()
                raise self._too_late("flush", timeout)
            return self._watermark

    def close(self, timeout: float | None = None) -> None:
        """Make everything durable, and let another writer in.

        On a full disk this waits for room; with a `timeout` it gives up and raises `JournalFull`,
        and what was not written is lost.
        """
        if self._closed:
            return
        with self._state:
            self._closing = True
            self._state.notify_all()
        self._thread.join(timeout)
        if self._thread.is_alive():
            with self._state:
                self._failure = self._too_late("close", timeout)
                self._state.notify_all()
            self._thread.join()
        self._closed = True
        if self._failure is not None:
            raise self._failure

    # ------------------------------------------------------------------ callers' side

    def _check(self, partition: int, batch: pa.RecordBatch) -> None:
        if not 0 <= partition < self.partitions:
            raise LocalError(
                f"the journal has no partition {partition}; it has 0 to {self.partitions - 1}"
            )
        if not batch.schema.equals(UNNUMBERED):
            wrong = [
                f"{field.name}: {field.type}"
                for field in UNNUMBERED
                if batch.schema.get_field_index(field.name) < 0
                or batch.schema.field(field.name) != field
            ]
            raise LocalError(
                "these are not the journal's columns (zenlake.journal.UNNUMBERED); "
                + (f"wanted {', '.join(wrong)}" if wrong else "mind their order")
            )
        for index in _REQUIRED:
            if batch.column(index).null_count:
                raise LocalError(
                    f"column '{UNNUMBERED.field(index).name}' has nulls; every row needs a value"
                )

    def _over(self) -> bool:
        return self._closing or self._failure is not None

    def _raise_if_over(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise LocalError("the journal's writer is closed; open another")

    def _too_late(self, what: str, timeout: float | None) -> ZError:
        waited = f"{what} waited {0.0 if timeout is None else timeout:.3g} s"
        if self.stats.full:
            return JournalFull(
                f"the disk of journal '{self.name}' is full: {waited}; free some space, lower "
                "retain_bytes, or choose on_full='drop'"
            )
        if self.stats.stuck:
            return JournalError(
                f"journal '{self.name}' cannot be written ({self.stats.stuck}): {waited}"
            )
        return Timeout(f"{waited} and is not done: the disk is slower than the data")

    # ------------------------------------------------------------------ the writer's thread

    def _run(self) -> None:
        try:
            while self._write_once():
                pass
        except ZError as error:
            self._fail(error)
        except OSError as error:
            self._fail(JournalError(f"journal '{self.name}' cannot be written: {error}"))
        except Exception as error:
            _log.exception("the writer of journal '%s' failed", self.name)
            self._fail(JournalError(f"the writer of journal '{self.name}' failed: {error!r}"))
        finally:
            self._journal.close()
            self._release()
            with self._state:
                self._closing = True
                self._state.notify_all()

    def _fail(self, error: ZError) -> None:
        _log.error("%s", error)
        with self._state:
            self._failure = error
            self._state.notify_all()

    def _write_once(self) -> bool:
        """Wait for something to do and do it; False when there will be nothing more."""
        rest = self._tend()
        with self._state:
            while not self._urgent():
                now = time.monotonic()
                left = rest if self._due is None else self._due - now
                if left <= 0:
                    break
                self._state.wait(left)
                if self._due is None and not self._urgent():
                    break  # time to tend, or woken for nothing
            items = list(self._queue)
            self._queue.clear()
            requested = self._requested
            closing = self._over()
        for partition, group in _by_partition(items):
            for batch in runs(group):
                self._write(partition, batch)
        with self._state:
            self.stats.queued_bytes -= sum(size for _, _, size in items)
            self._state.notify_all()
        due = self._due is not None and time.monotonic() >= self._due
        if not (due or closing or requested > self._flushed):
            return True
        if not self._commit():
            self._due = time.monotonic() + _ASK_AGAIN
            self._pause()
            return self._failure is None
        with self._state:
            self._due = time.monotonic() + self._interval if self._queue else None
            self._flushed = requested
            self._state.notify_all()
            return not (closing and not self._queue)

    def _urgent(self) -> bool:
        """Whether the writer may not wait for the end of its interval."""
        return (
            self._requested > self._flushed
            or self._over()
            or self.stats.queued_bytes >= self._enough
        )

    def _write(self, partition: int, batch: pa.RecordBatch) -> None:
        while self._failure is None:
            try:
                size = self._journal.write(partition, batch)
            except OSError as error:
                self._trouble.met("rows", error)
                if self._drop:
                    self.stats.dropped_rows += len(batch)
                    self.stats.dropped_bytes += batch.nbytes
                    return
                self._commit()
                self._tend()
                self._pause()
            else:
                self._trouble.over("rows")
                self.stats.rows += len(batch)
                self.stats.blocks += 1
                self.stats.bytes += size
                return

    def _commit(self) -> bool:
        """Publish a new watermark; False when there is no room even for that."""
        before = self._watermark
        try:
            watermark = self._journal.commit()
        except OSError as error:
            self._trouble.met("watermark", error)
            return False
        self._trouble.over("watermark")
        self.stats.commits += 1
        self.stats.sources_forgotten = self._journal.sources.forgotten
        self._watermark = watermark
        if watermark is not before:
            for callback in self._listeners:
                try:
                    callback(watermark)
                except Exception:
                    _log.exception("a callback for the watermark of '%s' failed", self.name)
        return True

    def _tend(self) -> float:
        try:
            rest = self._journal.tend()
        except OSError as error:
            self._trouble.met("segments", error)
            return _ASK_AGAIN
        finally:
            self.stats.sealed = self._journal.sealed
            retired = self._journal.retired
            self.stats.retired_rows, self.stats.retired_bytes = retired.rows, retired.bytes
            self.stats.retire_failures = retired.failures
            self.stats.held_seconds = self._journal.held
        self._trouble.over("segments")
        return rest

    @property
    def unwritten(self) -> int:
        """Rows that were appended and are neither on disk nor counted as dropped."""
        return self.stats.appended_rows - self.stats.rows - self.stats.dropped_rows

    def _pause(self) -> None:
        """Wait before a full disk is asked again."""
        with self._state:
            self._state.wait_for(lambda: self._failure is not None, _ASK_AGAIN)


def _size(batch: pa.RecordBatch) -> int:
    """About how many bytes the rows have."""
    total = int(batch.get_total_buffer_size())
    # Slices of a large batch all have its buffers; asking each what it needs takes its time.
    return total if total < 1 << 20 else int(batch.nbytes)


def _by_partition(
    items: list[tuple[int, pa.RecordBatch, int]],
) -> list[tuple[int, list[tuple[pa.RecordBatch, int]]]]:
    groups: dict[int, list[tuple[pa.RecordBatch, int]]] = {}
    for partition, batch, nbytes in items:
        groups.setdefault(partition, []).append((batch, nbytes))
    return list(groups.items())
