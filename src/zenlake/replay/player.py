"""A replay at work: reads a source, keeps the pace, obeys what it is told, publishes.

    replay = Replay(session, find("robot/**", journal="flight"), prefix="ghost", speed=4.0)
    replay.run()                                   # returns at the end, or after `stop`

It listens on `<prefix>/@replay/control` for commands (`zenlake.replay.commands`), as puts or as
queries, which are answered with how the replay is; `<prefix>/@replay/status` tells that too.
`@replay` is verbatim: no subscriber of `<prefix>/**` hears any of it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from zenlake.errors import LocalError, ZError
from zenlake.journal.ingest.rows import hlc_nanos
from zenlake.keys import KeyExpr, is_wild
from zenlake.keys.time_range import Instant
from zenlake.replay.commands import Command, command_of
from zenlake.replay.outlet import Outlet, Ready, below
from zenlake.replay.pace import FASTEST, MAX, SLOWEST, Pace

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample
    from zenlake.replay.sources import SampleSource

__all__ = ["CONTROL", "STATUS", "Replay"]

CONTROL: Final = "@replay/control"
STATUS: Final = "@replay/status"
JSON: Final = "application/json"
SAMPLES_PER_CHECK: Final = 256
"""Samples between two looks at commands, at most."""
MOST_COMMANDS: Final = 256
TICK: Final = 0.05
"""Seconds between two times told on the clock's key."""


