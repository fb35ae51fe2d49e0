"""A lock that costs next to nothing while it is free.

Every publication takes the lock of an outbox, and nearly always finds it free. The interpreter's
own lock then still asks the system for the time and for a semaphore: a third of what a small
`put` costs. Here the thread that pops the token has the lock; only a thread that finds no token
waits at a real lock.

The interpreter makes each `pop` and `append` one step. No waiter is forgotten between two steps: a
waiter first lines up and then tries to pop once more, an owner first gives the token back and then
looks for waiters. A thread that is faster than the waiter that was called has the token first,
which saves a change of threads; but only once: the second time the waiter is handed the token.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import final


@final
class Waiter:
    """A thread that waits for the token."""

    __slots__ = ("gate", "lost", "owns")

    def __init__(self) -> None:
        """With a gate that is shut."""
        self.gate: Lock = Lock()
        self.gate.acquire()
        #: Whether it was called once, and another thread was faster.
        self.lost: bool = False
        #: Whether it was given the token with the call.
        self.owns: bool = False


@final
class Mutex:
    """Mutual exclusion between threads; it can be the lock of a `threading.Condition`."""

    __slots__ = ("_tokens", "_waiting")

    def __init__(self) -> None:
        """Free."""
        self._tokens: list[int] = [1]
        self._waiting: deque[Waiter] = deque()

    def acquire(self) -> bool:
        """Take it; wait while another thread has it."""
        try:
            self._tokens.pop()
        except IndexError:
            self._wait()
        return True

    def release(self) -> None:
        """Give it back."""
        self._tokens.append(1)
        if self._waiting:
            self._wake()

    def __enter__(self) -> bool:
        """Take it."""
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()

    def locked(self) -> bool:
        """Whether a thread has it."""
        return not self._tokens

    def _is_owned(self) -> bool:
        """For `threading.Condition`: whether the calling thread has it, which callers see to."""
        return not self._tokens

    def _wait(self) -> None:
        waiter = Waiter()
        try:
            while not self._is_next(waiter):
                pass
        except BaseException:
            self._leave(waiter)
            raise

    def _is_next(self, waiter: Waiter) -> bool:
        """Line up until called; whether the waiter has the token then."""
        if waiter.lost:
            self._waiting.appendleft(waiter)
        else:
            self._waiting.append(waiter)
        try:
            self._tokens.pop()
        except IndexError:
            waiter.gate.acquire()
            waiter.lost = True
            return waiter.owns
        try:  # noqa: SIM105  (this is compiled)
            self._waiting.remove(waiter)
        except ValueError:
            pass  # called meanwhile, for the very token that it popped
        return True

    def _wake(self) -> None:
        """Call the longest waiter; one that was called in vain before is given the token."""
        while True:
            try:
                waiter = self._waiting.popleft()
            except IndexError:
                return  # the waiter popped the token itself
            if waiter.lost:
                try:
                    self._tokens.pop()
                except IndexError:
                    self._waiting.appendleft(waiter)
                    if not self._tokens:
                        return  # its owner looks for waiters on release
                    continue
                waiter.owns = True
            waiter.gate.release()
            return

    def _leave(self, waiter: Waiter) -> None:
        """Wait no more, because a signal took the thread away."""
        try:
            self._waiting.remove(waiter)
        except ValueError:
            # Called meanwhile, and not coming: another must have the token.
            if waiter.owns:
                self.release()
            elif self._waiting:
                self._wake()
