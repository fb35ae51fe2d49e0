"""What was dropped, by reason and key: looked at when it is dropped, and at no other time.

Who drops little has each message counted under its key. Who does not read at all may cost others
nothing, so beyond the first `EXACT` messages one in `ONE_IN` is looked at, at random, and stands
for those before it that were not. Numbers still add up to all that was dropped, but for the last
few dozen; what falls to each key is then an estimate (`DropLog.sampled`).

Like other counters these have no lock of their own: where threads drop without one, of two that
count in the very same moment one may be missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.errors import DecodeError
from zenlake.wire.codec_network import skip_network
from zenlake.wire.cursor import Reader
from zenlake.wire.numbers import (
    ID,
    PUSH,
    PUSH_FLAG_SENDER_MAPPING,
    PUSH_FLAG_SUFFIX,
    REQUEST,
    RESPONSE,
)

#: Why something is dropped: no room in an outbox, or too large for a low-latency session; the
#: channel of a program is full, or a ring made room for a newer item.
CONGESTION: Final = "congestion"
OVERSIZED: Final = "oversized"
FULL: Final = "full"
OLDEST: Final = "oldest"
#: And of those who come over HTTP: a WebSocket, a reader of a stream of events.
WEBSOCKET: Final = "websocket"
EVENTS: Final = "events"

#: Messages that are all looked at, and after these one in how many.
EXACT: Final = 1000
ONE_IN: Final = 32
#: Rows of a tally, and how many are left when some were folded.
ROWS: Final = 64
LEFT: Final = 48
#: Characters of a key that are kept; of a longer one, the chunks that fit.
LONGEST: Final = 256
#: The row of all keys that have no other, and of messages that name none.
OTHERS: Final = "**"


def prefix_row(row: str) -> str:
    """The row that another is folded into: that of all keys beside it."""
    end = len(row)
    if row.endswith("/**"):
        end -= 3
    cut = row.rfind("/", 0, end)
    return OTHERS if cut < 0 else row[:cut] + "/**"


class KeyTally:
    """How many, by key, in a bounded number of rows.

    A row is a key, or `robot/7/**`: all keys below a prefix that have no row of their own. When
    there are too many, those that count least are folded into the rows of their prefixes. So the
    rows add up to everything that was added, and of a key no more is told than was.
    """

    __slots__ = ("rows",)

    def __init__(self) -> None:
        """Nothing yet."""
        self.rows: dict[str, int] = {}

    def add(self, key: str, many: int) -> None:
        """Count `many` for a key."""
        if len(key) > LONGEST:
            key = prefix_row(key[:LONGEST])
        rows = self.rows
        before = rows.get(key, 0)
        if not before and len(rows) >= ROWS:
            self._fold()
            before = rows.get(key, 0)
        rows[key] = before + many

    def _fold(self) -> None:
        """Fold rows of the lighter half into those of their prefixes, the longest first."""
        rows = self.rows
        light = dict(sorted(rows.items(), key=_least_first)[: ROWS // 2])
        heavy = len(rows) - len(light)
        for row in light:
            rows.pop(row, 0)
        while heavy + len(light) > LEFT:
            deepest = max([_depth(row) for row in light])
            for row in [row for row in light if _depth(row) == deepest]:
                many = light.pop(row)
                above = prefix_row(row)
                light[above] = light.get(above, 0) + many
        for row, many in light.items():
            rows[row] = rows.get(row, 0) + many

    def most(self) -> list[tuple[str, int]]:
        """The rows, those that count most first."""
        return sorted(self.rows.items(), key=_most_first)


def _depth(row: str) -> int:
    """How long a row is; one of all keys below a prefix comes before each of those."""
    return 2 * row.count("/") - row.endswith("**")


def _least_first(row: tuple[str, int]) -> tuple[int, str]:
    return row[1], row[0]


def _most_first(row: tuple[str, int]) -> tuple[int, str]:
    return -row[1], row[0]


class DropLog:
    """What one outbox or one channel has dropped."""

    def __init__(self, total: DropLog | None = None) -> None:
        """`total`: has all of it as well."""
        #: By reason.
        self.tallies: dict[str, KeyTally] = {}
        self.total: DropLog | None = total
        #: Gives the key that (scope, mapping of the receiver, suffix) of a message means.
        self.resolve: Callable[[int, bool, str], str | None] | None = None
        #: Whether some were counted without being looked at.
        self.sampled: bool = False
        #: How many more are looked at one by one, and how many not before the next one is.
        self._exact: int = EXACT
        self._skipped: int = 0
        #: By reason: those that the next one stands for.
        self.owed: dict[str, int] = {}
        self._chance: int = 1

    def note(self, reason: str, key: str, many: int) -> None:
        """Count `many` under a key."""
        tally = self.tallies.get(reason)
        if tally is None:
            tally = KeyTally()
            self.tallies[reason] = tally
        tally.add(key, many)
        total = self.total
        if total is not None:
            total.sampled = total.sampled or self.sampled
            total.note(reason, key, many)

    def due(self, reason: str, count: int) -> int:
        """How many drops the `count` of now stand for; 0: they need not be looked at."""
        owed = self.owed.get(reason, 0) + count
        if self._exact > 0:
            self._exact -= count
        elif self._skipped >= count:
            self._skipped -= count
            self.owed[reason] = owed
            return 0
        else:
            # As many as were looked at, times something between 0 and twice ONE_IN: a fixed
            # distance would meet the same key again and again where keys take turns.
            self.sampled = True
            self._chance = (self._chance * 1103515245 + 12345) & 0x7FFF_FFFF
            self._skipped = count * ((self._chance >> 8) % (2 * ONE_IN - 1))
        self.owed[reason] = 0
        return owed

    def one(self, reason: str, key: str) -> None:
        """Count one message on a key."""
        many = self.due(reason, 1)
        if many:
            self.note(reason, key, many)

    def messages(self, reason: str, parts: list[bytes], count: int) -> None:
        """Count `count` encoded messages, of which the last may be cut off behind its key."""
        owed = self.due(reason, count)
        if not owed:
            return
        share = owed // count
        r = Reader(b"".join(parts))
        left = count
        try:
            while left:
                start = r.pos
                key = self._key(r)
                if left > 1:
                    r.pos = start
                    skip_network(r)
                    self.note(reason, key, share)
                else:
                    self.note(reason, key, owed)
                owed -= share
                left -= 1
        except DecodeError:
            self.note(reason, OTHERS, owed)

    def _key(self, r: Reader) -> str:
        """The key of a message."""
        header = r.u8()
        kind = header & ID
        if kind in (REQUEST, RESPONSE):
            r.skip_vle()
        elif kind != PUSH:
            return OTHERS
        scope = r.vle(0xFFFF)
        suffix = r.text(r.vle(0xFFFF)) if header & PUSH_FLAG_SUFFIX else ""
        return self.named(scope, header & PUSH_FLAG_SENDER_MAPPING != 0, suffix)

    def named(self, scope: int, mine: bool, suffix: str) -> str:
        """The key that a message of ours names; `mine`: by a number that this side gave."""
        if not scope:
            return suffix or OTHERS
        resolve = self.resolve
        key = None if resolve is None else resolve(scope, not mine, suffix)
        return OTHERS if key is None else key
