"""When a part of the service is started, killed and started again: a pure state machine.

    part = Part("the lake", Policy(patience=180))
    part.tick(now)            → Order.START: the caller starts a process
    part.ready(now)           the process said that it is up
    part.ended(now, reason)   the process ended; tick() orders the next start when it is due
    part.tick(now)            → Order.KILL: it hangs, or did not come up in time

Time is an argument, in seconds of any steady clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from zenlake.clock.backoff import Backoff

__all__ = ["Order", "RestartPolicy", "State", "SupervisedPart"]


class State(StrEnum):
    """What a part is doing."""

    WAITING = "waiting"
    RESTING = "resting"
    STARTING = "starting"
    UP = "up"
    ENDING = "ending"
    STOPPED = "stopped"


class Order(Enum):
    """What the caller has to do now."""

    NONE = 0
    START = 1
    KILL = 2


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How patient a supervisor is with one part; all times in seconds."""

    #: How long it may take to be up.
    patience: float
    #: How long it may say nothing once it is up; None if it need not speak.
    silence: float | None = None
    #: The pause before the first restart; it doubles with each failure that follows.
    pause: float = 0.5
    #: The longest pause, and the pause after a refusal, which waiting alone does not cure.
    longest: float = 60.0
    #: After how long in state UP earlier failures are forgotten.
    steady: float = 60.0


class SupervisedPart:
    """One part: its state, how often it failed, and when something is to be done."""

    def __init__(self, name: str, policy: RestartPolicy, now: float = 0.0) -> None:
        """A part that is to be started at the first tick."""
        self.name = name
        self.policy = policy
        self.state = State.WAITING
        #: Since when it is in its state.
        self.since = now
        #: Failures in a row.
        self.failures = 0
        #: How often it was started after the first time.
        self.restarts = 0
        #: Why it ended last, or is about to be killed; empty while all is well.
        self.reason = ""
        self.was_up = False
        self._due = now
        self._pause = 0.0
        self._starts = 0
        self._heard = now

    @property
    def again_at(self) -> float:
        """When it is started again, while it rests."""
        return self._due

    def tick(self, now: float) -> Order:
        """What is to be done at this moment; the part expects that it is done."""
        if self.state in (State.WAITING, State.RESTING) and now >= self._due:
            self._enter(State.STARTING, now)
            self.restarts += self._starts > 0
            self._starts += 1
            return Order.START
        if self.state is State.STARTING and now - self.since >= self.policy.patience:
            return self._kill(now, f"was not up after {self.policy.patience:g} s")
        if self.state is State.UP:
            if self.failures and now - self.since >= self.policy.steady:
                self.failures = 0
                self._pause = 0.0
                self.reason = ""
            silence = self.policy.silence
            if silence is not None and now - self._heard >= silence:
                return self._kill(now, f"said nothing for {silence:g} s")
        return Order.NONE

    def ready(self, now: float) -> None:
        """It said that it is up."""
        if self.state is State.STARTING:
            self._enter(State.UP, now)
            self.was_up = True
        self.heard(now)

    def heard(self, now: float) -> None:
        """It said something: it does not hang."""
        self._heard = now

    def ended(self, now: float, reason: str, *, refused: bool = False) -> None:
        """Its process is gone.

        `refused`: it will not work until its settings change, so the pause is the longest.
        """
        if self.state in (State.STOPPED, State.WAITING, State.RESTING):
            return
        if self.state is State.ENDING:
            reason = f"{self.reason} and was killed"
        steady = self.state is State.UP and now - self.since >= self.policy.steady
        self.failures = 1 if steady else self.failures + 1
        self.reason = reason
        retry = Backoff(self.policy.pause, self.policy.longest)
        self._pause = retry.after(0.0 if steady else self._pause)
        self._due = now + (self.policy.longest if refused else self._pause)
        self._enter(State.RESTING, now)

    def stop(self, now: float) -> None:
        """It is not to run any more."""
        self._enter(State.STOPPED, now)

    def _kill(self, now: float, why: str) -> Order:
        self.reason = why
        self._enter(State.ENDING, now)
        return Order.KILL

    def _enter(self, state: State, now: float) -> None:
        self.state = state
        self.since = now
