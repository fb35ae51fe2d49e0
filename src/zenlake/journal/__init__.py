"""A durable, columnar log of what was heard."""

from __future__ import annotations

from zenlake.journal.disk.layout import partition_of
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.watermark import Watermark
from zenlake.journal.reading.reader import Journal
from zenlake.journal.schema import SCHEMA, UNNUMBERED
from zenlake.journal.writing.trouble import WriterStats
from zenlake.journal.writing.writer import JournalWriter

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
