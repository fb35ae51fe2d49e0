"""Samples into a storage's contents: the path that every put takes."""

from __future__ import annotations

from zenlake.node.sample import Sample
from zenlake.storage.contents import Contents
from zenlake.storage.value import Value

__all__ = ["enter", "is_stamped"]


def is_stamped(sample: Sample) -> bool:
    """Whether a sample has a timestamp."""
    return len(sample._stamp_id) > 0


def enter(contents: Contents, sample: Sample) -> bool:
    """Let contents hear of a sample that has a timestamp; tells whether it is a put."""
    # Its parts as they were read: nothing is made that is thrown away again.
    key = str(sample._key_expr)
    time = sample._seconds << 32 | sample._fraction
    if not sample._put:
        contents.delete(key, time, sample._stamp_id)
        return False
    attachment = None
    if sample._push is not None:
        attached = sample.attachment
        if attached is not None:
            attachment = attached.to_bytes()
    value = Value(sample.content(), sample._encoding, sample._schema, attachment)
    contents.put(key, time, sample._stamp_id, value)
    return True
