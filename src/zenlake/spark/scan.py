"""Reading a range of a journal in a task: the wanted rows, as the columns that were asked for."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from zenlake.errors import JournalGap
from zenlake.spark.network import open_journal
from zenlake.spark.offsets import DataLoss, Range
from zenlake.spark.options import SourceOptions
from zenlake.spark.pushdown import ScanRequest
from zenlake.spark.schema import Maker

__all__ = ["rows"]

log = logging.getLogger("zenlake.spark")


def rows(
    options: SourceOptions,
    names: Sequence[str],
    piece: Range,
    request: ScanRequest,
    subscribed: Sequence[str] | None,
) -> Iterator[Any]:
    """Return the asked-for columns of the requested rows in a range, batch by batch."""
    maker = Maker(names)
    needed = {*maker.needed, "key"} if request.key_condition.nodes else maker.needed
    at = piece.start
    with open_journal(options) as journal:
        while True:
            try:
                for batch in journal.scan(
                    {piece.partition: at},
                    {piece.partition: piece.end},
                    partition=piece.partition,
                    keys=request.expressions(subscribed),
                    time=request.time.pair,
                    columns=sorted({*needed, "offset"}),
                ):
                    at = int(batch.column("offset")[-1].as_py()) + 1
                    kept = request.filter(batch)
                    if kept.num_rows:
                        yield maker.batch(kept, piece.partition)
                return
            except JournalGap as gap:
                # Retention was faster than this task.
                if options.flag("failOnDataLoss", True):
                    raise DataLoss(
                        f"{gap}. Set failOnDataLoss=false to go on without them"
                    ) from gap
                log.warning("rows are missing and passed over: %s", gap)
                at = max(at, gap.earliest)
