"""A lock that costs next to nothing while nobody else wants it.

Every publication takes the lock of an outbox, and nearly always finds it free. The interpreter's
own lock then still asks the system for the time and for a semaphore: a third of what a small
`put` costs. Here whoever pops the token has the lock; only who finds none waits at a real one.

The interpreter makes each `pop` and `append` one step. Nobody is forgotten between two steps: who
waits first says so and then tries once more, who leaves first gives the token back and then looks
who waits.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import final


@final
class Mutex:
    """Mutual exclusion between threads; it can be the lock of a `threading.Condition`."""

    __slots__ = ("_tokens", "_waiting")

    def __init__(self) -> None:
        """Free."""
        self._tokens: list[int] = [1]
        self._waiting: deque[Lock] = deque()

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
        """Whether somebody has it."""
        return not self._tokens

    def _is_owned(self) -> bool:
        """What `threading.Condition` asks: it is told the truth by all who use it here."""
        return not self._tokens

    def _wait(self) -> None:
        gate = Lock()
        gate.acquire()
        while True:
            self._waiting.append(gate)
            try:
                self._tokens.pop()
            except IndexError:
                try:
                    gate.acquire()
                except BaseException:
                    self._leave(gate)
                    raise
                continue
            try:  # noqa: SIM105  (this is compiled)
                self._waiting.remove(gate)
            except ValueError:
                pass  # called meanwhile, for the very token that was found
            return

    def _leave(self, gate: Lock) -> None:
        """Wait no more, because a signal took the thread away."""
        try:
            self._waiting.remove(gate)
        except ValueError:
            # Called meanwhile, and not coming: another must have the token.
            if self._waiting:
                self._wake()

    def _wake(self) -> None:
        try:
            gate = self._waiting.popleft()
        except IndexError:
            return  # they found the token themselves
        gate.release()
