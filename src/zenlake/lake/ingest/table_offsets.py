"""How far each table is in each partition of one journal.

The log of a table knows a partition of a journal as an application, `journal/partition`, and the
offset after the last row as that application's version. Ranges that had no row for a table are
remembered here, so that its log need not hear of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from zenlake.journal import Journal
from zenlake.lake.ingest.plan import JournalRange
from zenlake.lake.table.delta import Table

__all__ = ["TableOffsets"]

FAR: Final = 1_000_000
"""Offsets that a table may be ahead of its log when a stretch had nothing for it."""


@final
class TableOffsets:
    """The offsets of tables in one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        # Stretches that had nothing for a table; the log need not hear of each.
        self._ahead: dict[tuple[str, int], int] = {}

    def app(self, partition: int) -> str:
        """The name under which the log of each table knows a partition of the journal."""
        return f"{self._journal.id}/{partition}"

    @property
    def lost_app(self) -> str:
        """The transaction of `samples` that counts rows which the journal dropped unread."""
        return f"{self._journal.id}/lost"

    @property
    def apps(self) -> tuple[str, ...]:
        """The names of all partitions."""
        return tuple(self.app(p) for p in range(len(self.ends())))

    def ends(self) -> tuple[int, ...]:
        """Up to where the journal is durable, for each partition."""
        return tuple(self._journal.watermark().offsets)

    def at(self, table: Table, partition: int) -> int:
        """Return the first offset that a table has not, whether its log knows or not."""
        committed = table.committed(self.app(partition)) or 0
        return max(committed, self._ahead.get((table.name, partition), 0))

    def all_at(self, table: Table) -> dict[str, int]:
        """Return how far a table is in every partition."""
        return {self.app(p): self.at(table, p) for p in range(len(self.ends()))}

    def committed(self, table: Table) -> dict[str, int]:
        """Return how far a table is in the partitions that its log knows."""
        found = {app: table.committed(app) for app in self.apps}
        return {app: at for app, at in found.items() if at is not None}

    def moved(
        self, table: Table, plan: Sequence[JournalRange]
    ) -> dict[str, tuple[int | None, int]]:
        """How far a commit of this plan brings a table, and from where."""
        return {
            self.app(span.partition): (table.committed(self.app(span.partition)), span.end)
            for span in plan
            if table.name in span.starts
        }

    def pass_over(self, table: Table, partition: int, end: int) -> bool:
        """Note that no row up to `end` is a table's; return True if its log should hear of it."""
        self._ahead[table.name, partition] = end
        return end - (table.committed(self.app(partition)) or 0) > FAR

    def forget(self, name: str) -> None:
        """Forget what was passed over for a table that was removed, or has other keys now."""
        self._ahead = {at: end for at, end in self._ahead.items() if at[0] != name}

    def passed_over(self) -> list[tuple[str, int, int]]:
        """Return table, partition and end of the ranges of which logs may not have heard."""
        return [(name, partition, end) for (name, partition), end in self._ahead.items()]
