"""The views and alerts of a running lake: made, listed and dropped while it runs.

    queries = ContinuousQueries(service, complain)
    queries.create(ContinuousQuery("busy", "view", "SELECT key, … FROM samples GROUP BY key"))

Each belongs to the operator or to a user, and sees what its owner may see
(`continuous/owner_rights`): one whose owner's rights do not let it run is held until they do.

Spark plans each in the turn of its owner (`lake/query/executor`), when it is made and when it is
started again. No lock is held meanwhile: one that is started again is planned while the others are
looked after, and starts with the next look.

One that fails stops, says why, and is tried again, less and less often; the others and the lake go
on. Only what its own text or its owner's rights refuse is not tried again. One that stands still
(`continuous/stall`) is ended and started again from where it was, and so is one whose columns have
changed (`continuous/generation`): it is planned with the columns as they are now.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from zenlake.clock.backoff import Backoff
from zenlake.errors import LocalError, ZError
from zenlake.lake.continuous.definitions import (
    demand_free,
    drop_definition,
    keep_definition,
    remove_dropped_tables,
)
from zenlake.lake.continuous.generation import SchemaMoved
from zenlake.lake.continuous.owner_rights import (
    LEASE_SECONDS,
    OwnerRights,
    may_drop,
)
from zenlake.lake.continuous.planning import PlannedQuery, plan_definition
from zenlake.lake.continuous.publishing import Result
from zenlake.lake.continuous.running_query import RightsChanged, RunningQuery, told_of
from zenlake.lake.continuous.stall import PATIENCE, StallDetector
from zenlake.lake.maintain.definition_store import ContinuousQueryStore
from zenlake.lake.model.continuous_query import ContinuousQuery, Kind
from zenlake.lake.model.owner import OwningUser, words_of
from zenlake.lake.query.executor import QueueFull, SqlQuestion, TimeOver
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.visibility import published_by

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.journal import Journal
    from zenlake.lake.query.executor import SqlExecutor
    from zenlake.lake.query.lake import Lake

__all__ = ["ContinuousQueries", "LakeProcess", "reached"]

log = logging.getLogger("zenlake.lake")

LOOK: Final = 1.0
"""Seconds between two looks at all of them."""
SETTLE: Final = 1.0
"""Seconds that may lie between a sample's time and the moment that the journal has it for good."""

REMEMBERED: Final = 3600.0
"""Seconds that the status says of one that it was started again."""

RETRY: Final = Backoff(2.0, 300.0)
"""Seconds until one that failed is tried again."""

STEADY: Final = 10.0
"""Seconds that one must wait for rows, without a batch, until a failure before it is over."""

RESTART: Final = QueryLimits(seconds=300.0, planning=300.0)
"""What was judged once gets more time when it is planned again: the machine may be busy."""


def reached(
    looks: Sequence[tuple[float, Sequence[int]]], positions: Sequence[Sequence[int]]
) -> float | None:
    """The last moment at which the journals had no rows beyond these positions; None: unknown."""
    for moment, ends in reversed(looks):
        if positions and all(
            len(position) >= len(ends)
            and all(at >= end for at, end in zip(position, ends, strict=False))
            for position in positions
        ):
            return moment
    return None


class LakeProcess(Protocol):
    """The process that views and alerts run in, as far as they need it."""

    lake: Lake
    executor: SqlExecutor
    journals: tuple[Journal, ...]
    session: Session | None

    def committed(self) -> None:
        """Tell that tables have more rows."""


