"""Threads that ask Spark, each of which can be given up.

A call into Java cannot be broken off: Spark evaluates constants while it plans, and its loops look
at no clock. So whoever waits for such a call waits on a thread of its own, for a time. A thread
that does not come back by then is lost: it is counted for as long as that lasts, and another does
what it would have done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar, final

__all__ = ["QuestionThreads", "ThreadCall"]

T = TypeVar("T")


@final
class ThreadCall(Generic[T]):
    """A call that a thread makes."""

    def __init__(self, work: Callable[[], T]) -> None:
        """`work` is called once."""
        self.work = work
        self.result: Future[T] = Future()
        self.lost = False


@final
class QuestionThreads:
    """Threads that are used again, and as many as there is work at once."""

    def __init__(self, name: str) -> None:
        """None yet."""
        self._name = name
        self._changed = threading.Condition()
        self._work: list[ThreadCall[object]] = []
        self._idle = 0
        self._begun = 0
        self._lost = 0
        self._over = False
        self.given_up = 0
        """How many were ever lost; some may have come back."""

    @property
    def lost(self) -> int:
        """How many are lost now."""
        return self._lost

    def call(self, work: Callable[[], T]) -> ThreadCall[T]:
        """Do work on a thread that is free; whoever calls this bounds how many do it at once."""
        one = ThreadCall(work)
        with self._changed:
            self._work.append(one)  # type: ignore[arg-type]
            if len(self._work) <= self._idle:
                self._changed.notify()
                return one
            self._begun += 1
            name = f"{self._name} {self._begun}"
        threading.Thread(target=self._follow, name=name, daemon=True).start()
        return one

    def give_up(self, one: ThreadCall[T]) -> None:
        """Wait no more for a call: its thread is lost until it comes back."""
        with self._changed:
            if not one.result.done() and not one.lost:
                one.lost = True
                self._lost += 1
                self.given_up += 1

    def close(self) -> None:
        """Let the threads end that are free; nobody waits for the others."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _follow(self) -> None:
        while (one := self._next()) is not None:
            try:
                done, error = one.work(), None
            except BaseException as raised:
                done, error = None, raised
            with self._changed:
                if error is None:
                    one.result.set_result(done)
                else:
                    one.result.set_exception(error)
                if one.lost:
                    self._lost -= 1
            del one, done, error  # an idle thread keeps no answer

    def _next(self) -> ThreadCall[object] | None:
        with self._changed:
            while not self._work:
                if self._over:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return self._work.pop(0)
