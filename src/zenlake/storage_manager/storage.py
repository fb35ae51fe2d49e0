"""One storage: a subscriber, a queryable, and the thread that writes its volume.

    samples ──► contents (in memory, under one lock) ──► writer thread ──► volume
    queries ──► answers ──► contents, and payloads from the volume

The subscriber never waits for the volume. When the volume fails, batches are kept and written
again later, and the storage says so; what does not fit into memory meanwhile is counted. A value
that the volume can never keep is refused alone, by name.
"""

from __future__ import annotations

import heapq
import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from zenlake.clock import NTP64
from zenlake.clock.backoff import Backoff
from zenlake.clock.throttle import LineBudget, Throttle
from zenlake.engine.handlers import BatchCallback
from zenlake.errors import LocalError, Timeout
from zenlake.keys import includes, intersects, is_wild
from zenlake.newest import Batch, Contents, Entry, Value
from zenlake.newest.newest_values import Held
from zenlake.storage_manager.answers import StorageReplies
from zenlake.storage_manager.intake import Intake, StorageCounts
from zenlake.values import SampleKind
from zenlake.volumes.contract import Volume
from zenlake.volumes.refusals import RefusedValue, defect_of, write_without_refused

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.clock import Timestamp
    from zenlake.config.model_storages import StorageSettings
    from zenlake.node.narrowed_write import NarrowedWrite
    from zenlake.node.sample import Sample
    from zenlake.storage_manager.replicating import Replicating

__all__ = ["Storage"]

log = logging.getLogger("zenlake.storage_manager")

#: How long changes are gathered for one transaction, in seconds.
GATHER: Final = 0.01
#: After a failure of the volume.
RETRY: Final = Backoff(0.1, 10.0)
#: How many keys and samples are written at a time.
MOST: Final = 50_000
#: How many after failures.
LEAST: Final = 16
#: How many entries are read from a volume at a time.
CHUNK: Final = 500
#: How long an acknowledged put waits for the volume, in seconds.
ACK_TIME: Final = 10.0
#: How long one waits for a volume that fails: its asker is to hear why before it gives up.
FAILING_ACK_TIME: Final = 3.0
#: How many of the values that the volume refused are shown.
SHOWN_REFUSALS: Final = 16
#: Characters of their keys that are shown.
SHOWN_KEY: Final = 200
#: Lines of the log about refused values in a minute: anybody can put one.
REFUSAL_LINES: Final = 20


