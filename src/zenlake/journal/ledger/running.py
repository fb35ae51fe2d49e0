"""The ledger of a journal that is being written: entered as rows are, put aside now and then.

Locks: `order` is held while rows go to the writer and into the ledger, so that both see them in one
order; it may be held while the disk is waited for. The ledger itself has a lock that is held while
it is looked at, and never while the disk is waited for.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zenlake.journal.disk.layout import partition_of
from zenlake.journal.ledger import checkpoint
from zenlake.journal.ledger.account import Gap
from zenlake.recorded.words import source_text

if TYPE_CHECKING:
    from zenlake.journal.ledger.heartbeats import Heartbeat
    from zenlake.journal.ledger.ledger import Ledger, Opened
    from zenlake.journal.reading.reader import Journal

log = logging.getLogger("zenlake.journal")


class RunningLedger:
    """The ledger of one journal, for the threads of its recorder."""

    def __init__(
        self, journal: Journal, partitions: int, drops: Callable[[], Mapping[str, int]]
    ) -> None:
        """Catch up with what is durable.

        `drops`: how many samples were not kept in this run, by reason.
        """
        self._journal = journal
        self._partitions = partitions
        self._drops = drops
        #: Held while rows are handed on, so that writer and ledger see them in one order.
        self.order = threading.Lock()
        self._lock = threading.Lock()
        self._ledger = self._caught_up()
        self._drops_before = dict(self._ledger.drops)
        self._put_aside: dict[int, int] = {}

    def _caught_up(self) -> Ledger:
        """The ledger of what is durable; damage of the past does not stop the present."""
        where = self._journal.path
        return checkpoint.caught_up(
            self._journal,
            checkpoint.stored(where),
            lambda error: log.error("the ledger lacks what %s lost: %s", where, error),
        )

    def catch_up_anew(self) -> None:
        """Read again what is durable: rows were entered that the disk refused; `order` is held."""
        ledger = self._caught_up()
        with self._lock:
            ledger.drops = self._ledger.drops
            self._ledger = ledger

    # ---------------------------------------------------------------------------------- rows

    def enter(self, partition: int, batch: Any) -> tuple[int, list[Opened]]:
        """Enter rows; the offset of the first, and the gaps that they opened. `order` is held."""
        with self._lock:
            first = self._ledger.offsets.get(partition, 0)
            return first, self._ledger.enter(partition, batch)

    def offsets(self) -> dict[int, int]:
        """The offset after the last row that was handed on, of each partition."""
        with self.order:
            return dict(self._ledger.offsets)

    def news_in(self, beats: list[Heartbeat]) -> list[Heartbeat]:
        """The heartbeats that tell something which the rows do not."""
        count = self._partitions
        with self._lock:
            return [
                beat for beat in beats if self._ledger.is_news(partition_of(beat.key, count), beat)
            ]

    # ---------------------------------------------------------------------------------- gaps

    def open_gaps(self) -> list[Opened]:
        """The gaps of all sources."""
        with self._lock:
            return self._ledger.open_gaps()

    def gaps_of(self, partition: int, source: str) -> tuple[list[Gap], Gap | None]:
        """The gaps of a source, and the one behind its last sample that it announced."""
        with self._lock:
            account = self._ledger.account(partition, source)
            return ([], None) if account is None else (list(account.gaps), account.announced_gap)

    def sent_before(self, partition: int, source: str, number: int) -> int | None:
        """The time of a sample after `number` of a source, so that it was sent before that."""
        with self._lock:
            account = self._ledger.account(partition, source)
            return None if account is None else account.sent_before(number)

    def lacking(self, partition: int, source: str, batch: Any) -> Any:
        """The rows whose numbers are missing still, each once."""
        wanted: dict[int, int] = {}
        with self._lock:
            account = self._ledger.account(partition, source)
            for row, number in enumerate(batch.column("source_sn").to_pylist()):
                if account is not None and account.lacks(number):
                    wanted.setdefault(number, row)
        return batch.take(pa.array(wanted.values(), pa.int64()))

    def has(self, partition: int, source: str, number: int) -> bool:
        """Whether a sample was entered."""
        with self._lock:
            account = self._ledger.account(partition, source)
            return account is not None and account.has(number)

    def not_entered(self, partition: int, batch: Any) -> Any:
        """Return the rows whose numbers were not entered; rows without a number stay."""
        names = ("source_zid", "source_eid", "source_sn")
        rows = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        kept: list[int] = []
        with self._lock:
            for row, (zid, eid, number) in enumerate(rows):
                if number is not None:
                    account = self._ledger.account(partition, source_text(zid, eid))
                    if account is not None and account.has(number):
                        continue
                kept.append(row)
        return batch.take(pa.array(kept, pa.int64()))

    # --------------------------------------------------------------------------------- pages

    def report(self) -> dict[str, object]:
        """What the ledger says."""
        with self._lock:
            self._count_drops()
            return self._ledger.report()

    def totals(self) -> dict[str, int]:
        """What the ledger says, added up."""
        with self._lock:
            self._count_drops()
            return self._ledger.totals()

    def _count_drops(self) -> None:
        for reason, count in self._drops().items():
            total = self._drops_before.get(reason, 0) + count
            if total:
                self._ledger.drops[reason] = total

    def put_aside(self, wait_durable: Callable[[Mapping[int, int]], bool]) -> None:
        """Write the ledger down, if something was entered since the last time.

        `wait_durable` waits until the rows before some offsets are durable; False: not any more.
        """
        with self._lock:
            self._count_drops()
            if self._ledger.offsets == self._put_aside:
                return
            offsets = dict(self._ledger.offsets)
            text = json.dumps(self._ledger.state())
        if wait_durable(offsets):
            checkpoint.write(self._journal.path, text)
            self._put_aside = offsets

    def finish(self) -> None:
        """Write the ledger down at the end: all rows that it has entered are durable."""
        with self._lock:
            self._count_drops()
            text = json.dumps(self._ledger.state())
        checkpoint.write(self._journal.path, text)
