"""Which service of a node replies for a key: one of them, though several could.

A storage and a recorder may both know a key. Each claims the key expressions that it answers for,
with a rank for queries about the present and one for queries about the past (`_time`); of all
claims that include a key, the one with the least rank replies, and of equals the earliest.
"""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

from zenlake.keys import includes

__all__ = ["HISTORY", "JOURNAL", "LAKE", "NEWEST", "NOTHING", "Claim", "Claims"]

#: Ranks: a journal whose past a lake answers for, elsewhere; a storage that keeps what is asked
#: for; a journal; a storage that has the newest only; a service that answers no such queries.
LAKE: Final = -1
HISTORY: Final = 0
JOURNAL: Final = 1
NEWEST: Final = 2
NOTHING: Final = 3


class Claim(NamedTuple):
    """What one service answers for."""

    number: int
    expr: str
    present: int
    past: int


class Claims:
    """The claims of all services of a node; safe to use from any thread."""

    def __init__(self) -> None:
        """None yet."""
        self._numbers = itertools.count()
        # Replaced, never changed: readers need no lock.
        self._claims: tuple[Claim, ...] = ()

    def claim(self, expr: str, present: int, past: int) -> Claim:
        """Claim a key expression with these ranks."""
        claim = Claim(next(self._numbers), expr, present, past)
        self._claims = (*self._claims, claim)
        return claim

    def release(self, claim: Claim) -> None:
        """Give a claim up."""
        self._claims = tuple(other for other in self._claims if other is not claim)

    def left_to_lake(self, key: str) -> bool:
        """Whether a lake answers for a key where its history is asked for."""
        return any(claim.past == LAKE and includes(claim.expr, key) for claim in self._claims)

    def has_one(self) -> bool:
        """Whether there is one claim and no other."""
        return len(self._claims) == 1

    def is_first(self, mine: Claim, key: str, *, past: bool) -> bool:
        """Whether no other claim on a key comes before this one."""
        claims = self._claims
        if len(claims) < 2:
            return True
        rank = (mine.past if past else mine.present, mine.number)
        return not any(
            (other.past if past else other.present, other.number) < rank
            and includes(other.expr, key)
            for other in claims
        )
