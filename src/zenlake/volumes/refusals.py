"""Writes a batch without the records that a volume can never keep: one bad value costs one value.

A volume that knows which records it cannot keep names them. Where it does not (a server says only
that a statement failed), the batch is cut in halves until each bad record is alone.
"""

from __future__ import annotations

from typing import NamedTuple

from zenlake.newest import Batch, Entry, WideUpdate
from zenlake.volumes.contract import RecordsRefused, Volume

__all__ = ["RefusedValue", "write_without_refused"]


class RefusedValue(NamedTuple):
    """A value that a volume can never keep."""

    key: str
    time: int
    id: bytes
    why: str


def write_without_refused(volume: Volume, batch: Batch) -> list[RefusedValue]:
    """Write a batch, in parts if need be; return what of it the volume refused.

    Raises the errors of `Volume.write` for a failure that may pass. Then all of the batch has to
    be written again: writing a part twice changes nothing.
    """
    refused: list[RefusedValue] = []
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
                # That nothing is known of a key any more is not worth keeping.
                records: list[Entry | WideUpdate] = [*part.entries, *part.wide, *part.samples]
                refused += [RefusedValue(*_moment(record), str(error)) for record in records]
    return list(dict.fromkeys(refused))


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
