"""A brake on guessing passwords: who fails too often waits, longer each time.

Failures are counted for each address and for each user. Beyond a few, an address must wait before
it may try again, a second at first and up to a minute; while it waits nothing that it shows is
looked at. A user whom others guess at from many addresses is let in from each address that has
succeeded before; from others only once a second. What is remembered is bounded.
"""

from __future__ import annotations

from typing import Final

from zenlake.clock.backoff import Backoff

FREE: Final = 5
"""Failures of an address that cost nothing."""
FREE_USER: Final = 20
"""Failures of a user, from wherever, that cost nothing."""
LONGEST: Final = 60.0
PAUSES: Final = Backoff(1.0, LONGEST)
"""How long an address waits after each failure that costs something."""
FORGET: Final = 900.0
"""Seconds after which a failure is forgotten."""
REMEMBERED: Final = 4096
LONGEST_NAME: Final = 256
"""Characters of a user's name that are remembered; longer ones that begin alike count as one."""


class _Failures:
    __slots__ = ("count", "pause", "until", "when")

    def __init__(self) -> None:
        self.count: int = 0
        self.pause: float = 0.0
        self.when: float = 0.0
        self.until: float = 0.0


class LoginBrake:
    """The failed logins of one node."""

    def __init__(self) -> None:
        """No login has failed yet."""
        self._addresses: dict[str, _Failures] = {}
        self._users: dict[str, _Failures] = {}
        self._welcome: dict[tuple[str, str], float] = {}

    def wait(self, address: str, now: float, user: str = "") -> float:
        """How many seconds an address must wait before it may try, as a user if one is named."""
        user = user[:LONGEST_NAME]
        left = self._left(self._addresses, address, now)
        if user and (address, user) not in self._welcome:
            left = max(left, self._left(self._users, user, now))
        return left

    def failed(self, address: str, user: str, now: float) -> None:
        """A login failed."""
        one = self._note(self._addresses, address, now)
        if one.count > FREE:
            one.pause = PAUSES.after(one.pause)
            one.until = now + one.pause
        if user:
            many = self._note(self._users, user[:LONGEST_NAME], now)
            if many.count > FREE_USER:
                many.until = now + 1.0

    def succeeded(self, address: str, user: str) -> None:
        """A login succeeded."""
        self._addresses.pop(address, None)
        if len(self._welcome) >= REMEMBERED:
            del self._welcome[next(iter(self._welcome))]
        self._welcome[(address, user[:LONGEST_NAME])] = 0.0

    def waiting(self, now: float) -> list[tuple[str, int, float]]:
        """The addresses that wait, how often each failed, and how long it waits still."""
        return [
            (address, one.count, one.until - now)
            for address, one in self._addresses.items()
            if one.until > now
        ]

    def _left(self, known: dict[str, _Failures], name: str, now: float) -> float:
        failures = known.get(name)
        return 0.0 if failures is None else max(0.0, failures.until - now)

    def _note(self, known: dict[str, _Failures], name: str, now: float) -> _Failures:
        failures = known.pop(name, None)
        if failures is None or now - failures.when > FORGET:
            failures = _Failures()
        if len(known) >= REMEMBERED:
            del known[next(iter(known))]  # the one that failed longest ago
        known[name] = failures
        failures.count += 1
        failures.when = now
        return failures
