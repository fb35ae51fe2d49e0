"""Writes a batch without the records that a volume can never keep: one bad value costs one value.

A volume that knows which records it cannot keep names them. Where it does not (a server says only
that a statement failed), the batch is cut in halves until each bad record is alone.

A volume with a defect says nothing: it raises what its contract does not know. The batch is cut in
the same way, and a record that fails alone, twice, is refused, if the volume wrote another value
in between. Otherwise the volume fails, and not the value.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from zenlake.errors import ZError
from zenlake.newest import Batch, Entry, WideUpdate
from zenlake.volumes.contract import RecordsRefused, Volume

__all__ = ["MOST_TRIES", "RefusedValue", "defect_of", "write_without_refused"]

MOST_TRIES: Final = 64
"""How many parts of a batch fail by a defect before a volume counts as one that keeps nothing."""


class RefusedValue(NamedTuple):
    """A value that a volume can never keep; one without a time is a key that is to be removed."""

    key: str
    time: int
    id: bytes
    why: str
    #: What the volume raised, if that is a defect of its own.
    defect: Exception | None = None


def defect_of(error: Exception) -> str:
    """Return what to say of an exception that a volume may not raise; empty if it may."""
    if isinstance(error, OSError | ZError):
        return ""
    return f"volume has a defect: {type(error).__name__}: {error}"


def write_without_refused(
    volume: Volume, batch: Batch, proof: Callable[[], Batch | None] = lambda: None
) -> list[RefusedValue]:
    """Write a batch, in parts if need be; return what of it the volume refused.

    Raises the errors of `Volume.write` for a failure that may pass, and those of a volume that
    has a defect and keeps nothing. Then all of the batch has to be written again: writing a part
    twice changes nothing.

    Args:
        volume: Where to.
        batch: What to write.
        proof: Gives a value that the volume has written before. If it writes that again, it works.
    """
    refused: list[RefusedValue] = []
    suspects: list[Batch] = []
    works: bool | None = None
    failures = 0
    parts = [batch]
    while parts:
        part = parts.pop()
        try:
            volume.write(part)
        except RecordsRefused as error:
            named = {_moment(record) for record in error.records}
            rest = _without(part, named)
            if rest.size() < part.size():
                refused += [RefusedValue(*moment, str(error)) for moment in sorted(named)]
                if not rest.empty:
                    parts.append(rest)
            elif part.size() > 1:
                left, right = part.halves()
                parts += [right, left]
            else:
                refused += _named(part, str(error))
        except Exception as error:
            if not defect_of(error):
                raise
            failures += 1
            if works is None:
                known = proof()
                if known is not None:
                    volume.write(known)
                    works = True
            if not works and failures >= MOST_TRIES:
                raise
            if part.size() > 1:
                # In any order: who sends many bad values does not know which are looked at.
                parts += random.sample(part.halves(), 2)
            else:
                suspects.append(part)
        else:
            works = works or _has_value(part) or None
    for part in suspects:
        refused += _tried_again(volume, part, works is True)
    return list({one[:3]: one for one in refused}.values())


def _tried_again(volume: Volume, part: Batch, works: bool) -> list[RefusedValue]:
    """Write a record that failed by a defect once more; return it if it fails and others do not."""
    try:
        volume.write(part)
    except RecordsRefused as error:
        return _named(part, str(error))
    except Exception as error:
        what = defect_of(error)
        if not what or not works:
            raise
        gone = [RefusedValue(key, 0, b"", "") for key in (*part.removed, *part.forgotten)]
        return [one._replace(why=f"the {what}", defect=error) for one in (*_named(part, ""), *gone)]
    return []


def _named(part: Batch, why: str) -> list[RefusedValue]:
    """Return the records of a part; that nothing is known of a key is not worth keeping."""
    records: list[Entry | WideUpdate] = [*part.entries, *part.wide, *part.samples]
    return [RefusedValue(*_moment(record), why) for record in records]


def _has_value(part: Batch) -> bool:
    return bool(part.wide) or any(one.value is not None for one in (*part.entries, *part.samples))


def _without(batch: Batch, moments: set[tuple[str, int, bytes]]) -> Batch:
    """A batch without the records of some moments, as values and as history."""
    if not moments:
        return batch
    return batch._replace(
        entries=[one for one in batch.entries if _moment(one) not in moments],
        wide=[one for one in batch.wide if _moment(one) not in moments],
        samples=[one for one in batch.samples if _moment(one) not in moments],
    )


def _moment(record: Entry | WideUpdate) -> tuple[str, int, bytes]:
    """The key, or expression, of a record and when it was said."""
    if isinstance(record, Entry):
        return record.key, record.time, record.id
    if record.put_id:
        return record.expr, record.put_time, record.put_id
    return record.expr, record.deleted_time, record.deleted_id
