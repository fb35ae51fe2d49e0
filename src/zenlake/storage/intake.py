"""Samples into a storage's contents: the path that every put takes."""

from __future__ import annotations

from zenlake.node.sample import Sample
from zenlake.storage.contents import Contents
from zenlake.storage.value import Value

__all__ = ["enter"]


def enter(contents: Contents, sample: Sample) -> int:
    """Let contents hear of a sample that has a timestamp; gives the number of the update, or 0."""
    timestamp = sample.timestamp
    if timestamp is None:
        raise ValueError(f"{sample!r} has no timestamp; give it one")
    key = str(sample.key_expr)
    time = timestamp.seconds << 32 | timestamp.fraction
    if not sample._put:
        return contents.delete(key, time, timestamp.id_bytes)
    attachment = None
    if sample._push is not None:
        attached = sample.attachment
        if attached is not None:
            attachment = attached.to_bytes()
    value = Value(sample.content(), sample._encoding, sample._schema, attachment)
    return contents.put(key, time, timestamp.id_bytes, value)
