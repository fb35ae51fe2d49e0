"""What a storage must answer, found by sorting everything that was ever said."""

from __future__ import annotations

from dataclasses import dataclass

from zenlake.keys import intersects, is_wild
from zenlake.newest import NewestValues


@dataclass(frozen=True, slots=True)
class Said:
    """One sample: without a value it is a deletion."""

    key: str
    time: int
    id: bytes
    value: str | None


def answers(said: list[Said]) -> dict[str, tuple[int, bytes, str]]:
    """What each key has after all of it, in the order of the timestamps."""
    held: dict[str, tuple[int, bytes, str]] = {}
    for one in sorted(said, key=lambda one: (one.time, one.id)):
        meant = [k for k in held if intersects(k, one.key)] if is_wild(one.key) else [one.key]
        for key in meant:
            if one.value is None:
                held.pop(key, None)
            else:
                held[key] = (one.time, one.id, one.value)
    return held


def tell(storage: NewestValues[str], one: Said) -> list[str]:
    """Let a storage hear of a sample."""
    if one.value is None:
        return storage.delete(one.key, one.time, one.id)
    return storage.put(one.key, one.time, one.id, one.value, len(one.value))


def told(storage: NewestValues[str]) -> dict[str, tuple[int, bytes, str]]:
    """All that a storage answers."""
    return {
        held.key: (held.time, held.id, held.value)
        for held in (*storage.matching("**"), *storage.matching("@x/**"))
        if held.value is not None
    }
