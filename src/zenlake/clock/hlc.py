"""A hybrid logical clock: as near to real time as it may be, and never the same time twice.

     63            32 31          4 3    0
    |    seconds     |   fraction  | tick |

The clock on the wall is read without its last four bits. While it moves on, a timestamp is that
reading; when it stands still or is set back, a timestamp is the last one plus one unit, and the
four free bits (and, when they overflow, the rest) count the ties. What others say pulls the
clock forward too, so an answer is always later than the question, but nobody may pull it more
than half a second ahead of the wall: one node with a wrong date must not take a network with it.

The clock decides; it does not look at any wall itself. Every call is given the reading, in
nanoseconds since 1970 as `time.time_ns` gives them.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from zenlake.clock.ntp64 import FRACTION_MASK, MAX_SECONDS, NANOS
from zenlake.clock.timestamp import Timestamp
from zenlake.clock.zid import ZenohId
from zenlake.errors import TimestampError

__all__ = ["MAX_AHEAD_NS", "Hlc", "word_of"]

MAX_AHEAD_NS: Final = 500_000_000
READING_MASK: Final = 0xFFFF_FFF0


@final
class Hlc:
    """Tells timestamps that strictly increase, whatever the wall clock and others say."""

    # Both times are kept as halves, small enough to be plain machine integers when compiled.
    __slots__ = ("_ahead_fraction", "_ahead_seconds", "_fraction", "_id", "_seconds")

    def __init__(self, id: ZenohId, max_ahead_ns: int = MAX_AHEAD_NS) -> None:
        """The clock of node `id`; others may be `max_ahead_ns` ahead of it and no more."""
        if max_ahead_ns < 0:
            raise TimestampError(f"others cannot be {max_ahead_ns} ns ahead; give 0 or more")
        self._id: bytes = bytes(id)
        self._seconds: int = 0
        self._fraction: int = 0
        self._ahead_seconds: int = max_ahead_ns // NANOS
        self._ahead_fraction: int = ((max_ahead_ns % NANOS) << 32) // NANOS

    @property
    def id(self) -> ZenohId:
        """Whose clock this is."""
        return ZenohId(self._id)

    @property
    def last(self) -> Timestamp:
        """The latest time told or accepted; 1970 for a new clock."""
        return Timestamp(self._seconds, self._id, self._fraction)

    def new_timestamp(self, now: int) -> Timestamp:
        """A timestamp later than all before it: the reading `now`, or the last one plus a tick."""
        seconds, fraction = self.tick(now)
        return Timestamp(seconds, self._id, fraction)

    def tick(self, now: int) -> tuple[int, int]:
        """The same as two halves: seconds, and the fraction of the next one."""
        seconds = _seconds_of(now)
        fraction = ((now % NANOS << 32) // NANOS) & READING_MASK
        if seconds < self._seconds or (seconds == self._seconds and fraction <= self._fraction):
            seconds = self._seconds
            fraction = self._fraction + 1
            if fraction > FRACTION_MASK:
                if seconds == MAX_SECONDS:
                    raise TimestampError(
                        "the clock stands at 2106-02-07, the last moment an NTP64 can name; "
                        "no later timestamp exists"
                    )
                seconds += 1
                fraction = 0
        self._seconds = seconds
        self._fraction = fraction
        return seconds, fraction

    def update(self, heard: Timestamp, now: int) -> bool:
        """Move on to what another node said; False, and no move, when it is too far ahead."""
        return self.follow(heard.seconds, heard.fraction, now)

    def follow(self, heard_seconds: int, heard_fraction: int, now: int) -> bool:
        """The same, told in two halves."""
        seconds = _seconds_of(now)
        fraction = ((now % NANOS << 32) // NANOS) & READING_MASK
        ahead_seconds = seconds + self._ahead_seconds
        ahead_fraction = fraction + self._ahead_fraction
        if ahead_fraction > FRACTION_MASK:
            ahead_seconds += 1
            ahead_fraction &= FRACTION_MASK
        if heard_seconds > ahead_seconds or (
            heard_seconds == ahead_seconds and heard_fraction > ahead_fraction
        ):
            return False
        if heard_seconds > seconds or (heard_seconds == seconds and heard_fraction > fraction):
            seconds = heard_seconds
            fraction = heard_fraction
        if seconds > self._seconds or (seconds == self._seconds and fraction > self._fraction):
            self._seconds = seconds
            self._fraction = fraction
        return True

    # ---------------------------------------------------------------------- times as machine words
    #
    # Code that ticks for many values at once does so in machine words (`word_of`), by these rules:
    #
    #     a new time        last + 1, or the reading if that is later
    #     another's time    refused above the limit; else last is the latest of it, reading and last

    def last_word(self) -> i64:
        """The latest time told or accepted."""
        return word_of(self._seconds, self._fraction)

    def reading_word(self, now: int) -> i64:
        """The reading `now` of the wall clock, without the bits that count ties."""
        return word_of(_seconds_of(now), ((now % NANOS << 32) // NANOS) & READING_MASK)

    def limit_word(self, now: int) -> i64:
        """The latest time of another node that is accepted while the wall clock reads `now`."""
        seconds = _seconds_of(now) + self._ahead_seconds
        fraction = (((now % NANOS << 32) // NANOS) & READING_MASK) + self._ahead_fraction
        if fraction > FRACTION_MASK:
            seconds += 1
            fraction &= FRACTION_MASK
        if seconds > MAX_SECONDS:
            return word_of(MAX_SECONDS, FRACTION_MASK)
        return word_of(seconds, fraction)

    def move_to(self, word: i64) -> None:
        """Make this the latest time; it is not before the last one."""
        self._seconds = (word >> 32) + 0x8000_0000
        self._fraction = word & 0xFFFF_FFFF

    def may_tick(self, now: int) -> bool:
        """Whether there are times left, seconds of them, before the last that has a name."""
        return self._seconds < MAX_SECONDS and _seconds_of(now) < MAX_SECONDS


def word_of(seconds: int, fraction: int) -> i64:
    """A time as a signed machine word: its NTP64 less 2^63, so that order is kept."""
    high: i64 = seconds
    low: i64 = fraction
    return ((high - 0x8000_0000) << 32) + low


def _seconds_of(now: int) -> int:
    """Whole seconds of a clock reading that a timestamp can name."""
    seconds = now // NANOS
    if not 0 <= seconds <= MAX_SECONDS:
        raise TimestampError(
            f"the wall clock reads {now} ns since 1970; timestamps reach from 1970 to 2106: "
            "set the clock of this machine"
        )
    return seconds