@final
class Replay:
    """Recorded samples on their way back to the bus; `run` on one thread, all else on any."""

    def __init__(
        self,
        session: Session,
        source: SampleSource,
        *,
        prefix: str,
        speed: float = 1.0,
        retime: bool = False,
        exact: bool = False,
        clock: str | None = None,
        loop: bool = False,
        paused: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`prefix` may be empty: then the keys are the recorded ones, and mean what they meant.

        `exact`: name the recorded sources, and send as reliably and as patiently as they did. A
        recorder that hears them counts their numbers in the ledgers of those sources.
        """
        if prefix and is_wild(str(KeyExpr(prefix))):
            raise LocalError(f"the prefix '{prefix}' has a wildcard; name a place, such as replay")
        self._session = session
        self._source = source
        self._prefix = prefix
        self._clock = None if clock is None else str(KeyExpr(clock))
        self._loop = loop
        self._now = now
        self._exact = exact
        self._outlet = Outlet(session, prefix, retime)
        self.span = source.span()
        self._pace = Pace(speed, self.span[0] if self.span else 0, now())
        if paused:
            self._pace.pause(now())
        self._commands: deque[Command] = deque()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stopped = False
        self._state = "waiting"
        self._ticked = -1.0
        self._last = 0
        self.loops = 0
        #: Commands that were no commands, or too many.
        self.refused = 0

    # --- what it is told ------------------------------------------------------------------------

    def tell(self, command: Command) -> None:
        """Do this next; raises `LocalError` when too much waits already."""
        with self._lock:
            if len(self._commands) >= MOST_COMMANDS:
                self.refused += 1
                raise LocalError(f"{MOST_COMMANDS} commands wait already")
            self._commands.append(command)
        self._wake.set()

    def pause(self) -> None:
        """Stand still."""
        self.tell(Command("pause"))

    def resume(self) -> None:
        """Go on."""
        self.tell(Command("resume"))

    def step(self, count: int = 1) -> None:
        """Publish so many samples, and stand still."""
        self.tell(Command("step", count))

    def seek(self, moment: int) -> None:
        """Go on from another moment, in nanoseconds since 1970."""
        self.tell(Command("seek", moment))

    def speed(self, times: float) -> None:
        """Go at another speed; `MAX`: as fast as samples are taken."""
        self.tell(Command("speed", times))

    def stop(self) -> None:
        """End after the sample that is being published."""
        self._stopped = True
        self._wake.set()

    def status(self) -> dict[str, Any]:
        """How it is, for JSON."""
        with self._lock:
            pace, outlet = self._pace, self._outlet
            at = pace.position(self._now())
            speed: float | str = "max" if pace.speed == MAX else pace.speed
            playing = self._state == "playing"
            return {
                "state": "paused" if playing and pace.paused else self._state,
                "time": str(Instant(at)),
                "ns": at,
                "from": None if self.span is None else str(Instant(self.span[0])),
                "to": None if self.span is None else str(Instant(self.span[1])),
                "speed": speed,
                "samples": outlet.samples,
                "bytes": outlet.bytes,
                "lost": outlet.lost,
                "loops": self.loops,
                "waiting_commands": len(self._commands),
                "refused": self.refused,
            }

    # --- on the bus -----------------------------------------------------------------------------

    def _heard(self, sample: Sample) -> None:
        try:
            self.tell(command_of(sample.payload.to_bytes()))
        except ZError:
            self.refused += 1

    def _asked(self, query: Query) -> None:
        key = below(self._prefix, CONTROL)
        try:
            if query.payload is None:
                raise LocalError("no command; put one, or send it as the query's payload")
            self.tell(command_of(query.payload.to_bytes()))
        except ZError as error:
            query.reply_err(json.dumps({"error": str(error)}), encoding=JSON)
            return
        query.reply(key, json.dumps(self.status()), encoding=JSON)

    def _asked_status(self, query: Query) -> None:
        query.reply(below(self._prefix, STATUS), json.dumps(self.status()), encoding=JSON)

    def _tick(self, now: float, *, always: bool = False) -> None:
        """Tell the time of the replay on the clock's key, if it is time."""
        if self._clock is None or (not always and now - self._ticked < TICK):
            return
        self._ticked = now
        status = self.status()
        facts = {name: status[name] for name in ("time", "ns", "speed", "state")}
        self._session.put(self._clock, json.dumps(facts), encoding=JSON)

    # --- at work --------------------------------------------------------------------------------

    def run(self) -> None:
        """Replay to the end; the bus is left as it was found."""
        session = self._session
        control = below(self._prefix, CONTROL)
        with ExitStack() as held:
            held.enter_context(session.declare_subscriber(control, self._heard))
            held.enter_context(session.declare_queryable(control, self._asked))
            held.enter_context(
                session.declare_queryable(below(self._prefix, STATUS), self._asked_status)
            )
            self._state = "playing"
            try:
                self._run()
            finally:
                self._end()
                if not session.is_closed():
                    self._tick(self._now(), always=True)

    def _end(self) -> None:
        """Let the clock stand: at the last sample, or where somebody stopped it."""
        with self._lock:
            now = self._now()
            self._pace.pause(now)
            if self._last and not self._stopped:
                self._pace.seek(self._last, now)
            self._state = "ended"

    def _run(self) -> None:
        start: int | None = None
        while True:
            start = self._play_from(start)
            if self._stopped:
                return
            if start is None:
                if not self._loop or not self._outlet.samples:
                    return
                self.loops += 1

    def _play_from(self, start: int | None) -> int | None:
        """Play to the end; gives the moment to go on from, if one was wanted before."""
        first = start is None
        for rows in self._source.rows(start):
            moments = hlc_nanos(rows["hlc"].to_numpy()).astype(np.int64)
            if first:
                # No waiting for a silence before the first sample.
                first = False
                with self._lock:
                    self._pace.seek(int(moments[0]), self._now())
            target = self._play(Ready(rows, exact=self._exact), moments)
            if target is not None or self._stopped:
                return target
        return None

    def _play(self, ready: Ready, moments: Any) -> int | None:
        place, count = 0, len(moments)
        while place < count and not self._stopped:
            target = self._obey()
            if target is not None:
                return target
            now = self._now()
            self._tick(now)
            pace = self._pace
            wait = pace.wait(int(moments[place]), now)
            if wait is None or wait > 0:
                self._rest(wait)
                continue
            end = place + 1
            if not pace.paused:
                end = min(count, place + SAMPLES_PER_CHECK)
                if pace.speed != MAX:
                    due = int(np.searchsorted(moments, pace.position(now), "right"))
                    end = max(place + 1, min(end, due))
            self._outlet.publish(ready, place, end)
            self._last = int(moments[end - 1])
            with self._lock:
                pace.passed(self._last)
            place = end
        return None

    def _rest(self, wait: float | None) -> None:
        """Wait for the next sample, for a command, or until the clock is to be told."""
        most = wait
        if self._clock is not None:
            most = TICK if wait is None else min(wait, TICK)
        self._wake.wait(most)
        self._wake.clear()

    def _obey(self) -> int | None:
        """Do what was told; gives the moment to go on from, if that is another."""
        target: int | None = None
        with self._lock:
            while self._commands:
                moment = self._do(self._commands.popleft(), self._now())
                target = target if moment is None else moment
        return target

    def _do(self, command: Command, now: float) -> int | None:
        pace, do = self._pace, command.do
        if do == "pause" or (do == "toggle" and not pace.paused):
            pace.pause(now)
        elif do in ("resume", "toggle"):
            pace.resume(now)
        elif do == "step":
            pace.step(int(command.amount), now)
        elif do == "speed":
            pace.go(command.amount, now)
        elif do in ("faster", "slower") and pace.speed != MAX:
            times = 2.0 if do == "faster" else 0.5
            pace.go(min(FASTEST, max(SLOWEST, pace.speed * times)), now)
        elif do == "stop":
            self._stopped = True
        elif do == "seek":
            moment = int(command.amount) + (pace.position(now) if command.relative else 0)
            if self.span is not None:
                moment = max(self.span[0], moment)
            pace.seek(moment, now)
            return moment
        return None