class Storage:
    """Stores and answers until it is closed."""

    def __init__(
        self,
        session: Session,
        name: str,
        settings: StorageSettings,
        volume: Volume | None,
        *,
        read_only: bool = False,
    ) -> None:
        """Take up what the volume holds, then begin to hear and to answer.

        Without a volume everything lies in memory.
        """
        self.name = name
        self.settings = settings
        self.counts = StorageCounts()
        self._session = session
        self._volume = volume
        self._expr = str(settings.key_expr)
        self._prefix = None if settings.strip_prefix is None else str(settings.strip_prefix)
        self._history = settings.history == "all"
        self._contents = Contents(keeps=volume is not None, history=self._history)
        self._lock = threading.Lock()
        #: Told of changes for the volume, of batches that it has taken, and of the end.
        self._changed = threading.Condition(self._lock)
        self._closed = False
        #: The number of the newest update at some moments, for telling how old others are.
        self._marks: deque[tuple[int, float]] = deque(maxlen=10_000)
        self._failure = ""
        #: The failure without the file that it names: lines about it are counted together.
        self._failing = ""
        self._failing_since = 0.0
        self._throttle = Throttle()
        self._refusal_lines = Throttle(budget=LineBudget(REFUSAL_LINES))
        #: What the volume raised, and may not, for a value that it could not keep.
        self._defect = ""
        #: A key whose value the volume has written.
        self._written_key = ""
        self.read_only = read_only
        if volume is not None:
            self._contents.load(self._noting_one(volume.entries()), volume.wide())
        self._replicating: Replicating | None = None
        if settings.replication is not None:
            self._replicating = _replicating(session, name, settings, self._contents, self._changed)
        self._intake = Intake(self._contents, self.counts, self._lock, self._tell, self.update)
        # Where samples concern nothing but the contents, they take the short way.
        plain = self._replicating is None and self._prefix is None
        # At once: what became too old while it was closed must not be answered.
        self._next_collection = time.monotonic()
        self._writer = threading.Thread(
            target=self._write_on, name=f"zenlake storage {name}", daemon=True
        )
        self._writer.start()
        self._subscriber = (
            None
            if read_only
            else session.declare_subscriber(
                self._expr, BatchCallback(self._intake.heard) if plain else self.update
            )
        )
        if not read_only:
            session.runtime.narrowed_writes.add_store(self._narrowed)
        self._answers = StorageReplies(self, session)
        if self._replicating is not None:
            delay = json.loads(session.runtime.config.get_json("scouting/delay"))
            seconds = 0.5 if delay is None else delay / 1000
            self._replicating.start(self._read_keys, self._tell, takes=not read_only, delay=seconds)

    # ---------------------------------------------------------------------------------- facts

    def status(self) -> dict[str, object]:
        """What an operator sees of it."""
        with self._lock:
            contents = self._contents
            return {
                "history": self.settings.history,
                "ttl": self.settings.ttl,
                "keys": len(contents),
                "tombstones": contents.tombstones,
                "waiting": contents.dirty,
                "waiting_bytes": contents.waiting,
                "lag": round(self._lag(), 3),
                "dropped": contents.dropped,
                "late": contents.late,
                "overflowed": contents.overflowed,
                "puts": self.counts.puts,
                "deletes": self.counts.deletes,
                "queries": self.counts.queries,
                "replies": self.counts.replies,
                "refused": self._answers.refused,
                "outside": self.counts.outside,
                "written": self.counts.written,
                "failures": self.counts.failures,
                "failure": self._failure or None,
                "defect": self._defect or None,
                "values_refused": contents.refused,
                "last_refused": [
                    {"key": key[:SHOWN_KEY], "why": why}
                    for key, why in contents.refusals(SHOWN_REFUSALS)
                ],
                "replication": None if self._replicating is None else self._replicating.status(),
            }

    @property
    def trouble(self) -> str:
        """Why it does not do what it is for; empty if it does."""
        with self._lock:
            why, waiting = self._failure, self._contents.dirty
        if not why:
            return ""
        return f"storage '{self.name}' cannot be written, {waiting} changes wait: {why}"

    @property
    def key_expr(self) -> str:
        """What it stores and answers for."""
        return self._expr

    @property
    def in_memory(self) -> bool:
        """Whether all values lie in memory, so that answers wait for nothing."""
        return self._volume is None

    @property
    def volatile(self) -> bool:
        """Whether it forgets with its process."""
        return self._volume is None or self._volume.CAPABILITY.persistence == "volatile"

    def __len__(self) -> int:
        """How many keys have a value."""
        with self._lock:
            return len(self._contents)

    # -------------------------------------------------------------------------------- samples

    def update(self, sample: Sample) -> int:
        """Store a sample; gives the number of the update, or 0 if it was not stored."""
        stamp = sample.timestamp
        if stamp is None:
            stamp = self._session.new_timestamp()
        key = str(sample.key_expr)
        if self._prefix is not None and not self._below_prefix(key):
            self.counts.outside += 1
            return 0
        moment = stamp.seconds << 32 | stamp.fraction
        if sample.kind is SampleKind.PUT:
            encoding = sample.encoding
            attachment = sample.attachment
            value = Value(
                sample.payload.to_bytes(),
                encoding.id,
                encoding.schema or b"",
                None if attachment is None else attachment.to_bytes(),
            )
            with self._changed:
                self.counts.puts += 1
                number = self._contents.put(key, moment, stamp.id_bytes, value)
                if number and self._replicating is not None:
                    self._replicating.replica.put(key, moment, stamp.id_bytes)
                self._tell()
        else:
            with self._changed:
                self.counts.deletes += 1
                number = self._contents.delete(key, moment, stamp.id_bytes)
                if number and self._replicating is not None:
                    self._replicating.replica.delete(key, moment, stamp.id_bytes)
                self._tell()
        return number

    def _narrowed(self, write: NarrowedWrite) -> bool:
        """Apply a write of many keys to those that its sender may write; False: too many."""
        with self._lock:
            keys = self._contents.keys(write.expr) if not self._closed else []
        samples = write.samples(keys)
        for sample in samples or ():
            self.update(sample)
        return samples is not None

    def _tell(self) -> None:
        """Wake the writer if it sleeps, and acknowledged puts; the lock is held."""
        intake = self._intake
        sleeping = intake.idle and self._contents.dirty > 0
        if sleeping or intake.acknowledging:
            if sleeping:
                self._marks.append((self._contents.number - 1, time.monotonic()))
                self._intake.idle = False
            self._changed.notify_all()

    def _lag(self) -> float:
        """How long the oldest change has waited for the volume, in seconds; the lock is held."""
        contents, marks = self._contents, self._marks
        if not contents.dirty or not marks:
            return 0.0
        while len(marks) > 1 and marks[1][0] <= contents.durable:
            marks.popleft()
        return time.monotonic() - marks[0][1]

    def _below_prefix(self, key: str) -> bool:
        """Whether the volume can hold a key; updates with wildcards are no matter of prefixes."""
        prefix = self._prefix
        return prefix is None or key == prefix or key.startswith(f"{prefix}/") or is_wild(key)

    # ------------------------------------------------------------------------------- the volume

    def _write_on(self) -> None:
        """Write what changed until the storage is closed and everything is written."""
        pause, most = 0.0, MOST
        while True:
            with self._changed:
                while not self._closed and not self._contents.dirty:
                    left = self._next_collection - time.monotonic()
                    if left <= 0:
                        break
                    # What lies in memory has nothing to write.
                    self._intake.idle = self._volume is not None
                    self._changed.wait(left)
                self._intake.idle = False
                if self._closed and (not self._contents.dirty or self._failure):
                    return
                gather = not self._closed and self._contents.dirty > 0
            if gather:
                time.sleep(GATHER)
            with self._lock:
                batch = self._contents.take(most)
                self._marks.append((self._contents.number, time.monotonic()))
                self._lag()  # forgets marks that are no longer of use
            if self._volume is not None and not batch.empty:
                try:
                    refusals = write_without_refused(self._volume, batch, self._known_value)
                except Exception as error:
                    self._failed(error)
                    pause = RETRY.after(pause)
                    self._rest(pause)
                    # It may have been too much for the time that a server has to answer. A defect
                    # may concern all of the first values: then others are to be among them again.
                    most = MOST if most <= LEAST and defect_of(error) else max(LEAST, most // 4)
                    continue
                pause, most = 0.0, min(MOST, most * 4)
                with self._changed:
                    self._recovered()
                    self._refused(refusals)
                    for _ in self._noting_one(reversed(batch.entries)):
                        break
                    self._contents.written(batch)
                    self.counts.written += len(batch.entries) + len(batch.samples) - len(refusals)
                    self._changed.notify_all()
            if time.monotonic() >= self._next_collection:
                self._collect()

    def _recovered(self) -> None:
        """The volume does what it is asked for; the lock is held."""
        if self._failure:
            log.warning("storage '%s' writes again", self.name)
            self._throttle.forget(self._failing)
            self._failure = ""

    def _noting_one(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries that the volume has, and note the key of one that has a value."""
        for entry in entries:
            if entry.value is not None:
                self._written_key = entry.key
            yield entry

    def _known_value(self) -> Batch | None:
        """Return a value that the volume has, to be written as it is; None if none is known."""
        with self._lock:
            entry = self._contents.get(self._written_key)
        # What still has its payload here is new, and may be what the volume fails with.
        if entry is None or entry.value is None or entry.value.payload is not None:
            return None
        return Batch([entry], [], [], [], [])

    def _refused(self, refusals: list[RefusedValue]) -> None:
        """The volume can never keep some values; the lock is held."""
        for one in refusals:
            if one.time:
                self._contents.refuse(one.key, one.time, one.id, one.why)
            text = f"'{one.key[:SHOWN_KEY]}': {one.why}"
            line = self._refusal_lines.line(time.monotonic(), text, one.key)
            if line is not None:
                log.warning(
                    "storage '%s' cannot keep the value of %s",
                    self.name,
                    line,
                    exc_info=None if one.why == self._defect else one.defect,
                )
            if one.defect is not None:
                self._defect = one.why

    def _failed(self, error: Exception) -> None:
        defect = defect_of(error)
        why = f"its {defect}" if defect else str(error) or type(error).__name__
        with self._changed:
            self.counts.failures += 1
            if not self._failure:
                self._failing_since = time.monotonic()
            new, self._failure = why != self._failure, why
            # Each try may name another file.
            code = error.errno if isinstance(error, OSError) else None
            self._failing = why if code is None else os.strerror(code)
            line = self._throttle.line(time.monotonic(), why, self._failing)
            if line is not None:
                log.warning(
                    "storage '%s' cannot write, and goes on trying: %s",
                    self.name,
                    line,
                    exc_info=error if defect and new else None,
                )

    def _rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self._changed:
            while not self._closed:
                left = end - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _collect(self) -> None:
        """Forget deletions and values that are too old; runs on the writer's thread."""
        settings = self.settings
        now = time.time()
        with self._changed:
            self._next_collection = time.monotonic() + settings.garbage_collection.period
            deletions = _ntp64(now - settings.garbage_collection.lifespan)
            values = 0 if settings.ttl is None else _ntp64(now - settings.ttl)
            self._contents.collect(deletions)
            if values:
                self._contents.expire(values)
            if self._replicating is not None:
                self._replicating.replica.forget(deletions, values)
        volume, age = self._volume, settings.history_age
        if volume is None:
            return
        try:
            if self._history:
                volume.trim(
                    None if age is None else _ntp64(now - age),
                    settings.history_count,
                    settings.history_bytes,
                )
            volume.tidy()
        except Exception as error:  # a defect ends no thread
            self._failed(error)
            return
        with self._lock:
            if not self._contents.dirty:
                self._recovered()

    def wait_durable(
        self, number: int, timeout: float = ACK_TIME, failing_timeout: float = inf
    ) -> None:
        """Wait until the volume has all updates up to a number.

        Args:
            number: Of the update.
            timeout: Seconds to wait.
            failing_timeout: Seconds that the volume may have failed.
        """
        end = time.monotonic() + timeout
        with self._changed:
            while self._contents.durable < number:
                now = time.monotonic()
                left = end - now
                if self._failure:
                    left = min(left, self._failing_since + failing_timeout - now)
                if left <= 0 or self._closed:
                    why = f": {self._failure}" if self._failure else ""
                    raise Timeout(f"storage '{self.name}' has not written it in time{why}")
                # A failure is told by nothing but the number of failures.
                self._changed.wait(min(left, 1.0))

    def flush(self, timeout: float = ACK_TIME) -> None:
        """Wait until the volume has all that was heard up to now."""
        with self._lock:
            number = self._contents.number
        self.wait_durable(number, timeout)

    # --------------------------------------------------------------------------------- values

    def settle(self) -> None:
        """Wait until all samples that were received up to now are in the contents.

        Samples and queries are two channels: without this a query would overtake the put that its
        asker sent just before.
        """
        subscriber = self._subscriber
        if subscriber is not None and not subscriber.receiver.channel.settle(ACK_TIME):
            raise Timeout(f"storage '{self.name}' is behind its samples; ask again")

    def value(self, key: str) -> Entry | None:
        """The value of one key, if it has one; its payload may be in the volume."""
        with self._lock:
            entry = self._contents.get(key)
        ttl = self.settings.ttl
        if entry is not None and ttl is not None and entry.time < _ntp64(time.time() - ttl):
            return None
        return entry

    def values(
        self,
        expr: str,
        start: int = 0,
        end: int = (1 << 64) - 1,
        limit: int | None = None,
        is_mine: Callable[[str], bool] | None = None,
    ) -> Iterator[list[Entry]]:
        """Yield the values of the keys that `expr` stands for, with payloads, some at a time.

        With bounds or a limit they come in the order of time, then key.

        Args:
            expr: Stands for the keys.
            start: The first time (NTP64).
            end: The last time.
            limit: How many values, the first in their order.
            is_mine: Which of the keys are answered here; all, if not said.
        """
        if limit == 0:
            return
        with self._lock:
            # Only references: a million keys are some megabytes. If it is all of them, deleted ones
            # too: looking for a million in the tree would hold everybody up, and what is deleted is
            # passed over below.
            everything = is_wild(expr) and includes(expr, self._expr)
            held = self._contents.held(None if everything else expr)
        if is_mine is not None:
            held = [one for one in held if is_mine(one.key)]
        if limit is not None or start > 0 or end < (1 << 64) - 1:
            held = sorted(held, key=lambda one: (one.time, one.key))
        if self.settings.ttl is not None:
            start = max(start, _ntp64(time.time() - self.settings.ttl))
        bounded = start > 0 or end < (1 << 64) - 1
        left = len(held) if limit is None else limit
        chunk = min(CHUNK, max(1, left))
        for first in range(0, len(held), chunk):
            entries = self._read(held[first : first + chunk])
            if bounded:
                entries = [entry for entry in entries if start <= entry.time <= end]
            if len(entries) >= left:
                yield entries[:left]
                return
            left -= len(entries)
            yield entries

    def _read_keys(self, keys: Sequence[str]) -> list[Entry]:
        with self._lock:
            held = self._contents.of_keys(keys)
        return self._read(held)

    def _read(self, held: list[Held[Value]]) -> list[Entry]:
        with self._lock:
            entries, elsewhere = self._contents.read(held)
        if not elsewhere or self._volume is None:
            return entries
        fetched = dict(zip(elsewhere, self._volume.read(elsewhere), strict=True))
        # Changed since it was looked up: what is there now is as good, or it is gone.
        read = (fetched.get(entry.key, entry) for entry in entries)
        return [entry for entry in read if entry is not None and entry.value is not None]

    def samples(
        self,
        expr: str,
        start: int,
        end: int,
        limit: int | None = None,
        is_mine: Callable[[str], bool] | None = None,
    ) -> Iterator[list[Entry]]:
        """Yield every sample from `start` to `end`, in the order of time, then key.

        The parameters are those of `values`.
        """
        assert self._volume is not None
        if limit == 0:
            return
        self.flush()
        keys = [
            key
            for key in self._volume.history_keys()
            if not is_wild(key) and intersects(expr, key) and (is_mine is None or is_mine(key))
        ]
        found = self._volume.history(keys, start, end, limit)
        if limit is None:
            entries = sorted(found, key=_in_time)
        else:
            entries = heapq.nsmallest(limit, found, _in_time)
        for first in range(0, len(entries), CHUNK):
            yield entries[first : first + CHUNK]

    def await_put(self, key: str, stamp: Timestamp, timeout: float = ACK_TIME) -> None:
        """Wait until a put is stored, or a newer value of its key, and written."""
        moment = (stamp.seconds << 32 | stamp.fraction, stamp.id_bytes)
        end = time.monotonic() + timeout
        with self._changed:
            self._intake.acknowledging += 1
            try:
                while True:
                    self._demand_kept(key, *moment)
                    entry = self._contents.get(key)
                    if entry is not None and (entry.time, entry.id) >= moment:
                        number = self._contents.number
                        break
                    left = end - time.monotonic()
                    if left <= 0:
                        raise Timeout(f"storage '{self.name}' has not heard it in time")
                    self._changed.wait(left)
            finally:
                self._intake.acknowledging -= 1
        self.wait_durable(number, max(0.0, end - time.monotonic()), FAILING_ACK_TIME)
        with self._lock:
            self._demand_kept(key, *moment)

    def _demand_kept(self, key: str, moment: int, id: bytes) -> None:
        """Raise `LocalError` if the volume has refused a value; the lock is held."""
        why = self._contents.refusal(key, moment, id)
        if why is not None:
            raise LocalError(f"storage '{self.name}' cannot keep the value of '{key}': {why}")

    # ------------------------------------------------------------------------------------ end

    def close(self) -> None:
        """Hear and answer no more, and write what is still to be written."""
        self._session.runtime.narrowed_writes.remove_store(self._narrowed)
        if self._replicating is not None:
            self._replicating.close()
        self._answers.close()
        if self._subscriber is not None and not self._session.is_closed():
            self._subscriber.undeclare()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._writer.join()
        if self._contents.dirty:
            log.error(
                "storage '%s': %d changes were not written: %s",
                self.name,
                self._contents.dirty,
                self._failure,
            )
        if self._volume is not None:
            self._volume.close()


def _replicating(
    session: Session,
    name: str,
    settings: StorageSettings,
    contents: Contents,
    lock: threading.Condition,
) -> Replicating:
    try:
        from zenlake.storage_manager.replicating import Replicating
    except ModuleNotFoundError as error:
        if error.name != "xxhash":
            raise
        why = "replication needs the package xxhash: pip install 'zenlake[replication]'"
        raise LocalError(f"storage '{name}': {why}") from None
    return Replicating(session, name, settings, contents, lock)


def _in_time(entry: Entry) -> tuple[int, str, bytes]:
    return entry.time, entry.key, entry.id


def _ntp64(seconds: float) -> int:
    return int(NTP64.from_nanos(max(0, int(seconds * 1e9))))
