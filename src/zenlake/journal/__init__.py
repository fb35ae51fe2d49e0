"""A durable, columnar log of what was heard."""

from __future__ import annotations

from zenlake.journal.layout import partition_of
from zenlake.journal.reader import Journal
from zenlake.journal.schema import SCHEMA, UNNUMBERED
from zenlake.journal.segment import Segment
from zenlake.journal.watermark import Watermark
from zenlake.journal.writer import JournalWriter, WriterStats

__all__ = [
    "SCHEMA",
    "UNNUMBERED",
    "Journal",
    "JournalWriter",
    "Segment",
    "Watermark",
    "WriterStats",
    "partition_of",
]
