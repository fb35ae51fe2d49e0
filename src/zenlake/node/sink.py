"""The columnar subscriber: rows for a table instead of objects for a program.

An ordinary subscriber is given a `Sample`. A `FrameSink` is given where the value lies in the
batch that brought it, so that whoever writes tables can copy whole columns and makes nothing a
sample. What is not an ordinary put (deletions, attachments, samples of this very node) comes
through `push`, as a `Sample`.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from zenlake.node.entities import SampleSink


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameSink(SampleSink):
    """A subscriber that is given the bytes of batches."""

    def row(
        self,
        key: str,
        data: bytes,
        start: int,
        end: int,
        encoding: int,
        seconds: int,
        fraction: int,
        stamp_id: bytes,
        qos: int,
        reliable: bool,
    ) -> None:
        """One put: its value is `data[start:end]`; without a timestamp `stamp_id` is empty.

        `data` is the same object for all rows of one batch, and may be kept.
        """
