"""The tables `network` and `metrics`: what the network was like, for questions about the past.

While a lake runs and is told to (`network: true`), it looks at the admin space of all nodes every
few seconds and writes down what changed, hears of liveliness at once, and keeps the metrics of the
nodes. Days that are too old leave both tables.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.clock.throttle import Throttle
from zenlake.errors import ZError
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.ingest.network_tables import OBSERVED, observed_tables
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.service.network_view import NetworkView, facts_of, metrics_of
from zenlake.lake.table.data_files import write_file
from zenlake.lake.table.delta import CommitConflict
from zenlake.lake.table.location import LakeLocation
from zenlake.values import SampleKind

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

__all__ = ["NetworkService"]

log = logging.getLogger("zenlake.lake")

PATIENCE: Final = 5.0
"""Seconds that nodes have to answer."""
MEASURE: Final = 60.0
"""Seconds between two times that metrics are kept, at least."""
MOST_HEARD: Final = 10_000
"""Liveliness events that wait to be written; more are dropped, and counted."""


@final
class NetworkService:
    """Watches until it is closed."""

    def __init__(self, session: Session, place: LakeLocation, every: float, keep: float) -> None:
        """`every`: seconds between two looks; `keep`: seconds that rows are kept."""
        self.dropped = 0
        self._session = session
        self._every = every
        self._keep = keep
        self._tables = observed_tables(place)
        self._view = NetworkView()
        self._heard: queue.Queue[dict[str, Any]] = queue.Queue(MOST_HEARD)
        self._measured = float("-inf")
        self._throttle = Throttle()
        self._over = threading.Event()
        self._subscriber = session.liveliness().declare_subscriber("**", self._alive, history=True)
        self._thread = threading.Thread(target=self._follow, name="zenlake network", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no more; what was heard is written."""
        self._over.set()
        self._thread.join(PATIENCE * 2)
        if not self._session.is_closed():
            self._subscriber.undeclare()

    def problems(self) -> tuple[str, ...]:
        """What is not in the tables, a sentence each."""
        sentences = []
        if self._view.left_out:
            sentences.append(
                f"network: {self._view.left_out:,} facts are beyond the bound of a look"
            )
        if self.dropped:
            sentences.append(f"network: {self.dropped:,} changes of liveliness came too fast")
        return tuple(sentences)

    def _alive(self, sample: Sample) -> None:
        state = "went" if sample.kind is SampleKind.DELETE else "came"
        row = {"what": "liveliness", "key": str(sample.key_expr), "state": state}
        try:
            self._heard.put_nowait({"time": datetime.now(UTC), **row})
        except queue.Full:
            self.dropped += 1

    def _follow(self) -> None:
        while True:
            last = self._over.is_set()
            try:
                self._look(last)
            except (ZError, OSError, pa.ArrowException) as error:
                line = self._throttle.line(time.monotonic(), reason_of(error))
                if line is not None:
                    log.warning("the network could not be written down: %s", line)
            if last:
                return
            self._over.wait(self._every)

    def _look(self, last: bool) -> None:
        rows = [] if last else self._changes()
        while not self._heard.empty():
            rows.append(self._heard.get_nowait())
        self._write("network", rows)
        now = time.monotonic()
        if not last and now - self._measured >= MEASURE:
            self._measured = now
            self._write("metrics", self._metrics())

    def _changes(self) -> list[dict[str, Any]]:
        records = self._asked("@/**")
        now = datetime.now(UTC)
        changes = self._view.seen(facts_of(records))
        return [{"time": now, **one.fact._asdict(), "state": one.state} for one in changes]

    def _metrics(self) -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        rows = []
        for key, payload in self._asked("@/*/*/metrics?compression=false"):
            _, node, whatami, *_ = key.split("/")
            for one in metrics_of(payload.decode(errors="replace")):
                rows.append({"time": now, "node": node, "whatami": whatami, **one._asdict()})
        return rows

    def _asked(self, selector: str) -> list[tuple[str, bytes]]:
        replies = self._session.get(selector, timeout=PATIENCE)
        samples = [reply.ok for reply in replies]
        return [(str(one.key_expr), one.payload.to_bytes()) for one in samples if one is not None]

    def _write(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        table, schema = self._tables[name], OBSERVED[name]
        day = datetime.now(UTC).date()
        columns = pa.Table.from_pylist(list(rows), schema.remove(schema.get_field_index(DAY)))
        file = write_file(table.place, columns, {DAY: day.isoformat()}, uuid.uuid4().hex)
        table.refresh()
        oldest = (day - timedelta(seconds=self._keep)).isoformat()
        old = [one for one in table.files() if str(one.partition[DAY]) < oldest]
        try:
            table.append([file], {}, {"kind": "append"}, old)
        except CommitConflict:  # by a merge of files: those that are old go the next time
            table.append([file], {}, {"kind": "append"})
