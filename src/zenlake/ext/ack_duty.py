"""Which of all storages and journals of a network acknowledges a put.

A query with `_ack_put` reaches every storage and journal of its key, and the put must be published
once. Each of them says by a liveliness token what it answers for:

    @ack/<rank>/<zid>/<number>/<key expression, in hexadecimal>

and the first in the order of these tokens that includes the key publishes and replies: a journal
before a storage that lasts, that before one in memory, then the least id. One that is declared
complete may be the only one that was asked, so it never leaves a put to one that is not.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from zenlake.errors import ZError
from zenlake.keys import includes
from zenlake.values import SampleKind

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

__all__ = ["DURABLE", "JOURNAL", "LAST", "VOLATILE", "AckDuty"]

JOURNAL: Final = 0
DURABLE: Final = 1
VOLATILE: Final = 2
LAST: Final = 3
#: Those that are complete come first, in the same order.
_NOT_COMPLETE: Final = 4

#: Tokens that are remembered; more are not believed.
MOST: Final = 10_000

_numbers = itertools.count()


class _Duty(NamedTuple):
    rank: int
    zid: str
    number: int
    expr: str

    @property
    def token(self) -> str:
        return f"@ack/{self.rank}/{self.zid}/{self.number}/{self.expr.encode().hex()}"

    @classmethod
    def parse(cls, token: str) -> _Duty | None:
        chunks = token.split("/")
        try:
            _, rank, zid, number, expr = chunks
            return cls(int(rank), zid, int(number), bytes.fromhex(expr).decode())
        except ValueError:
            return None


class AckDuty:
    """What one storage or journal answers for, beside all others; until it is closed."""

    def __init__(self, session: Session, expr: str, rank: int, *, complete: bool) -> None:
        """Say that acknowledged puts of `expr` can be made here."""
        self._session = session
        chosen = rank if complete else rank + _NOT_COMPLETE
        self._mine = _Duty(chosen, str(session.zid()), next(_numbers), expr)
        self._complete = complete
        self._lock = threading.Lock()
        self._others: dict[str, _Duty] = {}
        liveliness = session.liveliness()
        self._token = liveliness.declare_token(self._mine.token)
        self._subscriber = liveliness.declare_subscriber("@ack/**", self._heard, history=True)

    def _heard(self, token: Sample) -> None:
        name = str(token.key_expr)
        with self._lock:
            if token.kind is not SampleKind.PUT:
                self._others.pop(name, None)
            elif name != self._mine.token and len(self._others) < MOST:
                duty = _Duty.parse(name)
                if duty is not None:
                    self._others[name] = duty

    def is_here(self, key: str) -> bool:
        """Whether no other comes before this one for a key."""
        with self._lock:
            return not any(
                duty < self._mine
                and (not self._complete or duty.zid == self._mine.zid)
                and _includes(duty.expr, key)
                for duty in self._others.values()
            )

    def close(self) -> None:
        """Leave it to others."""
        if not self._session.is_closed():
            self._subscriber.undeclare()
            self._token.undeclare()


def _includes(expr: str, key: str) -> bool:
    """Whether another's expression includes a key; what another says may be no expression."""
    try:
        return includes(expr, key)
    except ZError:
        return False
