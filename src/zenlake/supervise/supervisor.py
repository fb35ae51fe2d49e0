"""`zenlake up` at work: starts the parts, hears them, starts them again, and knows how they are.

main thread      the loop: processes are started and stopped here, and nowhere else, because
                 the system ends a child when the thread that started it ends
reader threads   one for each pipe of a child; they put what they read into one queue
monitor          disks and processes
HTTP threads     read the last status, and ask the router for its metrics
"""

from __future__ import annotations

import contextlib
import queue
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from zenlake.errors import ZError
from zenlake.lake.service.read_position import forget_reader
from zenlake.supervise.child import Child
from zenlake.supervise.openmetrics import END
from zenlake.supervise.parts import Order, RestartPolicy, State, SupervisedPart
from zenlake.supervise.pid_file import PidFile
from zenlake.supervise.plan import LAKE, ROUTER, Plan
from zenlake.supervise.readers import write_readers
from zenlake.supervise.reports import Reports
from zenlake.supervise.resource_monitor import ResourceMonitor
from zenlake.supervise.router_metrics import RouterMetrics
from zenlake.supervise.status import Health, Status
from zenlake.supervise.status_alerts import StatusAlerts
from zenlake.supervise.throttle import Line, MessageThrottle

__all__ = ["NotStarted", "Supervisor"]

