"""The past of an advanced publisher, and which part of it a query is about.

_sn=3..7     the samples with these numbers, both included; `3..`, `..7` and `3` as well
_time=[..]   the samples with times in a range; those without a time too
_max=5       no more than the newest five
"""

from __future__ import annotations

from collections import deque

from zenlake.clock.ntp64 import NTP64
from zenlake.errors import ZError
from zenlake.keys.parameters import Parameters
from zenlake.keys.time_range import ResolvedRange
from zenlake.node.advanced_keys import SERIALS, ahead
from zenlake.wire.codec_zenoh import Del, Put

Kept = Put | Del


class Cache:
    """The newest samples of one publisher, the oldest first."""

    def __init__(self, max_samples: int) -> None:
        """Remember so many; never fewer than one."""
        self._kept: deque[Kept] = deque(maxlen=max(1, max_samples))

    def add(self, body: Kept) -> None:
        """Remember a sample, and forget the oldest if there are too many."""
        self._kept.append(body)

    def __len__(self) -> int:
        """How many samples are remembered."""
        return len(self._kept)

    def select(self, parameters: str, now_ns: int) -> list[Kept]:
        """The samples that a query is about, the oldest first."""
        wanted = Parameters(parameters)
        numbers = _numbers(wanted.get("_sn"))
        times = _times(wanted, now_ns)
        selected = [
            body
            for body in self._kept
            if (numbers is None or _has_number(body, numbers))
            and (times is None or _has_time(body, times))
        ]
        most = _number(wanted.get("_max") or "")
        return selected if most is None else selected[max(0, len(selected) - most) :]


def _number(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= 10:
        number = int(text)
        return number if number < SERIALS else None
    return None


def _numbers(text: str | None) -> tuple[int | None, int | None] | None:
    """The first and the last number that are wanted; None: all samples are."""
    if text is None:
        return None
    head, dots, tail = text.partition("..")
    first = _number(head)
    last = _number(tail) if dots else first
    return None if first is None and last is None else (first, last)


def _has_number(body: Kept, numbers: tuple[int | None, int | None]) -> bool:
    info = body.source_info
    if info is None:
        return False
    first, last = numbers
    return (first is None or ahead(info.sn, first) >= 0) and (
        last is None or ahead(last, info.sn) >= 0
    )


def _times(parameters: Parameters, now_ns: int) -> ResolvedRange | None:
    try:
        times = parameters.time_range()
    except ZError:
        return None  # a range that cannot be read excludes no sample
    return None if times is None else times.resolve(now_ns)


def _has_time(body: Kept, times: ResolvedRange) -> bool:
    stamp = body.timestamp
    if stamp is None:
        return True
    return times.contains(NTP64.from_raw(stamp.seconds << 32 | stamp.fraction).as_nanos())