@final
class ContinuousQueries:
    """All views and alerts of a lake that runs."""

    def __init__(
        self,
        service: LakeProcess,
        complain: Callable[[str], None],
        patience: float = PATIENCE,
    ) -> None:
        """Start those that there are, on a thread of its own.

        `patience`: seconds that one may stand still before it is started again.
        """
        self._service = service
        self._complain = complain
        self._lake = service.lake
        self.definitions = ContinuousQueryStore(service.lake.place)
        """The views and alerts that were made."""
        self._running: dict[str, RunningQuery] = {}
        self.rights = OwnerRights()
        """The rights of the owners of views and alerts."""
        self._began = time.monotonic()
        #: Those that Spark plans, or that wait for their turn.
        self._planning: dict[str, tuple[ContinuousQuery, Future[PlannedQuery]]] = {}
        #: Why those wait that found the queue full; they are tried again.
        self._waiting: dict[str, str] = {}
        #: Why those do not run whose owners' rights do not let them.
        self._held: dict[str, str] = {}
        #: What they have found and could not publish.
        self._unsent: dict[str, list[Result]] = {}
        #: Why those stopped that failed; kept until they are seen to go on.
        self._why: dict[str, str] = {}
        #: How long they wait for the next try, and when that is.
        self._pauses: dict[str, float] = {}
        self._retries: dict[str, float] = {}
        self._patience = patience
        self._stall: dict[str, StallDetector] = {}
        self._restarted: dict[str, tuple[float, str]] = {}
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._looks: deque[tuple[float, Sequence[int]]] = deque(maxlen=600)
        self._batches = 0
        self._thread = threading.Thread(target=self._follow, name="zenlake continuous", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End them all; they go on when the lake runs again."""
        self._over.set()
        self._thread.join(60.0)
        with self._lock:
            for one in self._running.values():
                one.stop()
            self._running.clear()

    # --- made, shown and dropped ----------------------------------------------------------------

    def create(
        self, definition: ContinuousQuery, gone: Callable[[], bool] = lambda: False
    ) -> dict[str, Any]:
        """Make one and start it; raises if it is refused.

        `gone`: says whether who asked for it waits no longer.
        """
        with self._lock:
            demand_free(self._lake, definition)
        try:
            # In the turn of its owner, and without the lock.
            planned = self._service.executor.judged(
                SqlQuestion(definition.sql, gone=gone),
                words_of(definition.owner),
                lambda: self._plan(definition),
            )
            with self._lock:
                keep_definition(self._lake, definition)
                return self._begin(definition, planned)
        finally:
            kept = self.definitions.all().get(definition.name)
            if kept is None or kept.id != definition.id:
                self.definitions.discard(definition)

    def _begin(self, definition: ContinuousQuery, planned: PlannedQuery) -> dict[str, Any]:
        """Start one that was made just now; the lock is held."""
        try:
            self._running[definition.name] = self._run(definition, planned)
        except SchemaMoved:
            self._start(definition)
        except BaseException:
            drop_definition(self._lake.place, definition.name, definition.kind)
            raise
        return self.facts(definition)

    def drop(self, name: str, kind: Kind, asker: OwningUser | None = None) -> None:
        """End one, and take it away with its table; `asker`: None is the operator."""
        with self._lock:
            one = self.definitions.all().get(name)
            if asker is not None and not (one and one.kind == kind and may_drop(asker, one)):
                # The same of one that there is and of one that there is not.
                raise LocalError(
                    f"{words_of(asker)} has made no {kind} '{name}'; who made it may drop it, and "
                    f"so may the operator: zenlake lake {kind} drop {name}"
                )
            self.definitions.find(name, kind)
            running = self._running.pop(name, None)
            if running is not None:
                running.stop()
            planning = self._planning.pop(name, None)
            if planning is not None:
                self._give_up(*planning)
            for notes in (
                self._why,
                self._pauses,
                self._retries,
                self._held,
                self._waiting,
                self._unsent,
                self._stall,
                self._restarted,
            ):
                notes.pop(name, None)
            drop_definition(self._lake.place, name, kind)

    def listed(self, kind: Kind) -> list[dict[str, Any]]:
        """All of a kind, and how they are."""
        with self._lock:
            every = self.definitions.all().values()
            return [self.facts(one) for one in every if one.kind == kind]

    def facts(self, definition: ContinuousQuery) -> dict[str, Any]:
        """What can be said of one."""
        running = self._running.get(definition.name)
        facts: dict[str, Any] = definition.shown()
        facts["keys"] = published_by(definition.kind, definition.name)
        stall = self._stall.get(definition.name)
        facts["restarts"] = 0 if stall is None else stall.restarts
        if running is None:
            held = self._held.get(definition.name, "")
            why = held or self._why.get(definition.name, "")
            state = "stopped" if why else "starting"
            why = why or self._waiting.get(definition.name, "")
            return {**facts, "state": state, "why": why, "rights": held}
        why = self._why.get(definition.name, "")
        facts |= {
            # A query that is tried again goes on when it gets further than where it failed.
            "state": "stopped" if why else "running",
            "why": why,
            "rights": "",
            "batches": running.batches,
            "rows": running.results.table.totals().rows,
            "published": running.publisher.published,
            "waiting": running.publisher.waiting,
            "lost": running.publisher.lost,
            "denied": running.publisher.denied,
        }
        if running.alerting is not None:
            raising = running.alerting.raising
            facts |= {"raised": raising.raised, "pending": raising.pending}
        return facts

    def problems(self) -> tuple[str, ...]:
        """A sentence for each that stopped, that waits, or that was started again of late."""
        # Without the lock: the pipeline asks, and one may be starting, which takes Spark seconds.
        now = time.monotonic()
        of_late = tuple(self._restarted.values())
        stopped = (*self._why.values(), *(() if self._is_new() else self._held.values()))
        waiting = tuple(self._waiting.values())
        return (*stopped, *waiting, *(line for at, line in of_late if now - at < REMEMBERED))

    def stopped(self) -> dict[str, str]:
        """Return a sentence for each that cannot go on, by name; those that are held can."""
        return dict(self._why)

    def restarts(self) -> int:
        """How often one was started again because it stood still."""
        return sum(one.restarts for one in tuple(self._stall.values()))

    # --- at work --------------------------------------------------------------------------------

    def _plan(self, definition: ContinuousQuery) -> PlannedQuery:
        """Have Spark plan one; on a thread of the executor, which needs no lock of this object."""
        aside = self.definitions.aside(definition)
        return plan_definition(self._lake, definition, self._service.journals, aside)

    def _run(self, definition: ContinuousQuery, planned: PlannedQuery) -> RunningQuery:
        return RunningQuery(
            definition,
            planned,
            self._lake,
            self._service.journals,
            self._service.session,
            self.definitions.aside(definition),
            self.rights,
            self._unsent.pop(definition.name, ()),
        )

    def _start(self, definition: ContinuousQuery) -> None:
        """Have one planned in its owner's turn, if the owner's rights let it run.

        The lock is held, so nothing is waited for here: `_start_planned` starts it.
        """
        name = definition.name
        why = self.rights.hindrance(definition, time.monotonic())
        if why:
            self._waiting.pop(name, None)
            self._hold(definition, why)
            return
        self._held.pop(name, None)
        try:
            planning = self._service.executor.judge_later(
                SqlQuestion(definition.sql, RESTART),
                words_of(definition.owner),
                lambda: self._plan(definition),
            )
        except QueueFull as error:
            self._wait(definition, error)
        else:
            self._waiting.pop(name, None)
            self._planning[name] = definition, planning

    def _start_planned(self) -> None:
        """Start those that were planned meanwhile, and try those again that wait."""
        for name in list(self._planning):
            with self._lock:
                one = self._planning.get(name)
                if one is not None and one[1].done():
                    del self._planning[name]
                    self._start_one(*one)
        now = time.monotonic()
        due = [*self._waiting, *(name for name, at in list(self._retries.items()) if at <= now)]
        if due:
            every = self.definitions.all()
            for name in due:
                with self._lock:
                    if (name in self._waiting or name in self._retries) and name in every:
                        self._retries.pop(name, None)
                        self._start(every[name])

    def _start_one(self, definition: ContinuousQuery, planning: Future[PlannedQuery]) -> None:
        try:
            self._running[definition.name] = self._run(definition, planning.result())
        except RightsChanged as error:
            self._hold(definition, str(error))
        except QueueFull as error:
            self._wait(definition, error)
        except SchemaMoved:
            self._start(definition)
        except BaseException as error:
            final = isinstance(error, LocalError) and not isinstance(error, TimeOver)
            self._stopped(definition, told_of(error), final=final)

    def _wait(self, definition: ContinuousQuery, error: QueueFull) -> None:
        """Say that one is tried again, because no question was taken."""
        line = (
            f"the {definition.kind} '{definition.name}' is not started yet: {error}; it is tried "
            f"again every {LOOK:g} s"
        )
        if definition.name not in self._waiting:
            self._complain(line)
        self._waiting[definition.name] = line

    def _give_up(self, definition: ContinuousQuery, planning: Future[PlannedQuery]) -> None:
        """Forget what Spark may be planning still: it was dropped."""
        planning.cancel()
        planning.add_done_callback(lambda _: self.definitions.discard(definition))

    def _hold(self, definition: ContinuousQuery, why: str) -> None:
        """Say why one does not run now."""
        line = f"the {definition.kind} '{definition.name}' is held: {why}"
        if self._held.get(definition.name) != line:
            self._held[definition.name] = line
            if not self._is_new():
                self._complain(line)

    def _is_new(self) -> bool:
        """Whether routers have not had the time to say what owners may do."""
        return time.monotonic() - self._began < LEASE_SECONDS

    def _mind_rights(self) -> None:
        """End those whose owners' rights changed, and go on with those that may run again."""
        for definition in self.definitions.all().values():
            name = definition.name
            running = self._running.get(name)
            if definition.owner is None or (running is None and name not in self._held):
                continue
            why = self.rights.hindrance(definition, time.monotonic())
            if running is not None and (why or running.is_held):
                # What it would still keep or publish was found with rights that it has no more.
                running.publisher.close()
                running.results.end()
                ended = running.stop(stuck=True)
                with self._lock:
                    if self._running.get(name) is not running:
                        continue  # dropped meanwhile
                    del self._running[name]
                    if ended:
                        self._unsent[name] = running.publisher.unsent()
                        self._hold(definition, why or running.why)
                    else:
                        self._stopped(definition, f"{why or running.why}; Spark does not end it")
            elif running is None:
                with self._lock:
                    if name in self._held and name in self.definitions.all():
                        self._start(definition)

    # A panic in an extension module is a `BaseException`: it ends one of them, and no thread.

    def _follow(self) -> None:
        try:
            remove_dropped_tables(self._lake.place)
        except (OSError, ZError) as error:
            self._complain(f"tables of dropped views are still there: {error}")
        for name in self.definitions.adopt():
            self._complain(
                f"'{name}' was made before views and alerts had owners: it sees every key, as the "
                "operator's do; if a user made it, drop it and let the user create it again"
            )
        for definition in self.definitions.all().values():
            if self._over.is_set():
                return
            with self._lock:
                made = definition.name in self._running or definition.name in self._planning
                if not made and definition.name in self.definitions.all():
                    self._start(definition)
        while not self._over.wait(LOOK):
            try:
                self._look()
            except BaseException:
                log.exception("looking after views and alerts failed")

    def _look(self) -> None:
        ends = [end for one in self._service.journals for end in one.watermark().offsets]
        self._looks.append((time.time(), ends))
        self._mind_rights()
        self._start_planned()
        with self._lock:
            every = list(self._running.values())
        batches = sum(one.batches for one in every)
        if batches != self._batches:
            self._batches = batches
            self._service.committed()
        for one in every:
            try:
                if one.look():
                    one.feed()
                    one.publisher.look()
                    self._tell_time(one)
                    self._watch(one)
            except SchemaMoved as moved:
                self._plan_again(one, str(moved))
            except BaseException as error:
                one.why = one.why or told_of(error)
            if one.why and not one.is_held:
                name = one.definition.name
                with self._lock:
                    if self._running.get(name) is not one:
                        continue  # dropped meanwhile
                    del self._running[name]
                one.stop()
                with self._lock:
                    self._unsent[name] = one.publisher.unsent()
                    self._stopped(one.definition, one.why)

    def _plan_again(self, one: RunningQuery, why: str) -> None:
        """End one whose columns have changed, and start it with the columns as they are now."""
        definition = one.definition
        log.info("the %s '%s' is planned again: %s", definition.kind, definition.name, why)
        ended = one.stop()
        with self._lock:
            if self._running.get(definition.name) is not one:
                return  # dropped meanwhile
            del self._running[definition.name]
            self._unsent[definition.name] = one.publisher.unsent()
            if ended:
                self._start(definition)
            else:
                self._stopped(definition, f"{why}, and Spark does not end it")

    def _watch(self, one: RunningQuery) -> None:
        """Start it again if it stands still."""
        definition = one.definition
        with self._lock:
            watched = self._stall.setdefault(definition.name, StallDetector(self._patience))
        busy, batches, doing = one.seen()
        if batches or (not busy and time.monotonic() - one.began > STEADY):
            self._why.pop(definition.name, None)
            self._pauses.pop(definition.name, None)
        still = watched.observe(time.monotonic(), busy, batches, doing)
        if still is None:
            return
        line = (
            f"the {definition.kind} '{definition.name}' stood still for {still:.0f} s "
            f"{one.where()}; it was started again from where it was"
        )
        log.warning("%s; it stood at\n%s", line, one.stacks())
        ended = one.stop(stuck=True)
        with self._lock:
            if self._running.get(definition.name) is not one:
                return  # dropped meanwhile
            del self._running[definition.name]
            self._unsent[definition.name] = one.publisher.unsent()
            if not ended:
                self._stopped(definition, f"{line.partition(';')[0]}, and Spark does not end it")
                return
            watched.started_again()
            self._restarted[definition.name] = (time.monotonic(), line)
            self._complain(line)
            self._start(definition)

    def _tell_time(self, one: RunningQuery) -> None:
        """Let an alert know up to when it has heard everything."""
        if one.alerting is None:
            return
        positions, mark = one.position()
        now = reached(self._looks, positions)
        if now is None:
            return
        now -= SETTLE
        if mark is not None and one.shape.grouped:
            now = min(now, mark)
        one.alerting.passed(round(now * 1e6))

    def _stopped(self, definition: ContinuousQuery, why: str, *, final: bool = False) -> None:
        """Say why one stopped, and when it is tried again; `final`: it is not."""
        name = definition.name
        line = f"the {definition.kind} '{name}' has stopped: {why}"
        if not final:
            pause = RETRY.after(self._pauses.get(name, 0.0))
            self._pauses[name] = pause
            self._retries[name] = time.monotonic() + pause
            line += f"; tried again in {pause:g} s"
        self._why[name] = line
        self._complain(line)
