"""Which value a key has, when samples come late, twice, or for many keys at once.

The answer is what would be there had everything arrived in the order of its timestamps (time,
then id), and it is the same whatever order it did arrive in:

    put k            k has this value
    delete k         k has none; a tombstone stays, so that an older put that comes late is refused
    delete a/**      no key of a/** has a value
    put a/**         every key of a/** that has a value at that moment has this one

Updates of many keys are remembered, because a key that they meant may be heard of later. For a
late put of time t: a remembered deletion newer than t means that it is gone already; else the
newest remembered put newer than t is what it has become.

What is remembered is bounded: `collect` forgets tombstones and updates of many keys that are
older than anyone can still be late, and counters tell what did not fit.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar, final

from zenlake.keys.matching import is_wild
from zenlake.keys.tree import KeyTree

__all__ = ["Held", "NewestValues"]

V = TypeVar("V")

MOST_KEYS: Final = 1_000_000
MOST_BYTES: Final = 1 << 30
MOST_WIDE: Final = 10_000


@final
class Held(Generic[V]):
    """What is known of one key: its value and when that was said, or that it was deleted."""

    __slots__ = ("base_id", "base_time", "id", "key", "size", "time", "value")

    def __init__(self, key: str, time: int, id: bytes, value: V | None, size: int) -> None:
        """As the newest sample for this very key said it; without a value it is a tombstone."""
        self.key: str = key
        #: When the value was said, and by whose clock.
        self.time: int = time
        self.id: bytes = id
        self.value: V | None = value
        self.size: int = size
        # When the key itself was last put: an update of many keys may have replaced the value
        # since, yet a deletion between the two still means this key.
        self.base_time: int = time
        self.base_id: bytes = id

    def __repr__(self) -> str:
        """The key and its time."""
        return f"<Held {self.key} at {self.time}{'' if self.value is not None else ' deleted'}>"


@final
class _Wide(Generic[V]):
    """The newest put and the newest deletion of one expression with wildcards."""

    __slots__ = ("deleted", "deleted_id", "put", "put_id", "size", "value")

    def __init__(self) -> None:
        self.value: V | None = None
        self.size: int = 0
        # Without an id there was none: every clock has an id.
        self.put: int = 0
        self.put_id: bytes = b""
        self.deleted: int = 0
        self.deleted_id: bytes = b""


@final
class NewestValues(Generic[V]):
    """The newest value of each key; `V` is the value itself, or whatever leads to it.

    A time is any integer that grows with time, the same kind for all samples.
    """

    def __init__(
        self,
        most_keys: int = MOST_KEYS,
        most_bytes: int = MOST_BYTES,
        most_wide: int = MOST_WIDE,
    ) -> None:
        """Hold at most so many keys, bytes of values, and expressions updated at once."""
        self._most_keys: int = most_keys
        self._most_bytes: int = most_bytes
        self._most_wide: int = most_wide
        self._held: dict[str, Held[V]] = {}
        self._tree: KeyTree[Held[V]] = KeyTree()
        self._wide: KeyTree[_Wide[V]] = KeyTree()
        #: Bytes of the values held.
        self.bytes: int = 0
        #: Keys held as deleted.
        self.tombstones: int = 0
        #: Samples older than what is known.
        self.late: int = 0
        #: Values that did not fit: their keys are not answered for.
        self.overflowed: int = 0
        #: Updates of many keys forgotten before their time.
        self.forgotten: int = 0

    def __len__(self) -> int:
        """How many keys have a value."""
        return len(self._held) - self.tombstones

    def get(self, key: str) -> Held[V] | None:
        """What `key` has, or None."""
        held = self._held.get(key)
        return None if held is None or held.value is None else held

    def matching(self, expr: str) -> list[Held[V]]:
        """What the keys that `expr` stands for have."""
        if not is_wild(expr):
            held = self.get(expr)
            return [] if held is None else [held]
        return [
            entry.value for entry in self._tree.intersecting(expr) if entry.value.value is not None
        ]

    # --------------------------------------------------------------------------------- all of it

    def held(self) -> list[Held[V]]:
        """What is known of each key, deleted ones too; it changes as more is heard."""
        return list(self._held.values())

    def known(self, key: str) -> Held[V] | None:
        """What is known of one key, deleted or not."""
        return self._held.get(key)

    def update_of_many(self, expr: str) -> tuple[int, bytes, V | None, int, bytes] | None:
        """The newest put (time, id, value) and deletion (time, id) of an expression."""
        wide = self._wide.get(expr)
        if wide is None:
            return None
        return wide.put, wide.put_id, wide.value, wide.deleted, wide.deleted_id

    def puts_of_many(self) -> list[tuple[str, int, bytes, V, int]]:
        """The newest put of each expression with wildcards: when, by whom, what, of what size."""
        puts: list[tuple[str, int, bytes, V, int]] = []
        for entry in self._wide.entries():
            wide = entry.value
            value = wide.value
            if wide.put_id and value is not None:
                puts.append((entry.key, wide.put, wide.put_id, value, wide.size))
        return puts

    def deletions_of_many(self) -> list[tuple[str, int, bytes]]:
        """The newest deletion of each expression with wildcards: when, and by whom."""
        return [
            (entry.key, entry.value.deleted, entry.value.deleted_id)
            for entry in self._wide.entries()
            if entry.value.deleted_id
        ]

    def hold(
        self, key: str, time: int, id: bytes, value: V, size: int, base_time: int, base_id: bytes
    ) -> None:
        """Hear of what another storage held: a key put at its base time, and what it has since."""
        self.put(key, base_time, base_id, value, size)
        held = self._held.get(key)
        # Not the key's own put: one of many keys, which is newer and need not be remembered here.
        if held is not None and held.value is not None and _newer(time, id, held.time, held.id):
            self._replace(held, time, id, value, size)

    # -------------------------------------------------------------------------------- updates

    def put(self, key: str, time: int, id: bytes, value: V, size: int) -> list[str]:
        """Hear of a value; gives the keys that have changed."""
        if "*" in key and is_wild(key):
            return self._put_wide(key, time, id, value, size)
        held = self._held.get(key)
        # Newer than its value is newer than its base: most puts are compared once.
        if held is not None and not _newer(time, id, held.time, held.id):
            if not _newer(time, id, held.base_time, held.base_id):
                self.late += 1
                return []
            if held.value is not None and _newer(held.time, held.id, time, id):
                # A newer update of many keys has replaced it already.
                held.base_time = time
                held.base_id = id
                self.late += 1
                return []
        if len(self._wide):
            return self._put_among_wide(key, time, id, value, size)
        if held is not None and held.value is not None:
            self._replace(held, time, id, value, size)
            held.base_time = time
            held.base_id = id
        else:
            self._hold(key, time, id, value, size)
        return [key]

    def delete(self, key: str, time: int, id: bytes) -> list[str]:
        """Hear that a value was removed; gives the keys that have changed."""
        if "*" in key and is_wild(key):
            return self._delete_wide(key, time, id)
        held = self._held.get(key)
        if held is not None and not _newer(time, id, held.base_time, held.base_id):
            self.late += 1
            return []
        changed = held is not None and held.value is not None
        for entry in self._wide.intersecting(key) if len(self._wide) else []:
            wide = entry.value
            if wide.deleted_id and _newer(wide.deleted, wide.deleted_id, time, id):
                # What remembers that deletion refuses late puts for this one too.
                self._drop(key)
                return [key] if changed else []
        self._drop(key)
        if len(self._held) >= self._most_keys and not self._make_room():
            self.overflowed += 1
        else:
            held = Held(key, time, id, None, 0)
            self._held[key] = held
            self._tree.insert(key, held)
            self.tombstones += 1
        return [key] if changed else []

    def collect(self, before: int) -> int:
        """Forget tombstones and updates of many keys older than `before`; gives how many."""
        keys, exprs = self.forget(before)
        return len(keys) + len(exprs)

    def forget(self, before: int) -> tuple[list[str], list[str]]:
        """Forget what is older than `before`: gives tombstones' keys, and expressions of many.

        An expression stands there once for its put and once for its deletion.
        """
        keys = [
            held.key for held in self._held.values() if held.value is None and held.time < before
        ]
        for key in keys:
            self._drop(key)
        exprs: list[str] = []
        for entry in self._wide.entries():
            wide = entry.value
            if wide.put_id and wide.put < before:
                wide.value = None
                wide.size = 0
                wide.put_id = b""
                exprs.append(entry.key)
            if wide.deleted_id and wide.deleted < before:
                wide.deleted_id = b""
                exprs.append(entry.key)
            if not wide.put_id and not wide.deleted_id:
                self._wide.remove(entry.key)
        return keys, exprs

    def expire(self, before: int) -> list[str]:
        """Forget values older than `before`, with no tombstone: gives their keys."""
        keys = [
            held.key
            for held in self._held.values()
            if held.value is not None and held.time < before
        ]
        for key in keys:
            self._drop(key)
        return keys

    def refuse(self, key: str) -> None:
        """Forget a key whose value cannot be kept: better no answer than an old one."""
        self._drop(key)

    def refuse_many(self, expr: str) -> None:
        """Forget a put of many keys whose value cannot be kept, else what else is remembered."""
        wide = self._wide.get(expr)
        if wide is None:
            return
        if wide.put_id and wide.deleted_id:
            wide.value = None
            wide.size = 0
            wide.put_id = b""
        else:
            self._wide.remove(expr)

    # --------------------------------------------------------------------------- many at once

    def _put_among_wide(self, key: str, time: int, id: bytes, value: V, size: int) -> list[str]:
        """Put a key that updates of many keys may have meant already."""
        base_time = time
        base_id = id
        gone = False
        for entry in self._wide.intersecting(key):
            wide = entry.value
            if wide.deleted_id and _newer(wide.deleted, wide.deleted_id, base_time, base_id):
                gone = True
                break
            newest = wide.value
            if newest is not None and _newer(wide.put, wide.put_id, time, id):
                time = wide.put
                id = wide.put_id
                value = newest
                size = wide.size
        if gone:
            self.late += 1
            return [key] if self._drop(key) else []
        held = self._held.get(key)
        if held is not None and held.value is not None:
            self._replace(held, time, id, value, size)
        else:
            held = self._hold(key, time, id, value, size)
        held.base_time = base_time
        held.base_id = base_id
        return [key]

    def _put_wide(self, expr: str, time: int, id: bytes, value: V, size: int) -> list[str]:
        wide = self._remember(expr)
        if wide.put_id and not _newer(time, id, wide.put, wide.put_id):
            self.late += 1
            return []
        wide.value = value
        wide.size = size
        wide.put = time
        wide.put_id = id
        changed: list[str] = []
        for entry in self._tree.intersecting(expr):
            held = entry.value
            if held.value is not None and _newer(time, id, held.time, held.id):
                changed.append(held.key)
                self._replace(held, time, id, value, size)
        return changed

    def _delete_wide(self, expr: str, time: int, id: bytes) -> list[str]:
        wide = self._remember(expr)
        if wide.deleted_id and not _newer(time, id, wide.deleted, wide.deleted_id):
            # Whatever it meant was put before the newer one too, and is gone.
            self.late += 1
            return []
        wide.deleted = time
        wide.deleted_id = id
        changed: list[str] = []
        for entry in self._tree.intersecting(expr):
            held = entry.value
            if _newer(time, id, held.base_time, held.base_id):
                if held.value is not None:
                    changed.append(held.key)
                self._drop(held.key)
        return changed

    def _remember(self, expr: str) -> _Wide[V]:
        remembered = self._wide.get(expr)
        if remembered is not None:
            return remembered
        if len(self._wide) >= self._most_wide:
            self._forget_oldest()
        wide: _Wide[V] = _Wide()
        self._wide.insert(expr, wide)
        return wide

    def _forget_oldest(self) -> None:
        oldest = ""
        when = 0
        for entry in self._wide.entries():
            wide = entry.value
            last = wide.put if wide.put_id else wide.deleted
            if wide.deleted_id and wide.deleted > last:
                last = wide.deleted
            if not oldest or last < when:
                oldest = entry.key
                when = last
        self._wide.remove(oldest)
        self.forgotten += 1

    # ---------------------------------------------------------------------------- book-keeping

    def _hold(self, key: str, time: int, id: bytes, value: V, size: int) -> Held[V]:
        """Hold a key that had no value; tells what was made of it, held or not."""
        self._drop(key)
        held = Held(key, time, id, value, size)
        full = len(self._held) >= self._most_keys and not self._make_room()
        if full or self.bytes + size > self._most_bytes:
            self.overflowed += 1
            return held
        self._held[key] = held
        self._tree.insert(key, held)
        self.bytes += size
        return held

    def _replace(self, held: Held[V], time: int, id: bytes, value: V, size: int) -> None:
        if self.bytes - held.size + size > self._most_bytes:
            # Better no answer than an old one.
            self.overflowed += 1
            self._drop(held.key)
            return
        self.bytes += size - held.size
        held.time = time
        held.id = id
        held.value = value
        held.size = size

    def _drop(self, key: str) -> bool:
        """Forget a key; tells whether it had a value."""
        held = self._held.pop(key, None)
        if held is None:
            return False
        self._tree.remove(key)
        if held.value is None:
            self.tombstones -= 1
            return False
        self.bytes -= held.size
        return True

    def _make_room(self) -> bool:
        """Forget the older half of the tombstones; tells whether there were any."""
        if not self.tombstones:
            return False
        times = sorted([held.time for held in self._held.values() if held.value is None])
        middle = times[len(times) // 2]
        for held in [h for h in self._held.values() if h.value is None and h.time <= middle]:
            self._drop(held.key)
        return True


def _newer(time: int, id: bytes, than_time: int, than_id: bytes) -> bool:
    """Whether one timestamp is later than another: by its time, else by its id."""
    # Times fill a machine word, so each comparison costs: most of them need one.
    if time > than_time:
        return True
    return time == than_time and id > than_id
