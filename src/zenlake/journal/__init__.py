"""A durable, columnar log of what was heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.journal.disk.layout import partition_of
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.watermark import Watermark
from zenlake.journal.options import Around, Options, RetainRule
from zenlake.journal.reading.reader import Journal
from zenlake.journal.schema import SCHEMA, UNNUMBERED
from zenlake.journal.writing.trouble import WriterStats
from zenlake.journal.writing.writer import JournalWriter
from zenlake.lazy import lazy_names

if TYPE_CHECKING:
    from zenlake.journal.ingest.columns import ColumnSink, ColumnSubscriber, declare_columns
    from zenlake.journal.recorder import Recorder
    from zenlake.journal.serving.bus import RemoteJournal

__all__ = [
    "SCHEMA",
    "UNNUMBERED",
    "Around",
    "ColumnSink",
    "ColumnSubscriber",
    "Journal",
    "JournalWriter",
    "Options",
    "Recorder",
    "RemoteJournal",
    "RetainRule",
    "Segment",
    "Watermark",
    "WriterStats",
    "declare_columns",
    "partition_of",
]

# Imported when they are asked for: they need a session, and most readers of a journal have none.
__getattr__ = lazy_names(
    __name__,
    {
        "ColumnSink": "ingest.columns",
        "ColumnSubscriber": "ingest.columns",
        "Recorder": "recorder",
        "RemoteJournal": "serving.bus",
        "declare_columns": "ingest.columns",
    },
)
