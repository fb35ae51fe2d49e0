"""What publishers said before a recorder came: asking their caches, once for each of them.

A publisher that keeps its newest samples and can be detected (`transient_local` in ROS 2:
`/tf_static`, `/map`, `/robot_description`) is alive under a key of its own. Whenever one comes
along, or was there first, it is asked for its past, as a subscriber with history would. What the
journal has already is left out, so a recorder that is started again writes nothing twice.

How often, and how many wait, is said in `cache_queries`. `PastPlan` decides; `PastAsker` asks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from zenlake.errors import ZError
from zenlake.journal.ledger.cache_queries import MOST_WAITING, CacheAsker, CacheQuery
from zenlake.node.advanced_keys import publisher_named, publishers_of
from zenlake.recorded.words import source_text
from zenlake.values import SampleKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zenlake.api.session import Session
    from zenlake.journal.reading.reader import Journal
    from zenlake.node.sample import Sample

__all__ = ["PastAsker", "PastPlan", "clusters", "unrecorded"]

MOST_SAMPLES: Final = 1000
"""How many samples a publisher is asked for: its newest."""

NEAR: Final = 1_000_000
"""Microseconds between samples that are looked for in the journal together."""

log = logging.getLogger("zenlake.journal")


class PastPlan:
    """Which publishers to ask for their past, and when."""

    def __init__(self) -> None:
        """No publisher is known."""
        self._waiting: dict[str, CacheQuery] = {}
        self.refused = 0
        """Publishers that were not asked, because too many were waiting."""
        self.abandoned = 0
        """Publishers that were asked in vain."""

    def __len__(self) -> int:
        return len(self._waiting)

    def came(self, token: str, now: float) -> None:
        """A publisher is there; whatever else is alive under such a key is none."""
        if publisher_named(token) is None or token in self._waiting:
            return
        if len(self._waiting) >= MOST_WAITING:
            self.refused += 1
            return
        self._waiting[token] = CacheQuery(now)

    def went(self, token: str) -> None:
        """A publisher is gone, and what it kept is too."""
        self._waiting.pop(token, None)

    def next(self) -> tuple[str, float] | None:
        """The token of the publisher to ask first, and when it is due."""
        if not self._waiting:
            return None
        token = min(self._waiting, key=lambda one: self._waiting[one].due)
        return token, self._waiting[token].due

    def answered(self, token: str) -> None:
        """All that it said is written."""
        self._waiting.pop(token, None)

    def failed(self, token: str, now: float) -> None:
        """It was asked in vain, or what it said could not be written."""
        query = self._waiting.get(token)
        if query is not None and not query.again(now):
            del self._waiting[token]
            self.abandoned += 1


class PastAsker(CacheAsker):
    """Asks publishers for what they said before, on a thread of its own."""

    def __init__(
        self,
        session: Session,
        exprs: Sequence[str],
        write: Callable[[list[Sample]], int],
    ) -> None:
        """`write`: writes the samples that the journal lacks, and gives how many those were."""
        super().__init__(session, "zenlake past")
        self._write = write
        self._plan = PastPlan()
        self.rows = 0
        """Samples that were written."""
        self._subscribers = [
            session.liveliness().declare_subscriber(publishers_of(expr), self._heard, history=True)
            for expr in exprs
        ]
        self.start()

    @property
    def counts(self) -> dict[str, int]:
        """How busy it is."""
        return {
            "questions": self.queries,
            "rows": self.rows,
            "waiting": len(self._plan),
            "abandoned": self._plan.abandoned,
            "refused": self._plan.refused,
        }

    def close(self) -> None:
        """Ask no more."""
        super().close()
        if not self._session.is_closed():
            for subscriber in self._subscribers:
                subscriber.undeclare()

    def _heard(self, token: Sample) -> None:
        with self._wake:
            if token.kind is SampleKind.DELETE:
                self._plan.went(str(token.key_expr))
            else:
                self._plan.came(str(token.key_expr), time.monotonic())
            self._wake.notify()

    def due(self) -> float | None:
        """When the first publisher is to be asked."""
        first = self._plan.next()
        return None if first is None else first[1]

    def ask(self) -> None:
        """Ask the first publisher for its past, and write it."""
        with self._wake:
            first = self._plan.next()
        if first is None:
            return  # it has gone just now
        token = first[0]
        try:
            self.rows += self._write(self._past(token))
        except ZError as error:
            if not self._session.is_closed():
                log.warning("the past of %s: %s", token, error)
                with self._wake:
                    self._plan.failed(token, time.monotonic())
        else:
            with self._wake:
                self._plan.answered(token)

    def _past(self, token: str) -> list[Sample]:
        # A cache that answers speaks for the key of the publisher, and for no other.
        key = token.partition("/@adv/pub/")[0]
        replies = list(self.replies(f"{token}?_max={MOST_SAMPLES}"))
        samples = [sample for sample in replies if str(sample.key_expr) == key]
        return sorted(samples[:MOST_SAMPLES], key=_order)


def _order(sample: Sample) -> tuple[int, int]:
    info, stamp = sample.source_info, sample.timestamp
    return (
        -1 if info is None else info.source_sn,
        0 if stamp is None else stamp.seconds << 32 | stamp.fraction,
    )


def clusters(times: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges (end exclusive) that have all these times in them, and little else."""
    ranges: list[tuple[int, int]] = []
    for at in sorted(times):
        if ranges and at - ranges[-1][1] < NEAR:
            ranges[-1] = ranges[-1][0], at + 1
        else:
            ranges.append((at, at + 1))
    return ranges


def unrecorded(
    batch: Any, journal: Journal, partition: int, came: Callable[[int, str, int], bool]
) -> Any:
    """The rows of one key that a journal has not.

    A row with a number is known by that: `came` tells whether a number of a source did. Others
    are known by their timestamps; a row that has none cannot be told from one that is there, and
    is left out.
    """
    rows = batch.to_pylist()
    has: set[tuple[int, bytes]] = set()
    times = [row["time"] for row in rows if row["source_sn"] is None and not row["stamped"]]
    for span in clusters([round(at.timestamp() * 1e6) for at in times]):
        for table in journal.scan(
            partition=partition,
            keys=[rows[0]["key"]],
            time=span,
            columns=["hlc", "stamp_id"],
            heartbeats=True,  # what a rule has retired came, and does not come again
        ):
            has.update(zip(table["hlc"].to_pylist(), table["stamp_id"].to_pylist(), strict=True))
    kept = [
        n
        for n, row in enumerate(rows)
        if not (
            row["stamped"] or (row["hlc"], row["stamp_id"]) in has
            if row["source_sn"] is None
            else came(
                partition, source_text(row["source_zid"], row["source_eid"]), row["source_sn"]
            )
        )
    ]
    return batch.take(pa.array(kept, pa.int64()))