POLICIES: Final = {
    # The bus: back as fast as possible, and never long away.
    ROUTER: RestartPolicy(patience=60.0, silence=30.0, pause=0.2, longest=5.0, steady=30.0),
    # Spark takes half a minute to start and all cores meanwhile; it may compute for long.
    LAKE: RestartPolicy(patience=300.0, silence=900.0, pause=1.0, longest=60.0, steady=120.0),
}
SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""What asks for the end: Ctrl-C, an order, and a terminal that was closed."""

STOPPING: Final = {ROUTER: 20.0, LAKE: 30.0}
"""How long each may take to stop in good order, in seconds; then it is killed."""

LOOK: Final = 0.2
AT_ONCE: Final = 1000
EVERY: Final = 1.0
PAGE_EVERY: Final = 5.0
JAVA_GONE: Final = ("Connection refused", "Py4JNetworkError", "Spark has ended")
"""What a lake says that has lost its Java."""

LOGGED: Final = re.compile(r"\S+ \S+ (WARNING|ERROR|CRITICAL) (zenlake\S*): (.*)")
NUMBERS: Final = re.compile(r"\d+")


class NotStarted(ZError):
    """The router could not be started at all; with its last words and its exit code."""

    def __init__(self, words: str, refused: bool) -> None:
        """`refused`: what it was told is wrong."""
        super().__init__(words)
        self.refused = refused


class Supervisor:
    """Starts the parts of `zenlake up`, restarts them, and knows how they are."""

    def __init__(
        self,
        plan: Plan,
        pid_file: PidFile,
        tell: Callable[[Line], None],
        show: Callable[[Status], None],
        ready: Callable[[str], None],
    ) -> None:
        """`tell` is given lines for people, `show` each status, `ready` the parts that are up.

        None of them may block.
        """
        self.plan = plan
        self._pid_file = pid_file
        self._tell = tell
        self._show = show
        self._ready = ready
        self._began = time.monotonic()
        names = [ROUTER] if plan.lake is None else [ROUTER, LAKE]
        self._parts = {name: SupervisedPart(name, POLICIES[name], self._began) for name in names}
        self._children: dict[str, Child] = {}
        self._events: queue.SimpleQueue[tuple[str, Child | None, Any]] = queue.SimpleQueue()
        self._throttle = MessageThrottle()
        self._signal = 0
        self._hurry = False
        self._up = False
        self.reports = Reports(plan, self._parts, self._children, self._began)
        self._alerts = StatusAlerts(self._throttle)
        #: The subject under which the last failure of each part was told.
        self._subjects: dict[str, str] = {}
        self._lake_written = 0.0
        self._metrics = RouterMetrics()
        self._monitor: ResourceMonitor | None = None
        self.status = self._status()

    # ------------------------------------------------------------------------------- the loop

    def run(self) -> int:
        """Run until a signal asks for the end; gives its number. Raises `NotStarted`."""
        self._write_page()  # before a router lets go of what a lake has not read
        self._monitor = ResourceMonitor(self.plan.data, self.plan.budget, self._sessions)
        try:
            with self._signals():
                looked = paged = 0.0
                while not self._signal:
                    self._hear()
                    self._tend()
                    now = time.monotonic()
                    if now - looked >= EVERY:
                        looked = now
                        self._look(now)
                        self._check_up()
                    if now - paged >= PAGE_EVERY:
                        paged = now
                        self._write_page()
                self._stop()
        finally:
            for child in self._children.values():
                child.kill()
                child.close()
            self._monitor.close()
        return self._signal

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def asked(number: int, frame: object) -> None:
            self._hurry = bool(self._signal)
            self._signal = self._signal or number
            self._events.put(("signal", None, number))

        before = {one: signal.signal(one, asked) for one in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self) -> None:
        """Take what the children said; waits a moment if they said nothing."""
        wait = LOOK
        for _ in range(AT_ONCE):  # a part that talks without end is not all there is
            try:
                kind, child, what = self._events.get(timeout=wait) if wait else self._next()
            except queue.Empty:
                return
            wait = 0.0
            if child is not None and self._children.get(child.name) is child:
                self._take(kind, child, what)

    def _next(self) -> tuple[str, Child | None, Any]:
        return self._events.get_nowait()

    def _take(self, kind: str, child: Child, what: Any) -> None:
        part = self._parts[child.name]
        now = time.monotonic()
        if kind == "said":
            self._said(child.name, part, str(what))
            return
        part.heard(now)
        if part.state is State.STARTING and ("locators" in what or "ready" in what):
            part.ready(now)
            self.reports.doing.pop(child.name, None)
            if child.name == ROUTER:
                self.reports.locators = [str(place) for place in what.get("locators", ())]
                self.reports.page = str(what.get("http", ""))
            if part.restarts:
                self._back(part)
            self._look(now)
            self._ready(child.name)
        elif child.name == ROUTER and "report" in what:
            self.reports.report = what["report"]

    def _said(self, name: str, part: SupervisedPart, words: str) -> None:
        if part.state is State.STARTING and words.startswith("zenlake: "):
            self.reports.doing[name] = words.removeprefix("zenlake: ")
            if name == LAKE:
                self._line(f"doing {words}", f"the lake: {self.reports.doing[name]}", bad=False)
        logged = LOGGED.fullmatch(words)
        if logged is not None and name == ROUTER:
            subject = f"{logged[2]} {NUMBERS.sub('#', logged[3])[:120]}"
            self._line(subject, f"the {name}: {logged[3]}")

    def _tend(self) -> None:
        for name, part in self._parts.items():
            child = self._children.get(name)
            if child is not None and not child.running():
                self._ended(part, child)
            if name != ROUTER and not self._parts[ROUTER].was_up:
                continue  # the bus first: Spark takes all cores while it starts
            order = part.tick(time.monotonic())
            if order is Order.START:
                self._start(part)
            elif order is Order.KILL:
                self._children[name].kill()
                self._ended(part, self._children[name])

    def _ended(self, part: SupervisedPart, child: Child) -> None:
        child.kill()  # what it started and left behind
        why = child.why()
        child.close()
        del self._children[part.name]
        self.reports.doing.pop(part.name, None)
        if part.name == LAKE and any(sign in why for sign in JAVA_GONE):
            why = "ended because Spark's Java did"
        part.ended(time.monotonic(), why, refused=child.refused)
        if part.name == ROUTER:
            self.reports.report = {}
            if not part.was_up:
                raise NotStarted(f"the router {part.reason}", child.refused)
        self._failed(part)

    def _failed(self, part: SupervisedPart) -> None:
        pause = max(0.0, part.again_at - time.monotonic())
        self.reports.last_error = f"the {part.name} {part.reason}"
        self._subjects[part.name] = f"{part.name} {NUMBERS.sub('#', part.reason)[:120]}"
        self._line(
            self._subjects[part.name],
            f"the {part.name} {part.reason}; it is started again in {pause:.1f} s",
        )

    def _back(self, part: SupervisedPart) -> None:
        """A part is up again; unless it fails all the time, its next failure is told at once."""
        if part.failures <= 1:
            self._throttle.reset(self._subjects.get(part.name, ""))
            self._throttle.reset(f"{part.name} back")
        self._line(f"{part.name} back", f"the {part.name} is up again", bad=False)

    def _start(self, part: SupervisedPart) -> None:
        if part.name == ROUTER:
            mode = "patient" if part.was_up else "strict"
            arguments = ["router", "--json", "--supervised", mode, *self.plan.router]
            arguments += self.plan.page
        else:
            arguments = list(self.plan.lake or [])
        try:
            if part.name == LAKE:
                self.plan.prepare_lake()
            self._children[part.name] = Child(
                part.name,
                arguments,
                self.plan.data / "log" / f"{part.name}.log",
                self._child_told,
                lambda child, words: self._events.put(("said", child, words)),
            )
        except OSError as error:
            part.ended(time.monotonic(), f"cannot be started: {error}", refused=True)
            if part.name == ROUTER and not part.was_up:
                raise NotStarted(f"the router {part.reason}", False) from error
            self._failed(part)

    def _child_told(self, child: Child, fact: dict[str, Any]) -> None:
        """On a reader's thread: metrics go straight to who asked, all else to the loop."""
        if "metrics" in fact:
            self._metrics.answered(child, str(fact["metrics"]))
            return
        self._events.put(("fact", child, fact))

    # --------------------------------------------------------------------------------- facts

    def _line(self, subject: str, words: str, *, bad: bool = True) -> None:
        line = self._throttle.admit(time.time(), subject, words, bad=bad)
        if line is not None:
            self._tell(line)

    def _look(self, now: float) -> None:
        monitor = self._monitor
        if monitor is None:
            return
        lake = monitor.lake
        if lake is not None and lake.written > self._lake_written and LAKE in self._parts:
            self._lake_written = lake.written
            self._parts[LAKE].heard(now)
        self.status = self._status()
        for line in self._alerts.check(self.status, self.reports.report, time.time() - now):
            self._tell(line)
        self._show(self.status)

    def _check_up(self) -> None:
        """Say once that everything runs: not before every part is at work."""
        if not self._up and self.status.health is Health.WELL:
            self._up = True
            self._ready("")

    def _status(self) -> Status:
        return self.reports.status(time.monotonic(), self._monitor, self._throttle.lines)

    def _sessions(self) -> dict[str, int]:
        return {name: child.pid for name, child in list(self._children.items())}

    def _write_page(self) -> None:
        with contextlib.suppress(OSError):
            self._pid_file.write_status(self.status.to_json())
        journal = self.plan.data / "journal"
        with contextlib.suppress(OSError):
            write_readers(journal, self._committed())
            if LAKE not in self._parts:
                forget_reader(journal, str((self.plan.data / "lake").absolute()))

    def _committed(self) -> Mapping[str, Sequence[int]] | None:
        """How far the lake is; nothing yet, if it never said, and None if there is no lake."""
        if LAKE not in self._parts:
            return None
        lake = None if self._monitor is None else self._monitor.lake
        return {} if lake is None else lake.committed

    def metrics(self) -> str:
        """The router's metrics, on an HTTP thread; only an end if it does not answer."""
        child = self._children.get(ROUTER)
        return END if child is None else self._metrics.ask(child)

    # ------------------------------------------------------------------------------ stopping

    def _stop(self) -> None:
        """Stop everything: the last that was started first, so that nothing is cut off."""
        for name in reversed(list(self._parts)):
            part, child = self._parts[name], self._children.get(name)
            part.stop(time.monotonic())
            if child is None:
                continue
            child.terminate()
            deadline = time.monotonic() + STOPPING[name]
            while child.running() and time.monotonic() < deadline and not self._hurry:
                self._hear()
                self.status = self._status()
                self._show(self.status)
            if child.running():
                what = "at once" if self._hurry else f"after {STOPPING[name]:g} s"
                self._line(f"{name} killed", f"the {name} was killed {what}; see {child.log}")
            child.kill()
