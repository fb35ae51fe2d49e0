"""The contents of one storage: which value each key has, and what its volume has still to write.

    put, delete ──► NewestValues (the rule) ──► dirty keys ──► take() ──► volume ──► written()
    get         ◄── payloads that are dirty from here, all others from the volume

A key that changes again before it is written is written once, with its newest value: a volume
slower than its traffic falls behind by at most one value for each key. With history every sample
is written, and waits in a queue of bounded size.

Updates are numbered. `durable` is the number up to which everything is in the volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast, final

from zenlake.newest.newest_values import Held, NewestValues
from zenlake.newest.value import Batch, Entry, Value, WideUpdate

__all__ = ["Contents"]

#: How many bytes of payload may wait for a volume.
MOST_WAITING: Final = 256 << 20
_new: Any = tuple.__new__
#: How many values that the volume refused are remembered, so that they are not tried again.
MOST_REFUSED: Final = 10_000
#: What a key costs besides its payload, about.
KEY_COST: Final = 256


@final
class Contents:
    """The index of a storage, with the changes that its volume has not written yet."""

    def __init__(
        self,
        *,
        keeps: bool,
        history: bool = False,
        most_keys: int = 10_000_000,
        most_bytes: int = 4 << 30,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """Without a volume that `keeps` payloads they stay here, and nothing is to be written.

        Args:
            keeps: Whether a volume keeps payloads, so that written ones can leave memory.
            history: Whether the volume wants every sample.
            most_keys: How many keys are held, deleted ones included.
            most_bytes: How many bytes of payload are held in memory.
            most_waiting: How many bytes of payload may wait for the volume.
        """
        self._keeps: bool = keeps
        self._history: bool = history
        self._most_waiting: int = most_waiting
        self._newest: NewestValues[Value] = NewestValues(most_keys, most_bytes)
        # What each change weighs, and its number; the oldest change is written first.
        self._dirty: dict[str, int] = {}
        self._since: dict[str, int] = {}
        self._dirty_wide: dict[str, int] = {}
        self._samples: list[Entry] = []
        self._taken: int = 0
        #: The keys whose values the last update has changed.
        self.changed: list[str] = []
        #: Bytes of payload that wait for the volume.
        self.waiting: int = 0
        #: The number of the newest update.
        self.number: int = 0
        #: All updates up to this number are in the volume.
        self.durable: int = 0
        #: Samples that were not stored because too many waited for the volume.
        self.dropped: int = 0
        #: Values that the volume can never keep.
        self.refused: int = 0
        # By key: the time and the id of the newest of them, and why.
        self._refused: dict[str, tuple[int, bytes, str]] = {}

    # ------------------------------------------------------------------------------ questions

    def __len__(self) -> int:
        """How many keys have a value."""
        return len(self._newest)

    @property
    def late(self) -> int:
        """Samples that came after a newer one of their key."""
        return self._newest.late

    @property
    def overflowed(self) -> int:
        """Values that did not fit into memory."""
        return self._newest.overflowed

    @property
    def tombstones(self) -> int:
        """Keys that are held as deleted."""
        return self._newest.tombstones

    @property
    def dirty(self) -> int:
        """Keys and samples that wait for the volume."""
        return len(self._dirty) + len(self._dirty_wide) + len(self._samples)

    def matching(self, expr: str) -> list[Entry]:
        """The entries of all keys with a value that `expr` stands for."""
        return [_entry(held) for held in self._newest.matching(expr)]

    def keys(self, expr: str) -> list[str]:
        """The keys with a value that `expr` stands for."""
        return [held.key for held in self._newest.matching(expr)]

    def get(self, key: str) -> Entry | None:
        """The entry of one key, if it has a value."""
        held = self._newest.get(key)
        return None if held is None else _entry(held)

    def held(self, expr: str | None = None) -> list[Held[Value]]:
        """What is held of the keys that `expr` stands for, or of all; it changes with them.

        Of all, deleted ones too.
        """
        return self._newest.held() if expr is None else self._newest.matching(expr)

    def of_keys(self, keys: Sequence[str]) -> list[Held[Value]]:
        """What is held of those keys that have a value."""
        found: list[Held[Value]] = []
        for key in keys:
            held = self._newest.get(key)
            if held is not None:
                found.append(held)
        return found

    def read(self, held: list[Held[Value]]) -> tuple[list[Entry], list[str]]:
        """The entries of what has a value now, and the keys whose payload is elsewhere."""
        entries: list[Entry] = []
        elsewhere: list[str] = []
        for one in held:
            value = one.value
            if value is None:
                continue
            entries.append(_entry(one))
            if value.payload is None:
                elsewhere.append(one.key)
        return entries, elsewhere

    def known(self, key: str) -> Entry | None:
        """What is known of one key, deleted or not."""
        held = self._newest.known(key)
        return None if held is None else _entry(held)

    def records(self) -> list[Entry]:
        """What is known of each key, deleted ones included."""
        return [_entry(held) for held in self._newest.held()]

    def updates_of_many(self) -> list[WideUpdate]:
        """The updates of key expressions with wildcards that are remembered."""
        exprs = {expr for expr, *_ in self._newest.puts_of_many()}
        exprs.update(expr for expr, *_ in self._newest.deletions_of_many())
        return [
            update for expr in sorted(exprs) if (update := self.update_of_many(expr)) is not None
        ]

    def update_of_many(self, expr: str) -> WideUpdate | None:
        """The newest put and deletion of an expression with wildcards, if any is remembered."""
        update = self._newest.update_of_many(expr)
        return None if update is None else WideUpdate(expr, *update)

    # -------------------------------------------------------------------------------- updates

    def put(self, key: str, time: int, id: bytes, value: Value) -> int:
        """Hear of a value; gives the number of the update, or 0 if there was no room for it."""
        payload = value.payload
        size = KEY_COST if payload is None else len(payload) + KEY_COST
        if self._keeps and not self._has_room(key, time, id, size):
            return 0
        # What lies in a volume does not count as held in memory.
        weight = 0 if self._keeps else size
        self.number += 1
        if not self._keeps:
            self.changed = self._newest.put(key, time, id, value, weight)
            self.durable = self.number
            return self.number
        before = self._base(key)
        self.changed = self._newest.put(key, time, id, value, weight)
        self._note(key, self.changed, size, before)
        if self._history:
            self._samples.append(Entry(key, time, id, time, id, value))
            self.waiting += size
        return self.number

    def delete(self, key: str, time: int, id: bytes) -> int:
        """Hear that a value was removed; gives the number of the update, or 0 without room."""
        if self._keeps and self.waiting + KEY_COST > self._most_waiting:
            self.dropped += 1
            return 0
        self.number += 1
        if not self._keeps:
            self.changed = self._newest.delete(key, time, id)
            self.durable = self.number
            return self.number
        before = self._base(key)
        self.changed = self._newest.delete(key, time, id)
        self._note(key, self.changed, KEY_COST, before)
        if self._history:
            self._samples.append(Entry(key, time, id, time, id, None))
            self.waiting += KEY_COST
        return self.number

    def hold(
        self, key: str, time: int, id: bytes, value: Value, base_time: int, base_id: bytes
    ) -> int:
        """Hear of what another storage has: a key put at its base time, with a value since.

        Gives the number of the update, or 0 without room.
        """
        payload = value.payload
        size = KEY_COST if payload is None else len(payload) + KEY_COST
        if self._keeps and not self._has_room(key, time, id, size):
            return 0
        self.number += 1
        before = self._base(key)
        weight = 0 if self._keeps else size
        self._newest.hold(key, time, id, value, weight, base_time, base_id)
        held = self._newest.known(key)
        new = held is not None and held.time == time and held.id == id
        self.changed = [key] if new else []
        if self._keeps:
            self._note(key, self.changed, size, before)
        else:
            self.durable = self.number
        return self.number

    def _has_room(self, key: str, time: int, id: bytes, size: int) -> bool:
        """Whether a value may wait for the volume; one that may not is counted."""
        if self._refused:
            refused = self._refused.get(key)
            if refused is not None and (time, id) <= refused[:2]:
                # Late, or heard again of a replica: the volume is not asked twice.
                self._newest.late += 1
                return False
        if self.waiting + size <= self._most_waiting:
            return True
        self.dropped += 1
        if size > self._most_waiting:
            most = self._most_waiting
            self._refuse(key, time, id, f"{size} bytes; a storage takes at most {most} at a time")
        return False

    def _base(self, key: str) -> tuple[int, bytes]:
        """When this very key was last put or deleted, if that is known."""
        held = self._newest.known(key)
        return (0, b"") if held is None else (held.base_time, held.base_id)

    def _note(self, key: str, changed: list[str], size: int, before: tuple[int, bytes]) -> None:
        if "*" in key:
            if key not in self._dirty_wide:
                self._dirty_wide[key] = self.number
        elif not changed and self._base(key) != before:
            # Its value is as it was, and may be in the volume: then only its times are written.
            self._mark(key, size)
        for name in changed:
            self._mark(name, size)

    def _mark(self, key: str, size: int) -> None:
        before = self._dirty.get(key)
        self._dirty[key] = size
        if before is None:
            self.waiting += size
            self._since[key] = self.number
        else:
            # It keeps its turn: a key that always changes is written too.
            self.waiting += size - before

    # ------------------------------------------------------------------------------- the volume

    def load(self, entries: Iterable[Entry], wide: Iterable[WideUpdate]) -> None:
        """Take up what a volume holds; nothing of it is to be written again."""
        newest = self._newest
        for update in wide:
            if update.deleted_id:
                newest.delete(update.expr, update.deleted_time, update.deleted_id)
            if update.put_id and update.value is not None:
                newest.put(update.expr, update.put_time, update.put_id, update.value, 0)
        for entry in entries:
            value = entry.value
            if value is None:
                newest.delete(entry.key, entry.time, entry.id)
            else:
                newest.hold(
                    entry.key, entry.time, entry.id, value, 0, entry.base_time, entry.base_id
                )
        newest.late = 0

    def take(self, most: int = 50_000) -> Batch:
        """What the volume has to write next, at most so many keys and samples of each kind.

        It counts as waiting until `written` is told that the volume has it.
        """
        self._taken = self.number
        entries: list[Entry] = []
        removed: list[str] = []
        for name in self._dirty:
            if len(entries) + len(removed) >= most:
                break
            held = self._newest.known(name)
            if held is None:
                removed.append(name)
            else:
                entries.append(_entry(held))
        wide: list[WideUpdate] = []
        forgotten: list[str] = []
        for expr in self._dirty_wide:
            update = self._newest.update_of_many(expr)
            if update is None:
                forgotten.append(expr)
            else:
                wide.append(WideUpdate(expr, *update))
        return Batch(entries, removed, wide, forgotten, self._samples[:most])

    def written(self, batch: Batch) -> None:
        """The volume has all of the batch that was taken last: its payloads leave memory."""
        for entry in batch.entries:
            held = self._newest.known(entry.key)
            if held is None or held.time != entry.time or held.id != entry.id:
                self._since[entry.key] = self._taken + 1
                continue
            value = held.value
            if value is not None and value.payload is not None:
                # Keys that were put together share a value: each gets one of its own.
                held.value = Value(None, value.encoding_id, value.schema, value.attachment)
            if held.base_time == entry.base_time and held.base_id == entry.base_id:
                self._clean(entry.key)
            else:
                self._since[entry.key] = self._taken + 1
        for name in batch.removed:
            if self._newest.known(name) is None:
                self._clean(name)
            else:
                self._since[name] = self._taken + 1
        for update in batch.wide:
            if self._newest.update_of_many(update.expr) == tuple(update)[1:]:
                del self._dirty_wide[update.expr]
            else:
                self._dirty_wide[update.expr] = self._taken + 1
        for expr in batch.forgotten:
            if self._newest.update_of_many(expr) is None:
                del self._dirty_wide[expr]
            else:
                self._dirty_wide[expr] = self._taken + 1
        for sample in batch.samples:
            sampled = sample.value
            payload = None if sampled is None else sampled.payload
            self.waiting -= KEY_COST if payload is None else len(payload) + KEY_COST
        del self._samples[: len(batch.samples)]
        self.durable = self._reached()

    def refuse(self, key: str, time: int, id: bytes, why: str) -> None:
        """The volume can never keep the value that a key, or an expression, has since a time.

        To be told before `written`. Nothing is known of the key then, and the volume is told so.
        """
        if "*" in key:
            update = self._newest.update_of_many(key)
            if update is not None and (time, id) == _last_of(update):
                self._newest.refuse_many(key)
        else:
            held = self._newest.known(key)
            if held is not None and held.time == time and held.id == id:
                self._newest.refuse(key)
        self._refuse(key, time, id, why)

    def _refuse(self, key: str, time: int, id: bytes, why: str) -> None:
        self.refused += 1
        before = self._refused.pop(key, None)
        if before is not None and before[:2] > (time, id):
            self._refused[key] = before
            return
        if len(self._refused) >= MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        self._refused[key] = (time, id, why)

    def refusal(self, key: str, time: int, id: bytes) -> str | None:
        """Why the volume cannot keep the value that a key has since a time, or a newer one."""
        refused = self._refused.get(key)
        return None if refused is None or refused[:2] < (time, id) else refused[2]

    def refusals(self, most: int) -> list[tuple[str, str]]:
        """The keys of the last values that were refused, and why."""
        return [(key, why) for key, (_, _, why) in list(self._refused.items())[-most:]]

    def _reached(self) -> int:
        """The number up to which nothing waits."""
        number = self.number - len(self._samples)
        for since in self._since.values():
            number = min(number, since - 1)
        for since in self._dirty_wide.values():
            number = min(number, since - 1)
        return number

    def _clean(self, key: str) -> None:
        size = self._dirty.pop(key, None)
        if size is not None:
            self.waiting -= size
            self._since.pop(key, None)

    # ------------------------------------------------------------------------------ forgetting

    def collect(self, before: int) -> int:
        """Forget tombstones and updates of many keys that are older than `before`."""
        keys, exprs = self._newest.forget(before)
        if self._keeps:
            for key in keys:
                self._mark(key, KEY_COST)
            for expr in exprs:
                if expr not in self._dirty_wide:
                    self._dirty_wide[expr] = self.number
        return len(keys) + len(exprs)

    def expire(self, before: int) -> int:
        """Forget values that are older than `before`; gives how many there were."""
        keys = self._newest.expire(before)
        if self._keeps:
            for key in keys:
                self._mark(key, KEY_COST)
        return len(keys)


def _last_of(update: tuple[int, bytes, Value | None, int, bytes]) -> tuple[int, bytes]:
    """The time and the id of an update of many keys: of its put, else of its deletion."""
    put_time, put_id, _, deleted_time, deleted_id = update
    return (put_time, put_id) if put_id else (deleted_time, deleted_id)


def _entry(held: Held[Value]) -> Entry:
    # As `Entry(...)` does it, in a third of the time: every value that is asked for is one.
    parts = (held.key, held.time, held.id, held.base_time, held.base_id, held.value)
    return cast(Entry, _new(Entry, parts))
