"""The journals of a router, each recorded by a recorder that is opened again when it fails.

A recorder stops for good after a failed write; the router it lives in need not stop for that.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from zenlake.errors import ZError
from zenlake.keys import intersects
from zenlake.node.inspection import metrics
from zenlake.supervise.parts import Order, RestartPolicy, State, SupervisedPart

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config
    from zenlake.config.model_services import JournalService
    from zenlake.journal.recorder import Recorder
    from zenlake.node.inspection.metrics import Row

__all__ = ["Recording"]

log = logging.getLogger("zenlake.journal")

SERVICE: Final = "zenlake.journal"
"""Its name among the services of the node."""
LOOK: Final = 0.2
TOTALS_EVERY: Final = 5.0
"""Seconds between two sums over the ledger, which has an account for each source."""

POLICY: Final = RestartPolicy(patience=600.0, pause=0.5, longest=10.0, steady=30.0)


class _One:
    """A journal: what it is told, and its recorder while there is one."""

    def __init__(self, service: JournalService, now: float) -> None:
        self.service = service
        self.part = SupervisedPart(f"journal {service.name}", POLICY, now)
        self.recorder: Recorder | None = None
        self.totals: dict[str, int] = {}
        self.totals_at = -TOTALS_EVERY
        #: Since when nothing is recorded, if it failed while the router ran.
        self.failed_at: datetime | None = None


class Recording:
    """Records every journal of a configuration until the end of the block."""

    def __init__(
        self, session: Session, services: tuple[JournalService, ...], *, patient: bool = False
    ) -> None:
        """`patient`: a journal that cannot be opened at first is tried again, too."""
        self._session = session
        self._patient = patient
        now = time.monotonic()
        self._all = [_One(service, now) for service in services]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="zenlake recording", daemon=True)

    def __enter__(self) -> Self:
        """Open all of them; raises if one cannot be opened, unless it is patient."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._close)
            for one in self._all:
                one.part.tick(time.monotonic())
                self._open(one, strict=not self._patient)
            stack.pop_all()
        self._session.runtime.services[SERVICE] = self
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what was heard, and close."""
        self._session.runtime.services.pop(SERVICE, None)
        self._over.set()
        self._thread.join()
        self._close()

    def _close(self) -> None:
        for one in self._all:
            if one.recorder is not None:
                # What is not on disk was told in the log; the other journals end well.
                with contextlib.suppress(ZError, OSError):
                    one.recorder.close()

    @property
    def recorders(self) -> list[Recorder]:
        """Those that record at this moment."""
        return [one.recorder for one in self._all if one.recorder is not None]

    # ------------------------------------------------------------ as a service of the node

    serves = True

    def change(self, config: Config) -> None:
        """Nothing: journals are as they were when the router started."""

    def documents(self, root: str, selector: str) -> Iterator[tuple[str, object]]:
        """How each journal is, below the admin space of the node."""
        for one in self._all:
            key = f"{root}/status/journals/{one.service.name}"
            if intersects(selector, key):
                yield key, self._fact(one)

    def metrics(self) -> Iterator[Row]:
        """What each journal counts."""
        for one in self._all:
            name, recorder = {"journal": str(one.service.name)}, one.recorder
            yield metrics.JOURNAL_STUCK, name, int(bool(self._trouble(one)))
            if recorder is not None:
                stats: dict[str, Any] = recorder.stats()
                yield metrics.JOURNAL_ROWS, name, stats["rows"]
                yield metrics.JOURNAL_DROPPED, name, stats["dropped"]

    def troubles(self) -> list[str]:
        """Which journals are not written, and why."""
        return [trouble for trouble in map(self._trouble, self._all) if trouble]

    def _trouble(self, one: _One) -> str:
        recorder = one.recorder
        if recorder is None:
            return f"journal '{one.service.name}' is not recorded: {one.part.reason}"
        stats: dict[str, Any] = recorder.stats()
        why = (
            stats["stuck"] or recorder.failure or ("the disk is full" if stats["disk_full"] else "")
        )
        return f"journal '{one.service.name}' cannot be written: {why}" if why else ""

    def close(self) -> None:
        """Nothing: it ends with its block."""

    # ---------------------------------------------------------------------------- how they are

    def report(self) -> list[dict[str, Any]]:
        """How each journal is, as plain values."""
        return [self._fact(one) for one in self._all]

    def _fact(self, one: _One) -> dict[str, Any]:
        part, recorder = one.part, one.recorder
        fact: dict[str, Any] = {
            "name": str(one.service.name),
            "dir": one.service.dir,
            "state": str(part.state),
            "reason": "" if part.state is State.UP else part.reason,
            "restarts": part.restarts,
        }
        if recorder is None:
            return fact
        now = time.monotonic()
        if now - one.totals_at >= TOTALS_EVERY:
            one.totals, one.totals_at = recorder.totals(), now
        stats: dict[str, Any] = recorder.stats()
        return fact | {
            "rows": stats["rows"],
            "bytes": stats["bytes"],
            "durable": sum(recorder.watermark().offsets),
            "queued_bytes": stats["queued_bytes"],
            "dropped": stats["dropped"],
            "disk_full": stats["disk_full"],
            "clock_ahead": stats["clock_ahead"],
            "stuck": stats["stuck"],
            "future": sum(stats["future"].values()),
            "retired": stats["retired"]["rows"],
            "outages": stats["outages"],
            "missing": one.totals["missing"],
            "healed": one.totals["healed"],
        }

    def _watch(self) -> None:
        while not self._over.wait(LOOK):
            for one in self._all:
                # Whatever happens here, the journals are looked after.
                try:
                    self._look(one)
                except Exception:
                    log.exception("journal '%s' could not be looked after", one.service.name)

    def _look(self, one: _One) -> None:
        recorder = one.recorder
        if recorder is not None and recorder.failure is not None:
            reason = str(recorder.failure)
            one.recorder = None
            one.failed_at = datetime.now(UTC)
            one.part.ended(time.monotonic(), reason)
            with contextlib.suppress(ZError, OSError):
                recorder.close()
        if one.part.tick(time.monotonic()) is Order.START:
            self._open(one, strict=False)

    def _open(self, one: _One, *, strict: bool) -> None:
        # The extra `journal`: only who records needs it.
        from zenlake.journal.recorder import Recorder
        from zenlake.journal.service import options_of

        try:
            one.recorder = Recorder(self._session, options_of(one.service))
        except Exception as error:
            if strict:
                raise
            one.part.ended(time.monotonic(), str(error))
            pause = one.part.again_at - time.monotonic()
            log.error(
                "journal '%s' is not recorded: %s; tried again in %.1f s",
                one.service.name,
                error,
                max(0.0, pause),
            )
        else:
            one.part.ready(time.monotonic())
            if one.failed_at is not None:
                self._tell_outage(one, one.recorder, one.failed_at)
                one.failed_at = None
            elif one.part.restarts:
                log.warning("journal '%s' is recorded now", one.service.name)

    def _tell_outage(self, one: _One, recorder: Recorder, began: datetime) -> None:
        """Say from when to when nothing was recorded, in the log and in the journal."""
        ended = datetime.now(UTC)
        log.warning(
            "journal '%s' is recorded again; samples from about %s to %s are not in it",
            one.service.name,
            began.isoformat(timespec="milliseconds"),
            ended.isoformat(timespec="milliseconds"),
        )
        try:
            recorder.was_away(began, ended)
        except OSError as error:
            log.warning("journal '%s' does not keep that: %s", one.service.name, error)
